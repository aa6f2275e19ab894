"""A node's control groups: its memory limit, page cache counted, and its CPU seconds.

A lab's node already has groups that throttle its disk and its cores. A lab's group is used if it is
in the right hierarchy, as all are in version 2. For other controllers the bench makes its own
group, inside the group in which it runs. Its own groups last for one run, so their peaks and kills
are that run's; those of a lab's group cover all runs so far. Documents:
Documentation/admin-guide/cgroup-v2.rst and cgroup-v1/{memory,cpuacct}.rst of Linux.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from tonnage.base.system.cgroups import group_dir, kill_all

MOUNTS = Path("/proc/self/mountinfo")
OWN = Path("/proc/self/cgroup")
TIMEOUT_SECONDS = 30.0
ENTER = 'for group in $(echo "$0" | tr : " "); do echo $$ > "$group/cgroup.procs"; done; exec "$@"'


class Unable(Exception):
    """This machine cannot run the bench; the message states what to do."""


@dataclass(frozen=True)
class Groups:
    """The groups of one node, for one run."""

    memory: Path
    cpu: Path

    def command(self, command: Iterable[str]) -> list[str]:
        """Return a command that enters the groups, then executes ``command``."""
        return ["sh", "-c", ENTER, f"{self.memory}:{self.cpu}", *command]

    def cpu_seconds(self) -> float:
        """Return the CPU seconds of all processes in the group, including ended ones."""
        first = self.cpu / "cpuacct.usage"
        if first.exists():
            return int(first.read_text()) / 1e9
        return _numbers(self.cpu / "cpu.stat")["usage_usec"] / 1e6

    def peak_bytes(self) -> int:
        """Return the peak memory, page cache counted."""
        return int(_either(self.memory, "memory.max_usage_in_bytes", "memory.peak").read_text())

    def oom_kills(self) -> int:
        """Return how many processes the kernel killed for the limit."""
        return _numbers(_either(self.memory, "memory.oom_control", "memory.events"))["oom_kill"]


@contextmanager
def grouped(nodes: Mapping[str, Iterable[Path]], limit_bytes: int) -> Iterator[dict[str, Groups]]:
    """Make the groups of nodes, by name; at the end all processes in them are killed.

    Args:
        nodes: The lab's groups of each node, by its name; none without a lab.
        limit_bytes: Limit of each node's memory.

    Raises:
        Unable: A group cannot be made, or cannot limit memory.
    """
    with ExitStack() as stack:
        found = {}
        for name, has in nodes.items():
            known = list(has)
            memory = stack.enter_context(_group("memory", name, known))
            found[name] = Groups(memory, stack.enter_context(_group("cpuacct", name, known)))
            stack.callback(_release, memory)
            stack.callback(kill_all, [memory])
            _limit(memory, limit_bytes)
        yield found


@contextmanager
def _group(controller: str, name: str, known: Iterable[Path]) -> Iterator[Path]:
    """Yield the node's group in a controller's hierarchy: the lab's, or a new one."""
    parent = _own(controller)
    # Each hierarchy is a file system.
    there = [each for each in known if each.stat().st_dev == parent.stat().st_dev]
    if there:
        yield there[0]
        return
    path = parent / f"shuffle-peers-{os.getpid()}.{name}"
    try:
        path.mkdir()
    except OSError as why:
        raise Unable(f"{path}: {why.strerror}: run as root") from why
    try:
        yield path
    finally:
        _remove(path)


def _own(controller: str) -> Path:
    """Return the parent of new groups: this process's own group, or the top of version 2."""
    mounts = MOUNTS.read_text()
    for line in OWN.read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        if controller in controllers.split(","):
            found = group_dir(mounts, "cgroup", controller, path)
            if found:
                return found
    # A group of version 2 that holds processes may not hold limited children.
    found = group_dir(mounts, "cgroup2", "", "/")
    if found is None:
        raise Unable(
            f"no control group has the controller {controller}: mount cgroup2, or version 1's"
        )
    return found


def _limit(memory: Path, limit_bytes: int) -> None:
    try:
        _either(memory, "memory.limit_in_bytes", "memory.max").write_text(str(limit_bytes))
    except OSError as why:
        raise Unable(
            f"{memory}: memory cannot be limited ({why.strerror}): run as root, with the memory "
            "controller on"
        ) from why
    for swap, off in (("memory.swappiness", "0"), ("memory.swap.max", "0")):
        if (memory / swap).exists():
            (memory / swap).write_text(off)


def _release(memory: Path) -> None:
    """Release the page cache, which would stay charged and leave less memory to the next run.

    A lab's group outlasts the run, and has no limit afterwards.
    """
    with suppress(OSError):  # Optional: the kernel may refuse during writeback.
        (memory / "memory.force_empty").write_text("0")
    with suppress(OSError):
        (memory / "memory.max").write_text("max")


def _remove(path: Path) -> None:
    deadline = time.monotonic() + TIMEOUT_SECONDS
    while True:
        try:
            return path.rmdir()
        except OSError:  # A killed process has not ended yet.
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)


def _either(group: Path, first: str, second: str) -> Path:
    """Return a group's file, by its name in version 1 or version 2."""
    return group / first if (group / first).exists() else group / second


def _numbers(file: Path) -> dict[str, int]:
    return {name: int(value) for name, value in map(str.split, file.read_text().splitlines())}
