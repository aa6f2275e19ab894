"""Captures what a measurement was done on, without being asked: nobody remembers it later.

Everything comes from the kernel's own files. What they do not tell stays ``None`` or ``unknown``.
"""

from __future__ import annotations

import importlib.metadata
import os
import platform
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path

from tonnage.base import core
from tonnage.base.records import Device, Environment
from tonnage.base.records.environment import HOST, MACHINE_TYPE, PROVIDER
from tonnage.base.system import block_devices
from tonnage.base.system.procfs import SECTOR_BYTES

LIBRARIES = ("numpy", "plotly", "pyarrow", "rich", "typer")
MEMBERSHIP = Path("/proc/self/cgroup")
CONTROL_GROUPS = Path("/sys/fs/cgroup")
FIRMWARE = Path("/sys/class/dmi/id")
VENDORS = {"Amazon EC2": "aws", "Google": "gcp"}
"""Providers by what their machines' firmware says of who made them. Azure's says what any other
machine under Hyper-V does."""
TELLS_TYPE = "aws"
"""Whose firmware has the machine type for its product's name."""


def capture(directories: Iterable[Path], labels: Mapping[str, str] | None = None) -> Environment:
    """The machine as it is now.

    Args:
        directories: Whose devices are told.
        labels: What somebody said of it; `HOST`, `PROVIDER` and `MACHINE_TYPE` go before what the
            machine tells.
    """
    said = labels or {}
    vendor = VENDORS.get(_text(FIRMWARE / "sys_vendor") or "")
    product = _text(FIRMWARE / "product_name") if vendor == TELLS_TYPE else None
    return Environment(
        host=said.get(HOST) or platform.node(),
        kernel=f"{platform.system()} {platform.release()} {platform.machine()}",
        operating_system=_operating_system(),
        virtualisation=_virtualisation(),
        cpu_model=_field("/proc/cpuinfo", "model name") or platform.processor() or "unknown",
        cores=core.workers(),
        memory_bytes=physical_memory(),
        memory_limit_bytes=memory_limit(),
        load_average=os.getloadavg()[0],
        devices=_devices(directories),
        versions=dict(_versions()),
        debug_build=core.is_debug_build(),
        provider=said.get(PROVIDER) or vendor,
        machine_type=said.get(MACHINE_TYPE) or product,
        labels=dict(said),
        niceness=os.getpriority(os.PRIO_PROCESS, 0),  # Of this thread, and of those it starts.
    )


def device_name(directory: Path) -> str:
    """The kernel's names for the block devices that hold ``directory``, or their number."""
    return ", ".join(block_devices.devices_of(directory))


def _devices(directories: Iterable[Path]) -> list[Device]:
    grouped: dict[int, list[Path]] = {}
    for directory in directories:
        grouped.setdefault(directory.stat().st_dev, []).append(directory)
    return [_device(together) for together in grouped.values()]


def _device(directories: list[Path]) -> Device:
    """What holds directories: of several block devices the size is that of all together."""
    names = block_devices.devices_of(directories[0])
    queue = block_devices.queue_dir(names[0])
    rotational = _text(queue / "rotational")
    sectors = [_text(block_devices.BLOCK / name / "size") for name in names]
    mount = block_devices.mount_of(directories[0])
    return Device(
        name=", ".join(names),
        directories=[str(directory) for directory in directories],
        file_system=mount.file_system,
        mount_options=mount.options,
        scheduler=_text(queue / "scheduler"),
        rotational=None if rotational is None else rotational == "1",
        size_bytes=sum(int(each) for each in sectors if each) * SECTOR_BYTES or None,
        model=_text(block_devices.BLOCK / names[0] / "device" / "model"),
    )


def _operating_system() -> str:
    try:
        return platform.freedesktop_os_release().get("PRETTY_NAME", "unknown")
    except OSError:
        return "unknown"


def _virtualisation() -> str:
    vendor, product = (_text(FIRMWARE / name) for name in ("sys_vendor", "product_name"))
    flags = _field("/proc/cpuinfo", "flags") or ""
    hypervisor = _text(Path("/sys/hypervisor/type"))
    known = " ".join(part for part in (vendor, product, hypervisor) if part)
    if "hypervisor" in flags.split():
        return f"virtual machine ({known})" if known else "virtual machine"
    return known or "none seen"


def physical_memory() -> int:
    """The machine's memory, in bytes."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def memory_limit() -> int | None:
    """The least memory limit of the control groups that this process is in, in bytes, if any."""
    limits: list[int] = []
    for line in (_text(MEMBERSHIP) or "").splitlines():
        _, controllers, group = line.split(":", 2)
        if controllers == "memory":  # version 1
            root, name = CONTROL_GROUPS / "memory", "memory.limit_in_bytes"
        elif not controllers:
            root, name = CONTROL_GROUPS, "memory.max"
        else:
            continue
        # Those above bind too; in a container the group itself may not be seen.
        inner = Path(group.strip("/"))
        found = [_text(root / each / name) for each in (inner, *inner.parents)]
        limits += [int(limit) for limit in found if limit and limit.isdigit()]
    return min((limit for limit in limits if limit < 1 << 60), default=None)


@cache  # They take 20 ms to look up.
def _versions() -> dict[str, str]:
    versions = {"tonnage": core.version(), "python": platform.python_version()}
    for library in LIBRARIES:
        try:
            versions[library] = importlib.metadata.version(library)
        except importlib.metadata.PackageNotFoundError:
            continue
    return versions


def _field(path: str, name: str) -> str | None:
    for line in (_text(Path(path)) or "").splitlines():
        key, _, value = line.partition(":")
        if key.strip() == name:
            return value.strip()
    return None


def _text(path: Path) -> str | None:
    try:
        return path.read_text(errors="surrogateescape").strip()  # A path may be no text.
    except OSError:
        return None
