"""What works on this machine, and which features each missing dependency disables.

Each check looks without changing anything but a temporary file, and sends nothing anywhere.
"""

import ctypes
import errno
import importlib.util
import mmap
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tonnage.base import core, formatting
from tonnage.base.system import cgroups
from tonnage.cli.options.optional_dependencies import EXTRAS
from tonnage.measure.trial import environment

Status = Literal["ok", "limited", "missing"]
IO_URING_SETUP = 425
"""The system call's number, the same on x86_64 and arm64."""
BLOCK = 4096
MIN_MEMORY = 512 << 20
SMALL_MEMORY = 2 << 30
MIN_FREE = 1 << 30
SMALL_FREE = 20 << 30
THROTTLED_SHARE = 0.01
LAB_PROGRAMS = ("ip", "tc", "losetup", "mkfs.ext4", "mount")
LOST_WITHOUT = {
    "aws": "no tonnage launch, tonnage cluster or tonnage catalog refresh",
    "cluster": "no --cluster: jobs and measurements run on this machine only",
    "report": "no tonnage report or tonnage study",
}
"""What does not work without each extra of the package."""


@dataclass(frozen=True)
class Check:
    name: str
    status: Status
    found: str
    cost: str | None = None
    """What does not work, or works worse, because of it; and how to fix it."""


def examine(directory: Path) -> list[Check]:
    return [
        core_check(),
        io_uring(),
        direct_io(directory),
        free_space(directory),
        memory(),
        cpus(),
        throttling(),
        *extras(),
        credentials(),
        lab(),
    ]


def core_check() -> Check:
    if core.is_debug_build():
        return Check(
            "core",
            "limited",
            f"{core.version()}, a debug build",
            "all measured rates are far too low; install a release build",
        )
    return Check("core", "ok", f"{core.version()}, a release build")


def io_uring() -> Check:
    refused = io_uring_errno()
    if refused is None:
        return Check("io_uring", "ok", "works")
    reasons = {
        errno.ENOSYS: "not supported by the kernel",
        errno.EPERM: "blocked (by seccomp or sysctl)",
    }
    return Check(
        "io_uring",
        "limited",
        reasons.get(refused, os.strerror(refused)),
        "disk I/O falls back to threads: more CPU time, and less throughput with small blocks; "
        "allow io_uring (sysctl kernel.io_uring_disabled=0, or the container's seccomp profile)",
    )


def io_uring_errno() -> int | None:
    """The error that setting up a ring gives; ``None`` if it works."""
    libc = ctypes.CDLL(None, use_errno=True)
    parameters = ctypes.create_string_buffer(256)
    ring = libc.syscall(IO_URING_SETUP, 1, parameters)
    if ring < 0:
        return ctypes.get_errno()
    os.close(ring)
    return None


def direct_io(directory: Path) -> Check:
    name = f"O_DIRECT in {directory}"
    try:
        with tempfile.NamedTemporaryFile(dir=directory) as file, mmap.mmap(-1, BLOCK) as buffer:
            descriptor = open_direct(file.name)
            try:
                os.write(descriptor, buffer)
            finally:
                os.close(descriptor)
    except OSError as error:
        if error.errno != errno.EINVAL:
            return Check(
                name,
                "missing",
                error.strerror or str(error),
                "no file can be written there; use another --dir",
            )
        return Check(
            name,
            "limited",
            "not supported by the file system",
            "I/O goes through the page cache, so disk measurements are unreliable; use a directory "
            "on xfs or ext4",
        )
    return Check(name, "ok", "works")


def open_direct(path: str) -> int:
    return os.open(path, os.O_WRONLY | os.O_DIRECT)


def free_space(directory: Path) -> Check:
    name = f"free space in {directory}"
    try:
        free = shutil.disk_usage(directory).free
    except OSError as error:
        return Check(
            name,
            "missing",
            error.strerror or str(error),
            "no data can be written there; use another --dir",
        )
    found = formatting.size(free)
    if free < MIN_FREE:
        return Check(
            name,
            "missing",
            found,
            "too little for any measurement; free space, or use another --dir",
        )
    if free < SMALL_FREE:
        return Check(
            name,
            "limited",
            found,
            "a study or a sort needs three times the size of its data; use a smaller --data or "
            "another --dir",
        )
    return Check(name, "ok", found)


