"""Name a lab's nodes, namespaces, groups and files.

    node        TYPE-0, TYPE-1, ...         198.18.K.1, 198.18.K.2, ...; K is the lab's own
    namespaces  lab.LAB.TYPE-0, ..., lab.LAB.switch
    groups      tonnage-lab.LAB.TYPE-0, ...
    files       ROOM/LAB/TYPE-0.disk-0      where the first disk is mounted
                ROOM/LAB/TYPE-0.disk-0.img  the file that is its device

Lab names have no dots, so names of different labs never collide.
"""

from dataclasses import dataclass
from pathlib import Path

from tonnage.base.system.netns import NETWORK
from tonnage.provision.lab.config import DiskConfig, LabConfig, MachineType

NAMESPACE = "lab"
GROUP = "tonnage-lab"
NETWORKS = range(256)
"""Possible numbers of a lab's network."""


@dataclass(frozen=True)
class Device:
    disk: DiskConfig
    image: Path
    mount: Path


@dataclass(frozen=True)
class Node:
    name: str
    number: int
    """Its port on the bridge."""
    machine: MachineType
    address: str
    namespace: str
    group: str
    devices: tuple[Device, ...]

    @property
    def has_limited_disks(self) -> bool:
        return any(limit for each in self.devices for limit in each.disk.limits.values())

    @property
    def mounts(self) -> list[Path]:
        return [each.mount for each in self.devices if each.disk.file_system != "none"]


def switch_namespace(lab: str) -> str:
    return f"{NAMESPACE}.{lab}.switch"


def group_pattern(lab: str) -> str:
    """A glob pattern of a lab's control groups."""
    return f"{GROUP}.{lab}.*"


def lab_nodes(lab: LabConfig, network: int, directory: Path) -> list[Node]:
    """The nodes of a lab, in the order of its file; ``network`` is one of `NETWORKS`."""
    found: list[Node] = []
    for machine in lab.machines:
        for number in range(machine.count):
            name = f"{machine.type}-{number}"
            devices = tuple(
                Device(
                    disk, directory / f"{name}.disk-{place}.img", directory / f"{name}.disk-{place}"
                )
                for place, disk in enumerate(machine.disks)
            )
            found.append(
                Node(
                    name=name,
                    number=len(found),
                    machine=machine,
                    address=f"{NETWORK}.{network}.{len(found) + 1}",
                    namespace=f"{NAMESPACE}.{lab.name}.{name}",
                    group=f"{GROUP}.{lab.name}.{name}",
                    devices=devices,
                )
            )
    return found
