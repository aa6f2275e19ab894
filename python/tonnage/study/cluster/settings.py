"""The settings of a study of a cluster."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tonnage.measure.disk import split_read_write


@dataclass(frozen=True)
class ClusterStudySettings:
    cluster: str
    """The cluster's address, as `tonnage.cluster.ray_adapter.attached` takes it."""
    directories: tuple[Path, ...]
    """Of each machine: the first half holds input and output, the rest scratch."""
    size_bytes: int | None
    memory_bytes: int
    """Of each machine."""
    durability: str
    deadline_seconds: float | None
    catalogs: tuple[str, ...]
    out: Path

    @property
    def data(self) -> tuple[Path, ...]:
        return split_read_write(self.directories)[0]

    @property
    def scratch(self) -> tuple[Path, ...]:
        return split_read_write(self.directories)[1]

    @property
    def recorded(self) -> dict[str, Any]:
        """What has to be the same for a study to be resumed."""
        return {
            "fleet": self.cluster,
            "directories": [str(path) for path in self.directories],
            "size_bytes": self.size_bytes,
            "memory_bytes": self.memory_bytes,
            "durability": self.durability,
            "deadline_seconds": self.deadline_seconds,
            "catalogs": list(self.catalogs),
        }
