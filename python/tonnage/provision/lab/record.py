"""What is on file of a lab: what it was made of, and what was done to it since.

    ROOM/                   locked while a lab is changed; outlasts a reboot, as images do
    ROOM/LAB/lab.json       the record, written before anything is made
    ROOM/LAB/journal.json   how what stands is undone, see `changes.journal`
    ROOM/LAB/LAB.csv        its machines as offers
    ROOM/LAB/...            images, mounts, Ray's own files

Namespaces and groups do not outlast a reboot, so a record names the boot that it is of.
"""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass, field
from pathlib import Path

from tonnage.base.records import write_atomically
from tonnage.base.system import UsageError
from tonnage.provision.lab.config import LabConfig, parse
from tonnage.provision.lab.nodes import NETWORKS, Node, lab_nodes

STATE_DIR = Path("/var/lib/tonnage-lab")
BOOT = Path("/proc/sys/kernel/random/boot_id")
SCHEMA = "tonnage.lab/1"
RECORD = "lab.json"


@dataclass(frozen=True)
class LabRecord:
    """A lab on file."""

    text: str
    """Its file."""
    network: int
    boot: str
    is_whole: bool = False
    """All of it was made."""
    faults: dict[str, dict[str, float | None]] = field(default_factory=dict)
    """By node, and by fault, with its factor."""
    cut_since: dict[str, float] = field(default_factory=dict)
    """When a node's link was cut, in seconds of this boot's clock."""
    ray_address: str | None = None
    ray_program: str | None = None

    @property
    def config(self) -> LabConfig:
        """What it was made of."""
        return parse(self.text, RECORD)

    @property
    def is_up(self) -> bool:
        """Whether all of it was made, and no reboot has come since."""
        return self.is_whole and self.boot == this_boot()

    def nodes(self, room: Path) -> list[Node]:
        """Its nodes."""
        description = self.config
        return lab_nodes(description, self.network, room / description.name)

    def write(self, room: Path) -> LabRecord:
        """Puts it on file, in place of what was there."""
        values = {"schema": SCHEMA, **dataclasses.asdict(self)}
        file = room / self.config.name / RECORD
        write_atomically(file, json.dumps(values, indent=1).encode() + b"\n")
        return self


def this_boot() -> str:
    """The kernel's name of the time since it started."""
    return BOOT.read_text().strip()


def lab_names(room: Path) -> list[str]:
    """The labs of which something is on file.

    Raises:
        UsageError: Who asks may not look.
    """
    try:
        return sorted(path.name for path in room.iterdir())
    except FileNotFoundError:
        return []
    except PermissionError:
        raise UsageError("only root may look at a lab: use sudo") from None


def read_record(room: Path, name: str) -> LabRecord | None:
    """The record of a lab; ``None`` if there is none.

    Raises:
        UsageError: It is of a version that is not known.
    """
    try:
        values = json.loads((room / name / RECORD).read_bytes())
    except FileNotFoundError:
        return None
    if values.pop("schema", None) != SCHEMA:
        raise UsageError(f"lab {name} was made by another version: tonnage lab down --lab {name}")
    return LabRecord(**values)


def require_up(room: Path, name: str | None) -> LabRecord:
    """The record of a lab that is up: of this name, or the only one.

    Raises:
        UsageError: There is none, or several and none was named, or it is not whole.
    """
    name = select_lab(room, name)
    if name is None:
        raise UsageError("no lab is up: make one with tonnage lab up FILE")
    found = read_record(room, name)
    if found is None or not found.is_whole:
        raise UsageError(f"lab {name} is not whole: undo it with tonnage lab down --lab {name}")
    if not found.is_up:
        raise UsageError(
            f"lab {name} went with a reboot: make it anew with tonnage lab up FILE, or undo what "
            f"is left with tonnage lab down --lab {name}"
        )
    return found


def select_lab(room: Path, name: str | None) -> str | None:
    """The lab of this name, or the only one; ``None`` if there is none at all.

    Raises:
        UsageError: There is none of this name, or there are several and none was named.
    """
    there = lab_names(room)
    if name is not None and name not in there:
        others = f": there are {', '.join(there)}" if there else ": none is up"
        raise UsageError(f"--lab {name}: there is no such lab{others}")
    if name is None and len(there) > 1:
        raise UsageError(f"labs {', '.join(there)} are up: say which with --lab NAME")
    return name or (there[0] if there else None)


def free_network(room: Path) -> int:
    """The first number that no lab's network has.

    Raises:
        UsageError: All are taken.
    """
    taken = {found.network for name in lab_names(room) if (found := read_record(room, name))}
    for number in NETWORKS:
        if number not in taken:
            return number
    raise UsageError("too many labs are up: end one with tonnage lab down")
