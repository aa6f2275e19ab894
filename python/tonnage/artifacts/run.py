"""What a job did."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

from tonnage.artifacts.artifact import Artifact
from tonnage.artifacts.environment import Environment
from tonnage.artifacts.phase import Phase


@dataclass(frozen=True, kw_only=True)
class RunRecord(Artifact):
    """What a job did. Of object storage: how many ``requests``, ``retries`` and ``errors``."""

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
    requests: dict[str, Any] = field(default_factory=dict)
    phases: list[Phase]
