"""Read a table of past runs, a CSV file with a row for each.

``job, machine_type, nodes, seconds`` are needed. Columns with these names are known, too:
``provider, framework, data_label, data_bytes, price_hour, disks, outcome, repetition, usd`` (of the
run). Any other is a parameter of the job, unless it says the same for all rows of a job or of a
machine type, or another word for each row, as a date does.
"""

import re
from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import get_args

from msgspec import structs

from tonnage.base.records.past_run import Outcome, PastRun
from tonnage.catalog.csv_rows import CatalogError, CsvRow, read_rows

NEEDED = ("job", "machine_type", "nodes", "seconds")
KNOWN = (
    *("provider", "framework", "data_label", "data_bytes", "price_hour", "disks", "outcome"),
    *("repetition", "usd"),
)
VOLUMES = re.compile(r"(?i)ebs|volume|\bpd\b|gp[23]|io[12]|network")
"""What those call disks behind the network who write tables."""
MOST_NODES = 1_000_000
LEAST_SECONDS, MOST_SECONDS = 1e-3, 1e9
LARGEST = 1e21


def read_runs(path: Path) -> list[PastRun]:
    """The runs of a table; a `CatalogError` names the row and the column of what is wrong."""
    header, rows = read_rows(path)
    missing = [name for name in NEEDED if name not in header]
    if missing:
        raise CatalogError(
            f"{path}, row 1: missing column {', '.join(missing)}; a table of runs has "
            f"{', '.join(NEEDED)}"
        )
    repeated = sorted({name for name in header if header.count(name) > 1})
    if repeated:
        raise CatalogError(f"{path}, row 1: repeated column {', '.join(repeated)}")
    if not rows:
        raise CatalogError(f"{path}: the table has no runs")
    others = [name for name in header if name not in (*NEEDED, *KNOWN)]
    return _without_constants([_run(row, others) for row in rows])


def _run(row: CsvRow, parameters: Sequence[str]) -> PastRun:
    outcome = row.text("outcome") or "ok"
    if outcome not in get_args(Outcome):
        raise row.error("outcome", f"{outcome!r} is none of {', '.join(get_args(Outcome))}")
    nodes = _above_zero(row, "nodes")
    seconds = row.number("seconds")
    if not nodes or nodes > MOST_NODES:
        raise row.error("nodes", f"a number of machines from 1 to {MOST_NODES:,} is needed")
    if not seconds or not LEAST_SECONDS <= seconds <= MOST_SECONDS:
        raise row.error("seconds", f"a time from {LEAST_SECONDS:g} to {MOST_SECONDS:g} s is needed")
    return PastRun(
        job=row.required("job"),
        machine_type=row.required("machine_type"),
        nodes=nodes,
        seconds=seconds,
        provider=(row.text("provider") or "aws").lower(),
        framework=row.text("framework") or "",
        data_label=row.text("data_label") or "",
        data_bytes=_above_zero(row, "data_bytes"),
        price_hour=_price(row, nodes, seconds),
        disks=_disks(row.text("disks") or ""),
        outcome=outcome,  # type: ignore[arg-type]
        repetition=_above_zero(row, "repetition") or 1,
        parameters={name: _value(row, name) for name in parameters if row.text(name)},
    )


def _disks(text: str) -> str:
    if not text:
        return ""
    return "volumes" if VOLUMES.search(text) else "local"


def _above_zero(row: CsvRow, column: str) -> int | None:
    found = row.integer(column)
    if found == 0:
        raise row.error(column, "is 0; leave unknown figures blank")
    return found


def _price(row: CsvRow, nodes: int, seconds: float) -> float | None:
    """Of a machine by the hour: as stated, or by what the run cost."""
    usd = row.price("usd")
    return row.price("price_hour") or (usd and usd / nodes / seconds * 3600)


def _value(row: CsvRow, name: str) -> float | str:
    text = row.required(name)
    try:
        value = float(text)
    except ValueError:
        return text
    if not abs(value) <= LARGEST:
        raise row.error(name, f"{text} is no number of a parameter; leave it blank")
    return value


def _without_constants(runs: list[PastRun]) -> list[PastRun]:
    """The runs without parameters that do not vary within a program, or only with the machine."""
    programs: dict[Hashable, list[PastRun]] = defaultdict(list)
    for run in runs:
        programs[run.program].append(run)
    kept: dict[Hashable, set[str]] = {
        program: {name for name in _parameters(some) if not _follows(some, name)}
        for program, some in programs.items()
    }
    return [
        structs.replace(
            run,
            parameters={
                name: value for name, value in run.parameters.items() if name in kept[run.program]
            },
        )
        for run in runs
    ]


def _parameters(runs: Iterable[PastRun]) -> set[str]:
    return {name for run in runs for name in run.parameters}


def _follows(runs: Sequence[PastRun], name: str) -> bool:
    """Whether a parameter is the same for all runs, for all of a machine type, or another word for
    each."""
    words = [value for run in runs if isinstance(value := run.parameters.get(name), str)]
    if len(words) == len(runs) > 1 and len({*words}) == len(words):
        return True
    by_type: dict[str, set[object]] = defaultdict(set)
    for run in runs:
        by_type[run.machine_type].add(run.parameters.get(name))
    return all(len(values) == 1 for values in by_type.values())


def by_job(runs: Iterable[PastRun]) -> Mapping[str, list[PastRun]]:
    """The runs of each job, by its name."""
    found: dict[str, list[PastRun]] = defaultdict(list)
    for run in runs:
        found[run.name].append(run)
    return found
