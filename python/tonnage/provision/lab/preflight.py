"""Check whether this machine can create a lab: root, programs, kernel features."""

import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from tonnage.base.system import UsageError
from tonnage.provision.lab.nodes import Node
from tonnage.provision.lab.throttling import Controller

PROGRAMS = {
    "ip": "iproute2",
    "tc": "iproute2",
    "nsenter": "util-linux",
    "unshare": "util-linux",
    "find": "findutils",
}
FOR_DISKS = {
    "losetup": "mount",
    "mount": "mount",
    "umount": "mount",
    "findmnt": "util-linux",
    "fallocate": "util-linux",
}
FOR_FILE_SYSTEMS = {"xfs": ("mkfs.xfs", "xfsprogs"), "ext4": ("mkfs.ext4", "e2fsprogs")}
LOOP_CONTROL = Path("/dev/loop-control")
KERNEL_MOUNTS = Path("/proc/filesystems")
"""File systems of the kernel, apart from modules not yet loaded."""

NETWORKS = {
    "bridges (CONFIG_BRIDGE)": ("ip", "link", "add", "tried", "type", "bridge"),
    "pairs of interfaces (CONFIG_VETH)": (
        *("ip", "link", "add", "tried", "type", "veth", "peer", "name", "other"),
    ),
}
SHAPING = {
    "token buckets (CONFIG_NET_SCH_TBF)": (
        *("tc", "qdisc", "add", "dev", "lo", "root", "tbf"),
        *("rate", "1mbit", "burst", "64kb", "latency", "50ms"),
    )
}
"""Kernel features, each with a command that needs it in a new namespace."""


def check_machine(nodes: Sequence[Node], known: Mapping[str, Controller]) -> None:
    """Check everything that a lab needs.

    Raises:
        UsageError: Lists everything that is missing.
    """
    if os.geteuid():
        raise UsageError("creating a lab requires root; use sudo")
    lacking = [*_programs(nodes)]
    if not lacking:
        lacking += [*_network(nodes), *_groups(nodes, known), *_devices(nodes)]
    if lacking:
        raise UsageError(f"this machine cannot create the lab: {'; '.join(lacking)}")


def _programs(nodes: Sequence[Node]) -> Iterator[str]:
    systems = {each.disk.file_system for node in nodes for each in node.devices}
    needed = dict(PROGRAMS) | (FOR_DISKS if systems else {})
    needed |= dict(FOR_FILE_SYSTEMS[name] for name in FOR_FILE_SYSTEMS if name in systems)
    for program, package in needed.items():
        if shutil.which(program) is None:
            yield f"{program} is missing (install {package})"


def _network(nodes: Sequence[Node]) -> Iterator[str]:
    if said := _fails(()):
        yield f"network namespaces are not available ({said})"
        return
    shaped = any(node.machine.link_bytes_per_second for node in nodes)
    for what, command in (NETWORKS | (SHAPING if shaped else {})).items():
        if said := _fails(command):
            yield f"the kernel does not support {what} ({said})"


def _groups(nodes: Sequence[Node], known: Mapping[str, Controller]) -> Iterator[str]:
    if not known:
        yield "no control groups are mounted (the lab tracks the processes of a node with them)"
        return
    capped = any(node.machine.cpus is not None for node in nodes)
    cpu = known.get("cpu")
    if capped and not (cpu and _has_file(cpu, "cpu.cfs_quota_us")):
        yield "no control group can limit CPU (controller cpu, CONFIG_CFS_BANDWIDTH)"
    memory = known.get("memory")
    held = any(node.machine.memory_bytes is not None for node in nodes)
    if held and not (memory and _has_file(memory, "memory.limit_in_bytes")):
        yield "no control group can limit memory (controller memory)"
    io = known.get("io")
    limited = any(node.has_limited_disks for node in nodes)
    if limited and not (io and _has_file(io, "blkio.throttle.read_bps_device")):
        yield "no control group can limit device rates (controller io, or blkio in version 1)"


def _has_file(controller: Controller, name: str) -> bool:
    """Whether a controller of version 1 has a file; version 2 always has its own."""
    return controller.version == 2 or (controller.top / name).exists()


def _devices(nodes: Sequence[Node]) -> Iterator[str]:
    if any(node.devices for node in nodes) and not LOOP_CONTROL.exists():
        yield f"loop devices are not available ({LOOP_CONTROL} is missing)"
    for system in FOR_FILE_SYSTEMS:
        wanted = any(each.disk.file_system == system for node in nodes for each in node.devices)
        if wanted and not _mounts(system):
            yield f"the kernel does not support {system} (CONFIG_{system.upper()}_FS)"


def _mounts(system: str) -> bool:
    if system in KERNEL_MOUNTS.read_text().split():
        return True
    modprobe = shutil.which("modprobe")
    if modprobe is None:
        return False
    # The kernel requests the module by this name.
    asked = (modprobe, "--dry-run", "--quiet", f"fs-{system}")
    return not subprocess.run(asked, stdin=subprocess.DEVNULL, capture_output=True).returncode


def _fails(command: Sequence[str]) -> str:
    """Why a command fails in a new network namespace; empty if it works.

    Without a command: why there is no such namespace.
    """
    done = subprocess.run(
        ["unshare", "--net", *(command or ("true",))],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )
    return (" ".join(done.stderr.split()) or "no reason given") if done.returncode else ""
