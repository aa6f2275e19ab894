"""Which runs a backtest may know: drawn at random, or named in a file.

A file's rows are ``job, strategy, draw, rank, machine_type, nodes``, and ``size_factor`` and
``repetition`` where a job has runs of several sizes or repetitions. The first k by rank of a
strategy's draw are "k runs". A job is named as in the backtest, or by its program if only one job
is of it. A size factor is relative to the median size of the job's runs, or to the least or the
largest, whichever fits the rows.
"""

import random
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tonnage.base.records.past_run import PastRun
from tonnage.catalog.csv_rows import CatalogError, CsvRow, read_rows

COLUMNS = ("job", "strategy", "draw", "rank", "machine_type", "nodes")
CLOSE = 0.02
"""Sizes that differ by less are the same."""


@dataclass(frozen=True)
class TrainingSet:
    """Which runs of each job are known, by their places among the job's, in order."""

    name: str
    places: Mapping[str, Sequence[int]]


def random_sets(
    jobs: Mapping[str, Sequence[PastRun]], count: int, runs: int, seed: int = 0
) -> list[TrainingSet]:
    """Sets of so many finished runs of each job."""
    dice = random.Random(seed)
    finished = {
        name: [place for place, run in enumerate(some) if run.outcome == "ok"]
        for name, some in jobs.items()
    }
    return [
        TrainingSet(
            f"random {number}",
            {
                name: dice.sample(some, min(runs, len(some) - 1))
                for name, some in finished.items()
                if len(some) > 1
            },
        )
        for number in range(1, count + 1)
    ]


def read_training_sets(
    path: Path, jobs: Mapping[str, Sequence[PastRun]], strategies: Sequence[str] = ()
) -> list[TrainingSet]:
    """The sets of a file that are of these jobs; a `CatalogError` names what is wrong in it."""
    header, rows = read_rows(path)
    missing = [name for name in COLUMNS if name not in header]
    if missing:
        raise CatalogError(f"{path}, row 1: missing column {', '.join(missing)}")
    names = _names(jobs)
    found: dict[str, dict[str, list[tuple[int, CsvRow]]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        job, strategy = names.get(row.required("job")), row.required("strategy")
        if job is not None and (not strategies or strategy in strategies):
            of_draw = found[f"{strategy} {row.required('draw')}"]
            of_draw[job].append((row.integer("rank") or 0, row))
    if not found:
        chosen = f" of {', '.join(strategies)}" if strategies else ""
        raise CatalogError(
            f"{path}: no training set{chosen} names a job of the table, which has {', '.join(jobs)}"
        )
    return [
        TrainingSet(
            name,
            {
                job: _places([row for _, row in sorted(some, key=lambda each: each[0])], jobs[job])
                for job, some in sets.items()
            },
        )
        for name, sets in found.items()
    ]


def _names(jobs: Mapping[str, Sequence[PastRun]]) -> dict[str, str]:
    """How files may call jobs."""
    found = {name: name for name in jobs}
    short: dict[str, set[str]] = defaultdict(set)
    for name, some in jobs.items():
        run = some[0]
        short[run.job].add(name)
        short["_".join(part for part in (run.job, run.data_label) if part)].add(name)
    return {each: names.pop() for each, names in short.items() if len(names) == 1} | found


def _places(rows: Sequence[CsvRow], runs: Sequence[PastRun]) -> list[int]:
    sizes = [run.data_bytes for run in runs if run.data_bytes]
    bases = [float(np.median(sizes)), min(sizes), max(sizes)] if sizes else [0.0]
    for base in bases:
        found = [_place(row, runs, base) for row in rows]
        if None not in found:
            return [place for place in found if place is not None]
    row = next(row for row in rows if _place(row, runs, bases[0]) is None)
    cluster = f"{row.text('nodes')} x {row.text('machine_type')}"
    raise row.error("machine_type", f"the table has no such run of {runs[0].name} on {cluster}")


def _place(row: CsvRow, runs: Sequence[PastRun], base: float) -> int | None:
    machine_type, nodes = row.required("machine_type"), row.integer("nodes")
    factor, repetition = row.number("size_factor"), row.integer("repetition")
    for place, run in enumerate(runs):
        same = (run.machine_type, run.nodes) == (machine_type, nodes)
        if same and base and factor and run.data_bytes:
            same = abs(run.data_bytes / (base * factor) - 1) < CLOSE
        if same and repetition in (None, run.repetition):
            return place
    return None
