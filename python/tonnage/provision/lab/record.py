"""The record of a lab: its configuration and its state.

    DIR/                    locked while a lab is changed; survives a reboot, as images do
    DIR/LAB/lab.json        the record, written before anything is created
    DIR/LAB/journal.json    how to undo each step, see `undo_journal`
    DIR/LAB/LAB.csv         its catalog
    DIR/LAB/...             images, mounts, Ray's files

Namespaces and groups do not survive a reboot, so a record names its boot.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, ClassVar, Literal

from msgspec import Meta, field

from tonnage.base.records.base import Amount, Record, RecordError, Seconds
from tonnage.base.system import UsageError
from tonnage.provision.lab.config import LabConfig, parse
from tonnage.provision.lab.nodes import NETWORKS, Node, lab_nodes

FaultKind = Literal["cut-link", "slow-disk", "slow-link", "fill-disk", "kill"]

STATE_DIR = Path("/var/lib/tonnage-lab")
BOOT = Path("/proc/sys/kernel/random/boot_id")
RECORD = "lab.json"


class LabRecord(Record, frozen=True):
    """A lab on file."""

    SCHEMA: ClassVar[str] = "tonnage.lab/1"

    text: str
    """Its file."""
    network: Annotated[int, Meta(ge=NETWORKS.start, lt=NETWORKS.stop)]
    boot: str
    is_whole: bool = False
    """All of it was made."""
    faults: dict[str, dict[FaultKind, Amount | None]] = field(default_factory=dict)
    """By node, and by fault, with its factor."""
    cut_since: dict[str, Seconds] = field(default_factory=dict)
    """When a node's link was cut, in seconds of this boot's clock."""
    ray_address: str | None = None
    ray_program: str | None = None

    @property
    def config(self) -> LabConfig:
        return parse(self.text, RECORD)

    @property
    def is_up(self) -> bool:
        """Whether all of it was made, and no reboot has come since."""
        return self.is_whole and self.boot == this_boot()

    def nodes(self, room: Path) -> list[Node]:
        description = self.config
        return lab_nodes(description, self.network, room / description.name)

    def save(self, room: Path) -> LabRecord:
        self.write(room / self.config.name / RECORD)
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
        raise UsageError("inspecting a lab requires root; use sudo") from None


def read_record(room: Path, name: str) -> LabRecord | None:
    """The record of a lab; ``None`` if there is none.

    Raises:
        UsageError: It is damaged, or of a version that is not known.
    """
    file = room / name / RECORD
    try:
        found = LabRecord.read(file)
    except FileNotFoundError:
        return None
    except RecordError as why:
        raise UsageError(f"{why}; remove lab {name} with tonnage lab down") from why
    if found.config.name != name:
        raise UsageError(
            f"{file}: $.text: expected a lab named {name}, but found {found.config.name}; remove "
            "the lab with tonnage lab down"
        )
    return found


def require_up(room: Path, name: str | None) -> LabRecord:
    """The record of a lab that is up: of this name, or the only one.

    Raises:
        UsageError: There is none, or several and none was named, or it is not whole.
    """
    name = select_lab(room, name)
    if name is None:
        raise UsageError("no lab is running; create one with tonnage lab up FILE")
    found = read_record(room, name)
    if found is None or not found.is_whole:
        raise UsageError(f"lab {name} is incomplete; remove it with tonnage lab down")
    if not found.is_up:
        raise UsageError(
            f"lab {name} was lost in a reboot; create it again with tonnage lab up FILE, or remove "
            "what is left with tonnage lab down"
        )
    return found


def select_lab(room: Path, name: str | None) -> str | None:
    """The lab of this name, or the only one; ``None`` if there is none at all.

    Raises:
        UsageError: There is none of this name, or there are several and none was named.
    """
    there = lab_names(room)
    if name is not None and name not in there:
        others = f"; the labs are {', '.join(there)}" if there else "; none is running"
        raise UsageError(f"there is no lab {name}{others}", setting="lab")
    if name is None and len(there) > 1:
        raise UsageError(
            f"several labs are running ({', '.join(there)}); choose one", setting="lab"
        )
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
    raise UsageError("too many labs are running; remove one with tonnage lab down")