def memory() -> Check:
    limit, physical = cgroups.memory_limit(), environment.physical_memory()
    usable = min(physical, limit or physical)
    found = formatting.memory(usable)
    if usable < physical:
        found += f", the limit of the control group (the machine has {formatting.memory(physical)})"
    if usable < MIN_MEMORY:
        cost = "too little for the default settings; for a small sort, use --memory 64MiB"
        return Check("memory", "limited", found, cost)
    if usable < SMALL_MEMORY:
        cost = "large jobs need more passes or smaller blocks"
        return Check("memory", "limited", found, cost)
    return Check("memory", "ok", found)


def cpus() -> Check:
    usable, present = core.workers(), os.cpu_count() or 1
    found = formatting.several(usable, "core")
    if usable < present:
        cost = "measurements show what these cores can do, not the whole machine"
        return Check("CPUs", "limited", f"{found} of {present} can be used", cost)
    return Check("CPUs", "ok", found)


def throttling() -> Check:
    periods, throttled = cpu_periods()
    if not periods:
        return Check("CPU throttling", "ok", "no CPU quota")
    share = throttled / periods
    found = f"{formatting.percent(share)} of periods throttled"
    if share <= THROTTLED_SHARE:
        return Check("CPU throttling", "ok", found)
    return Check(
        "CPU throttling",
        "limited",
        found,
        "CPU-bound measurements vary and are too low; raise the control group's CPU quota",
    )


def cpu_periods(root: Path = cgroups.ROOT) -> tuple[int, int]:
    """Quota periods of this process's control group, and how many of them were throttled."""
    for file in (root / "cpu.stat", root / "cpu" / "cpu.stat"):
        try:
            lines = dict(line.split() for line in file.read_text().splitlines())
        except (OSError, ValueError):
            continue
        return int(lines.get("nr_periods", 0)), int(lines.get("nr_throttled", 0))
    return 0, 0


def extras() -> Iterator[Check]:
    for extra, (module, title) in EXTRAS.items():
        if importlib.util.find_spec(module) is not None:
            yield Check(title, "ok", "installed")
            continue
        yield Check(
            title,
            "limited",
            "not installed",
            f"{LOST_WITHOUT[extra]}; to install it: pip install 'tonnage[{extra}]'",
        )


def credentials() -> Check:
    places = {
        "AWS_ACCESS_KEY_ID": "AWS_ACCESS_KEY_ID" in os.environ,
        "AWS_PROFILE": "AWS_PROFILE" in os.environ,
        "AWS_WEB_IDENTITY_TOKEN_FILE": "AWS_WEB_IDENTITY_TOKEN_FILE" in os.environ,
        "~/.aws/credentials": Path("~/.aws/credentials").expanduser().is_file(),
    }
    if found := [place for place, is_there in places.items() if is_there]:
        return Check("AWS credentials", "ok", f"in {', '.join(found)}")
    return Check(
        "AWS credentials",
        "limited",
        "none found (instance roles are not checked)",
        "no s3:// data and no tonnage launch, unless the machine has an instance role; to set "
        "credentials, run aws configure",
    )


def lab() -> Check:
    needs: dict[str, Callable[[], bool]] = {
        "root": lambda: os.geteuid() == 0,
        "network namespaces": Path("/proc/self/ns/net").exists,
        "loop devices": Path("/dev/loop-control").exists,
        "control groups": lambda: os.access(cgroups.ROOT, os.W_OK),
        **{program: lambda program=program: bool(find(program)) for program in LAB_PROGRAMS},  # type: ignore[misc]
    }
    lacking = [name for name, works in needs.items() if not works()]
    if not lacking:
        return Check("lab", "ok", "root, namespaces, loop devices, cgroups")
    return Check(
        "lab",
        "limited",
        f"no {', no '.join(lacking)}",
        "no tonnage lab, measure layouts or measure net --namespaces; run as root, and install the "
        "missing programs",
    )


def find(program: str) -> str | None:
    return shutil.which(program, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")
