"""Reductions of the same input with several chunk sizes and numbers of requests at once."""

from __future__ import annotations

from typing import Any, ClassVar

from msgspec import field

from tonnage.base.records.base import Amount, Count, Record, Seconds, Struct
from tonnage.base.records.environment import Environment
from tonnage.base.records.run_comparison import RunComparison


class SweepCell(Struct, frozen=True, kw_only=True):
    """Reductions in the same way: medians of theirs, and how many there were.

    With ``found`` neither chunks nor threads were given; they are the last one's. MATE-EC2's bars
    (``retrieval_seconds`` and so on) are means over workers, of all rounds.
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

    ``best`` is the place of the fastest of those that were given; ``found_over_best`` what was
    found took, as a share of that. The fastest of many is so by luck as well:
    ``found_over_chosen`` is the share of what the cell takes once more that was the fastest in its
    other reductions; ``None`` with fewer than two of each.
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
    """All reductions of some records, put together; ``command`` is the last one's."""

    SCHEMA: ClassVar[str] = "tonnage.sweep/1"

    began_at: str
    reductions: Count
    environment: Environment
    settings: dict[str, Any]
    command: list[str]
    swept: list[SweepResult]
    compared: list[RunComparison] = field(default_factory=list)
    """Of those that followed a plan, in the order in which they began."""
