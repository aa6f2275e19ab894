"""What is to be rented, and what all documents that rent it share: names, set-up, placeholders."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from tonnage.base.records.plan import Candidate
from tonnage.catalog import Offer

GIB = 1 << 30
BOOT_GIB = 64
"""The system's disk, where a size has to be given: room for the system and for Tonnage."""
WHEELS = {"~/tonnage-wheels": "target/wheels"}
"""Where a node gets Tonnage from: ``make build`` puts the wheel into the second."""


class ExportError(Exception):
    """A candidate that cannot be handed over so; says why and what to do in one line."""


@dataclass(frozen=True)
class ExportedDocument:
    """A document, what to replace in it, and what else is to be done.

    ``replace`` has each placeholder as it stands in the document, and what belongs there.
    """

    document: dict[str, Any]
    replace: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Rental:
    """A candidate of a plan for a job, and the offer that it is of."""

    job: str
    candidate: Candidate
    offer: Offer
    spot: bool = False
    """Whether spare machines are asked for."""
    suffix: str = ""
    """What tells this fleet from others of the same job; empty: nothing has to."""

    @property
    def name(self) -> str:
        """What the fleet is called, in letters that every provider takes."""
        job = re.sub(r"[^a-z0-9]+", "-", self.job.lower()).strip("-")[:40] or "job"
        return "-".join(filter(None, ("tonnage", job, self.suffix)))

    @property
    def region(self) -> str:
        """Where; a placeholder where the catalog does not tell."""
        return self.offer.region or placeholder("region")

    @property
    def replace_region(self) -> dict[str, str]:
        """What to replace where the catalog does not tell the region."""
        said = "the region of the plan's prices, which the catalog does not tell"
        return {} if self.offer.region else {placeholder("region"): said}

    @property
    def system(self) -> str:
        """What an image has to hold."""
        return f"Ubuntu 24.04 for {self.offer.arch or 'the cores of ' + self.offer.type}"

    @property
    def local_disks(self) -> int | None:
        """How many of its own disks a node uses; ``None``: some, the catalog has no number."""
        if not self.candidate.own_disks:
            return 0
        counts = [each.count for each in self.offer.disks or () if each.total_bytes != 0]
        known = [count for count in counts if count is not None]
        return sum(known) if counts and len(known) == len(counts) else None

    @property
    def has_disks(self) -> bool:
        """Whether the job keeps anything on disks or volumes."""
        return self.candidate.own_disks or self.candidate.volumes is not None

    def install(self, packages: str = "") -> str:
        """The commands that install Tonnage on a node, and these packages beside it."""
        return f"packages='{packages}'\n" + _script("install.sh")

    def mount(self) -> str:
        """The commands that mount each disk of a node in a directory of its own."""
        volumes = self.candidate.volumes
        own = "some" if self.local_disks is None else self.local_disks
        return (
            f"local_disks={own}\nvolumes={volumes.count if volumes else 0}\n"
            f"volume_bytes={volumes.gib_each * GIB if volumes else 0}\n" + _script("mount.sh")
        )

    def wheel_notes(self) -> list[str]:
        """What is to be done before the document is used where the wheel is copied to nodes."""
        machine = ""
        if self.offer.arch == "arm64":
            machine = (
                f" on a machine of {self.offer.arch} (or make wheels, and copy its wheel there)"
            )
        return [f"run make build first{machine}, and use the document in that directory"]


def placeholder(name: str) -> str:
    """What stands in a document for what only the user can tell."""
    return f"REPLACE-{name}"


@cache
def _script(name: str) -> str:
    return (Path(__file__).parent / name).read_text()
