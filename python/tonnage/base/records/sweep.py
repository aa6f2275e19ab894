"""What reductions of the same input took with various chunks and requests at once."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

from tonnage.base.records.base import Record
from tonnage.base.records.environment import Environment
from tonnage.base.records.run_comparison import RunComparison


@dataclass(frozen=True, kw_only=True)
class SweepCell:
    """Reductions in the same way: medians of theirs, and how many there were.

    With ``found`` neither chunks nor threads were given; they are the last one's. MATE-EC2's bars
    (``retrieval_seconds`` and so on) are means over workers, of all rounds.
    """

    chunk_bytes: int
    threads: int
    found: bool
    reductions: int
    seconds: float
    retrieval_seconds: float
    processing_seconds: float
    synchronisation_seconds: float
    cpu_seconds: float


@dataclass(frozen=True, kw_only=True)
class SweepResult:
    """The same reduction of the same input, cell by cell.

    ``best`` is the place of the fastest of those that were given; ``found_over_best`` what was
    found took, as a share of that. The fastest of many is so by luck as well:
    ``found_over_chosen`` is the share of what the cell takes once more that was the fastest in its
    other reductions; ``None`` with fewer than two of each.
    """

    job: str
    inputs: list[str]
    bytes: int
    rounds: int
    workers: int
    memory_bytes: int
    cells: list[SweepCell]
    best: int | None
    found_over_best: float | None
    found_over_chosen: float | None = None


@dataclass(frozen=True, kw_only=True)
class ReductionSweep(Record):
    """All reductions of some records, put together; ``command`` is the last one's."""

    SCHEMA: ClassVar[str] = "tonnage.sweep/1"

    began_at: str
    reductions: int
    environment: Environment
    settings: dict[str, Any]
    command: list[str]
    swept: list[SweepResult]
    compared: list[RunComparison] = field(default_factory=list)
    """Of those that followed a plan, in the order in which they began."""
