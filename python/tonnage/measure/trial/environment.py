"""Record the machine that a measurement ran on; nobody remembers it later.

Everything comes from the kernel's own files. What they do not state stays ``None`` or ``unknown``.
"""

import importlib.metadata
import os
import platform
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path

from tonnage.base import core
from tonnage.base.records import Device, Environment
from tonnage.base.records.environment import HOST, MACHINE_TYPE, PROVIDER
from tonnage.base.system import block_devices, cgroups
from tonnage.base.system.procfs import SECTOR_BYTES, optional_text

LIBRARIES = ("numpy", "plotly", "pyarrow", "rich", "typer")
FIRMWARE = Path("/sys/class/dmi/id")
VENDORS = {"Amazon EC2": "aws", "Google": "gcp"}
"""Providers by the vendor in their machines' firmware. Azure's is that of any Hyper-V guest."""
TYPE_IN_FIRMWARE = "aws"
"""The provider whose firmware has the machine type as its product name."""


def capture(directories: Iterable[Path], labels: Mapping[str, str] | None = None) -> Environment:
    """The machine now; labels take precedence over what it states of host, provider and type."""
    labels = labels or {}
    vendor = VENDORS.get(optional_text(FIRMWARE / "sys_vendor") or "")
    product = optional_text(FIRMWARE / "product_name") if vendor == TYPE_IN_FIRMWARE else None
    return Environment(
        host=labels.get(HOST) or platform.node(),
        kernel=f"{platform.system()} {platform.release()} {platform.machine()}",
        operating_system=_operating_system(),
        virtualisation=_virtualisation(),
        cpu_model=_field("/proc/cpuinfo", "model name") or platform.processor() or "unknown",
        cores=core.workers(),
        memory_bytes=physical_memory(),
        memory_limit_bytes=cgroups.memory_limit(),
        load_average=os.getloadavg()[0],
        devices=_devices(directories),
        versions=dict(_versions()),
        debug_build=core.is_debug_build(),
        provider=labels.get(PROVIDER) or vendor,
        machine_type=labels.get(MACHINE_TYPE) or product,
        labels=dict(labels),
        niceness=os.getpriority(os.PRIO_PROCESS, 0),  # Of this thread and those it starts.
    )


def _devices(directories: Iterable[Path]) -> list[Device]:
    grouped: dict[int, list[Path]] = {}
    for directory in directories:
        grouped.setdefault(directory.stat().st_dev, []).append(directory)
    return [_device(same_device) for same_device in grouped.values()]


def _device(directories: list[Path]) -> Device:
    """The device of these directories; several block devices count as one, with the total size."""
    names = block_devices.devices_of(directories[0])
    queue = block_devices.queue_dir(names[0])
    rotational = optional_text(queue / "rotational")
    sectors = [optional_text(block_devices.BLOCK / name / "size") for name in names]
    mount = block_devices.mount_of(directories[0])
    return Device(
        name=", ".join(names),
        directories=[str(directory) for directory in directories],
        file_system=mount.file_system,
        mount_options=mount.options,
        scheduler=optional_text(queue / "scheduler"),
        rotational=None if rotational is None else rotational == "1",
        size_bytes=sum(int(each) for each in sectors if each) * SECTOR_BYTES or None,
        model=optional_text(block_devices.BLOCK / names[0] / "device" / "model"),
    )


def _operating_system() -> str:
    try:
        return platform.freedesktop_os_release().get("PRETTY_NAME", "unknown")
    except OSError:
        return "unknown"


def _virtualisation() -> str:
    vendor, product = (optional_text(FIRMWARE / name) for name in ("sys_vendor", "product_name"))
    flags = _field("/proc/cpuinfo", "flags") or ""
    hypervisor = optional_text(Path("/sys/hypervisor/type"))
    known = " ".join(part for part in (vendor, product, hypervisor) if part)
    if "hypervisor" in flags.split():
        return f"virtual machine ({known})" if known else "virtual machine"
    return known or "none seen"


def physical_memory() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


@cache  # Looking them up takes 20 ms.
def _versions() -> dict[str, str]:
    versions = {"tonnage": core.version(), "python": platform.python_version()}
    for library in LIBRARIES:
        try:
            versions[library] = importlib.metadata.version(library)
        except importlib.metadata.PackageNotFoundError:
            continue
    return versions


def _field(path: str, name: str) -> str | None:
    for line in (optional_text(Path(path)) or "").splitlines():
        key, _, value = line.partition(":")
        if key.strip() == name:
            return value.strip()
    return None
