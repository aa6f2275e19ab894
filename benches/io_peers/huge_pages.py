"""Huge pages for peers, as Tonnage's memory has them.

A large transfer needs several requests to the device with small pages, and one with huge pages, so
this decides the speed of large transfers. Tonnage requests huge pages with ``madvise``. For other
programs malloc uses those that are set aside, which only root can do. They are released at the end.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

WANTED = 128
"""Huge pages of 2 MiB: enough for all that a peer allocates."""
MALLOC_ENVIRONMENT = ("env", "GLIBC_TUNABLES=glibc.malloc.hugetlb=2")
"""Prefix of a command: malloc uses huge pages, and small ones if there are none."""
KNOB = Path("/proc/sys/vm/nr_hugepages")


@contextmanager
def set_aside() -> Iterator[str]:
    """Set huge pages aside; yields the outcome in words."""
    before = KNOB.read_text()
    try:
        KNOB.write_text(str(max(int(before), WANTED)))
    except PermissionError:
        yield "peers have small pages, because only root can set huge ones aside"
        return
    try:
        yield f"peers have huge pages, {int(KNOB.read_text())} are set aside"
    finally:
        KNOB.write_text(before)
