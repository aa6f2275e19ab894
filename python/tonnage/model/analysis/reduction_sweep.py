"""Summarise reductions of the same input by size of chunks and number of threads.

Values are medians, since a shared machine has slow moments but no fast ones.
"""

import json
from collections.abc import Sequence
from statistics import fmean, median

from tonnage.base.records import ReductionRecord
from tonnage.base.records.sweep import ReductionSweep, SweepCell, SweepResult

BARS = ("retrieval_seconds", "processing_seconds", "synchronisation_seconds")


def summarise_sweep(records: Sequence[ReductionRecord]) -> ReductionSweep:
    """The durations of at least one reduction, by input and then by chunks and threads."""
    records = sorted(records, key=lambda record: record.began_at)
    alike: dict[str, list[ReductionRecord]] = {}
    for record in records:
        alike.setdefault(_input_key(record), []).append(record)
    last = records[-1]
    return ReductionSweep(
        began_at=records[0].began_at,
        reductions=len(records),
        environment=last.environment,
        settings=last.settings,
        command=last.command,
        swept=[_result(each) for each in alike.values()],
        compared=[each.compared for each in records if each.compared],
    )


def _input_key(record: ReductionRecord) -> str:
    told = [record.job, record.bytes, record.rounds_here, len(record.workers)]
    names = ("inputs", "format", "memory_bytes", "assignment", "flags")
    return json.dumps([*told, *(record.settings.get(name) for name in names)])


def _result(records: list[ReductionRecord]) -> SweepResult:
    ways: dict[tuple[bool, int, int], list[ReductionRecord]] = {}
    for record in records:
        ways.setdefault(_cell_key(record), []).append(record)
    cells = [_cell(*way, ways[way]) for way in sorted(ways)]
    given = [place for place, cell in enumerate(cells) if not cell.found]
    best = min(given, key=lambda place: cells[place].seconds, default=None)
    found = [cell for cell in cells if cell.found]
    over, over_chosen = None, None
    if found and best is not None:
        over = found[0].seconds / cells[best].seconds
        again = _unbiased_best([ways[way] for way in sorted(ways) if not way[0]])
        over_chosen = None if again is None else found[0].seconds / again
    first = records[0]
    return SweepResult(
        job=first.job,
        inputs=list(first.settings["inputs"]),
        bytes=first.bytes,
        rounds=first.rounds_here,
        workers=len(first.workers),
        memory_bytes=first.settings["memory_bytes"],
        cells=cells,
        best=best,
        found_over_best=over,
        found_over_chosen=over_chosen,
    )


def _unbiased_best(cells: Sequence[Sequence[ReductionRecord]]) -> float | None:
    """The seconds of the best cell, without the bias of choosing it by the same runs.

    Leave one out: the other rounds choose the cell with the least median, and its seconds in this
    round count. The result is the median over rounds.
    """
    rounds = min(len(cell) for cell in cells)
    if rounds < 2:
        return None
    again = []
    for held in range(rounds):
        others = [
            median(record.seconds for place, record in enumerate(cell) if place != held)
            for cell in cells
        ]
        again.append(cells[others.index(min(others))][held].seconds)
    return median(again)


def _cell_key(record: ReductionRecord) -> tuple[bool, int, int]:
    """Whether both were tuned automatically; otherwise size of chunks and number of threads."""
    chunk_bytes, threads = (record.settings.get(name) for name in ("chunk_bytes", "threads"))
    if chunk_bytes is None and threads is None:
        return True, 0, 0
    tuning = record.tuning
    return False, chunk_bytes or tuning.chunk_bytes, threads or tuning.threads


def _cell(found: bool, chunk_bytes: int, threads: int, records: list[ReductionRecord]) -> SweepCell:
    tuning = records[-1].tuning

    def of_workers(name: str) -> float:
        return median(
            fmean(getattr(worker, name) for worker in record.workers) for record in records
        )

    return SweepCell(
        chunk_bytes=tuning.chunk_bytes if found else chunk_bytes,
        threads=tuning.threads if found else threads,
        found=found,
        reductions=len(records),
        seconds=median(record.seconds for record in records),
        cpu_seconds=median(record.cpu_seconds for record in records),
        **{name: of_workers(name) for name in BARS},
    )
