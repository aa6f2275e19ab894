"""The machines to rent for a plan's candidate: their name, set-up scripts and placeholders."""

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tonnage.base.records.plan import Candidate
from tonnage.catalog import Offer

GIB = 1 << 30
BOOT_GIB = 64
"""Size of the system disk where one is required."""
WHEELS = {"~/tonnage-wheels": "target/wheels"}
"""Directory of the wheel on a node, and where ``make build`` puts it."""


@dataclass(frozen=True)
class Rental:
    """A plan's candidate for a job, and its offer."""

    job: str
    candidate: Candidate
    offer: Offer
    spot: bool = False
    """Whether to rent spot instances."""
    suffix: str = ""
    """Distinguishes clusters of the same job; may be empty."""

    @property
    def name(self) -> str:
        """The cluster's name, valid for every provider."""
        job = re.sub(r"[^a-z0-9]+", "-", self.job.lower()).strip("-")[:40] or "job"
        return "-".join(filter(None, ("tonnage", job, self.suffix)))

    @property
    def region(self) -> str:
        """The region, or a placeholder."""
        return self.offer.region or placeholder("region")

    @property
    def replace_region(self) -> dict[str, str]:
        description = "the region of the plan's prices, which the catalog does not state"
        return {} if self.offer.region else {placeholder("region"): description}

    @property
    def system(self) -> str:
        return f"Ubuntu 24.04 for {self.offer.arch or 'the architecture of ' + self.offer.type}"

    @property
    def local_disks(self) -> int | None:
        """The number of local disks that a node uses; ``None`` if the catalog has none."""
        if not self.candidate.own_disks:
            return 0
        counts = [each.count for each in self.offer.disks or () if each.total_bytes != 0]
        known = [count for count in counts if count is not None]
        return sum(known) if counts and len(known) == len(counts) else None

    @property
    def has_disks(self) -> bool:
        return self.candidate.own_disks or self.candidate.volumes is not None

    def install(self, packages: str = "") -> str:
        return f"packages='{packages}'\n" + _script("install.sh")

    def mount(self) -> str:
        """The commands that mount each disk in its own directory."""
        volumes = self.candidate.volumes
        own = "some" if self.local_disks is None else self.local_disks
        return (
            f"local_disks={own}\nvolumes={volumes.count if volumes else 0}\n"
            f"volume_bytes={volumes.gib_each * GIB if volumes else 0}\n" + _script("mount.sh")
        )

    def wheel_notes(self) -> list[str]:
        """The steps before using a document that copies the wheel to nodes."""
        machine = ""
        if self.offer.arch == "arm64":
            machine = (
                f" on an {self.offer.arch} machine (or run make wheels, and copy the wheel there)"
            )
        return [f"run make build first{machine}, and use the document in the same directory"]


def placeholder(name: str) -> str:
    return f"REPLACE-{name}"


@cache
def _script(name: str) -> str:
    return (Path(__file__).parent / name).read_text()
