"""One run of one graph, as its probes saw it."""

from typing import Any

from tonnage.base.records.base import Count, Seconds, Struct
from tonnage.base.records.known_keys import DiskMode, check_known_keys


class Stage(Struct, frozen=True, kw_only=True):
    name: str
    kind: str
    workers: Count
    bytes: Count
    records: Count
    busy_seconds: Seconds
    starved_seconds: Seconds
    blocked_seconds: Seconds
    cpu_seconds: Seconds
    memory_bytes: Count
    config: dict[str, Any]


class Phase(Struct, frozen=True, kw_only=True):
    name: str
    graph: str
    began_seconds: Seconds
    seconds: Seconds
    bottleneck: str
    memory_bytes: Count
    disk_modes: list[dict[str, Any]]
    stages: list[Stage]

    def __post_init__(self) -> None:
        for at, mode in enumerate(self.disk_modes):
            check_known_keys(mode, DiskMode, f"disk_modes[{at}]")
