"""One run of one graph, as its probes saw it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Stage:
    """What a stage of a graph did (idea 2 of the design: every stage is probed)."""

    name: str
    kind: str
    workers: int
    bytes: int
    records: int
    busy_seconds: float
    starved_seconds: float
    blocked_seconds: float
    cpu_seconds: float
    memory_bytes: int
    config: dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Phase:
    """One run of one graph."""

    name: str
    graph: str
    began_seconds: float
    seconds: float
    bottleneck: str
    memory_bytes: int
    disk_modes: list[dict[str, Any]]
    stages: list[Stage]
