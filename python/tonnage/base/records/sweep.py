"""Reductions of the same input with several chunk sizes and numbers of requests at once."""

from typing import Any, ClassVar

from msgspec import field

from tonnage.base.records.base import Amount, Count, Record, Seconds, Struct
from tonnage.base.records.environment import Environment
from tonnage.base.records.run_comparison import RunComparison


class SweepCell(Struct, frozen=True, kw_only=True):
    """Medians of reductions with the same settings.

    ``found``: chunks and threads were tuned. MATE-EC2's bars are means over workers.
    """

    chunk_bytes: Count
    threads: Count
    found: bool
    reductions: Count
    seconds: Seconds
    retrieval_seconds: Seconds
    processing_seconds: Seconds
    synchronisation_seconds: Seconds
    cpu_seconds: Seconds


class SweepResult(Struct, frozen=True, kw_only=True):
    """The same reduction of the same input, cell by cell.

    ``best`` is the fastest given cell, ``found_over_best`` the tuned one's time over its.
    ``found_over_chosen`` is without the luck of choosing it by the same runs; ``None`` with fewer
    than two of each.
    """

    job: str
    inputs: list[str]
    bytes: Count
    rounds: Count
    workers: Count
    memory_bytes: Count
    cells: list[SweepCell]
    best: Count | None
    found_over_best: Amount | None
    found_over_chosen: Amount | None = None


class ReductionSweep(Record, frozen=True, kw_only=True):
    SCHEMA: ClassVar[str] = "tonnage.sweep/1"

    began_at: str
    reductions: Count
    environment: Environment
    settings: dict[str, Any]
    command: list[str]
    swept: list[SweepResult]
    compared: list[RunComparison] = field(default_factory=list)
    """Of those that followed a plan, in the order of their starts."""
