"""Huge pages for peers, as Tonnage's memory has them.

A device takes a transfer out of small pages in several requests, out of huge ones in one, so this
decides about large transfers. Tonnage asks for them with ``madvise``; to programs that do not,
malloc gives those that are set aside, which only root may do. They are given back at the end.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

WANTED = 128
"""Of 2 MiB: room for all that a peer allocates."""
TOLD = ("env", "GLIBC_TUNABLES=glibc.malloc.hugetlb=2")
"""Before a command: malloc takes huge pages, and small ones if there are none."""
KNOB = Path("/proc/sys/vm/nr_hugepages")


@contextmanager
def set_aside() -> Iterator[str]:
    """Sets huge pages aside; gives what came of it in words."""
    before = KNOB.read_text()
    try:
        KNOB.write_text(str(max(int(before), WANTED)))
    except PermissionError:
        yield "peers have small pages, since only root may set huge ones aside"
        return
    try:
        yield f"peers have huge pages, {int(KNOB.read_text())} of which are set aside"
    finally:
        KNOB.write_text(before)
