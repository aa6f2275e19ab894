"""What a job did."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from tonnage.artifacts.artifact import Artifact
from tonnage.artifacts.environment import Environment
from tonnage.artifacts.phase import Phase


@dataclass(frozen=True, kw_only=True)
class RunRecord(Artifact):
    """What a job did.

    Of a MapReduce ``records`` are those that were read, and ``checksum`` is that of the shuffled
    blocks; what was ``shuffled`` and ``written`` is told for it alone.
    """

    SCHEMA: ClassVar[str] = "tonnage.run/1"

    job: str
    began_at: str
    command: list[str]
    environment: Environment
    settings: dict[str, Any]
    records: int
    bytes: int
    checksum: str
    seconds: float
    cpu_seconds: float
    peak_memory_bytes: int
    repartitioned_bytes: int = 0
    shuffled_records: int | None = None
    shuffled_bytes: int | None = None
    written_records: int | None = None
    written_bytes: int | None = None
    phases: list[Phase]
