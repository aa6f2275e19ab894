"""A memory cgroup for one command: a limit that includes the page cache, its peak, its OOM kills.

Version 1 groups are made inside the caller's own group; version 2 groups at the root, because a
version 2 group that holds processes may not hold limited children. Both need root.
"""

import os
import signal
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

MOUNT = Path("/sys/fs/cgroup")
ENTER = 'echo $$ > "$0" && exec "$@"'


@dataclass(frozen=True)
class Files:
    """Names of the files that are used here, in one cgroup version."""

    limit: str
    swap_off: tuple[str, str]
    peak: str
    events: str
    release: str


V1 = Files(
    limit="memory.limit_in_bytes",
    swap_off=("memory.swappiness", "0"),
    peak="memory.max_usage_in_bytes",
    events="memory.oom_control",
    release="memory.force_empty",
)
V2 = Files(
    limit="memory.max",
    swap_off=("memory.swap.max", "0"),
    peak="memory.peak",
    events="memory.events",
    release="memory.reclaim",
)


class CgroupError(Exception):
    """The memory cgroup cannot be made or used; the message states what to do."""


def locate() -> tuple[Path, Files]:
    """Return the parent of our group, and the names of its files."""
    if (MOUNT / "cgroup.controllers").exists():
        return MOUNT, V2
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        if "memory" in controllers.split(","):
            return MOUNT / "memory" / path.lstrip("/"), V1
    raise CgroupError("no memory cgroup controller is mounted: run with --no-cgroup")


class MemoryGroup:
    """One cgroup for a `with` block; processes that still run at its end are killed."""

    def __init__(self, limit_bytes: int) -> None:
        parent, self._files = locate()
        self._path = parent / f"sort-peers-{os.getpid()}"
        self._limit_bytes = limit_bytes

    def __enter__(self) -> Self:
        try:
            self._path.mkdir()
            (self._path / self._files.limit).write_text(str(self._limit_bytes))
        except OSError as error:
            raise CgroupError(
                f"cannot limit memory by a cgroup ({error}): run as root, or with --no-cgroup"
            ) from error
        swap, value = self._files.swap_off
        if (self._path / swap).exists():
            (self._path / swap).write_text(value)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        deadline = time.monotonic() + 30
        while True:
            for process in self._processes():
                with suppress(ProcessLookupError):
                    os.kill(process, signal.SIGKILL)
            self._drop_page_cache()
            try:
                return self._path.rmdir()
            except OSError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.1)

    def command(self, command: Sequence[str]) -> list[str]:
        """Return a command that enters the group, then executes `command`."""
        return ["sh", "-c", ENTER, str(self._path / "cgroup.procs"), *command]

    def peak_bytes(self) -> int:
        return int((self._path / self._files.peak).read_text())

    def oom_kills(self) -> int:
        lines = (self._path / self._files.events).read_text().splitlines()
        return int(dict(line.split() for line in lines)["oom_kill"])

    def _processes(self) -> list[int]:
        return [int(line) for line in (self._path / "cgroup.procs").read_text().split()]

    def _drop_page_cache(self) -> None:
        """Release the pages, which would stay charged and leave less memory to the next command."""
        with suppress(OSError):  # optional: the kernel may refuse during writeback
            (self._path / self._files.release).write_text(str(self._limit_bytes))
