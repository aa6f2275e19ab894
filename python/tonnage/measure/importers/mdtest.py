"""Import mdtest's summary and rank details: operations per second on files, directories, trees.

The rate is the mean of all iterations. Skipped operations have a rate of zero, and are left out.
"""

import re
from collections.abc import Iterator

from tonnage.base.records import Metric, Source
from tonnage.measure.importers.metric import UnreadableFile, build_metric, require_any
from tonnage.measure.importers.text import lines, number

TOOL = "mdtest"

_LAUNCHED = re.compile(
    r"mdtest-(\S+) was launched with ([0-9]{1,9}) total task\(s\) on ([0-9]{1,9}) node"
)
_SUMMARY = re.compile(r"SUMMARY (rate|time).*?\(of ([0-9]{1,9}) iterations?\)")
_ROW = re.compile(r"\s+(Directory|File|Tree) (\w+)\s*:?\s+([\d.\sa-z-]+)")
_ITEMS = re.compile(r"[0-9]+ tasks, ([0-9]{1,18}) (\S+)")
_OPERATIONS = {
    "creation": "create",
    "stat": "stat",
    "read": "read",
    "rename": "rename",
    "removal": "remove",
}
_RANKS_HEADER = "rank,items,rate-"
_ALL_RANKS = "all"
# Results of a division by a time of zero: the operation was skipped, or not measured.
_NO_NUMBERS = ("inf", "nan", "-nan", "")
# An operation that took no longer than the clock's resolution was not measured.
_CLOCK_SECONDS = 1.2e-6


def matches(text: str) -> bool:
    return bool(
        re.search(r"^mdtest-\S+ was launched", text, re.MULTILINE) or text.startswith(_RANKS_HEADER)
    )


def read(text: str) -> list[Metric]:
    read_kind = _from_ranks if text.startswith(_RANKS_HEADER) else _from_summary
    return require_any(read_kind(text), "an mdtest rate")


def _from_summary(text: str) -> Iterator[Metric]:
    source, tasks = Source(tool=TOOL), None
    kind, details = "", {}
    finished = True
    for at, line in lines(text):
        if found := _LAUNCHED.search(line):
            source, tasks = Source(tool=TOOL, version=found[1]), int(found[2])
            kind, details, finished = "", {"nodes": int(found[3])}, False
        elif found := _ITEMS.match(line):
            details = {**details, "items": int(found[1])}
        elif found := _SUMMARY.search(line):
            kind, details = found[1], {**details, "iterations": int(found[2])}
        elif kind and (found := _ROW.fullmatch(line)):
            reading = _from_row(source, tasks, kind, details, found, f"line {at}")
            if reading:
                yield reading
        elif line.startswith("-- finished"):
            finished = True
    if not finished:
        raise UnreadableFile(
            '"-- finished at" at the end of complete mdtest output', "the last line"
        )


def _from_row(
    source: Source,
    tasks: int | None,
    kind: str,
    details: dict[str, int],
    row: re.Match[str],
    where: str,
) -> Metric | None:
    """A row ends with the maximum, minimum, mean and deviation over the iterations."""
    fields = row[3].split()
    if len(fields) not in (4, 7):
        raise UnreadableFile("four figures, or three for ranks and four for iterations", where)
    figures = [_figure(field, where) for field in fields[-4:]]
    most, least, mean, deviation = figures
    if not mean:
        return None
    of = "operations_per_second" if kind == "rate" else "seconds"
    return build_metric(
        source=source,
        operation=_OPERATIONS.get(row[2], "other"),
        concurrency=tasks,
        operations_per_second=mean if kind == "rate" else None,
        details={
            **details,
            "object": row[1].lower(),
            "tool_operation": f"{row[1]} {row[2]}",
            f"mean_{of}": mean,
            f"most_{of}": most,
            f"least_{of}": least,
            f"deviation_{of}": deviation,
        },
    )


def _from_ranks(text: str) -> Iterator[Metric]:
    """For each operation the mean of the lines of all ranks, one per iteration."""
    heading, *_ = text.split("\n", 1)
    columns = heading.rstrip("\r").split(",")
    rates: dict[str, list[float]] = {}
    ranks = set()
    for at, line in lines(text):
        fields = line.split(",")
        if at == 1 or not line.strip():
            continue
        # Only one rank does operations on trees: they are missing in the others' lines.
        if fields[0] == _ALL_RANKS:
            if len(fields) != len(columns):
                raise UnreadableFile(f"{len(columns)} columns, as in the header", f"line {at}")
            for operation, rate in _rates(columns, fields, f"line {at}"):
                rates.setdefault(operation, []).append(rate)
        elif re.fullmatch(r"[0-9]{1,9}", fields[0]) and len(fields) <= len(columns):
            ranks.add(fields[0])
        else:
            raise UnreadableFile("the line of a rank", f"line {at}")
    for name, values in rates.items():
        thing, _, operation = name.partition(" ")
        yield build_metric(
            source=Source(tool=TOOL),
            operation=_OPERATIONS.get(operation, "other"),
            concurrency=len(ranks) or None,
            operations_per_second=sum(values) / len(values),
            details={"object": thing.lower(), "tool_operation": name, "lines": len(values)},
        )


def _rates(columns: list[str], fields: list[str], where: str) -> Iterator[tuple[str, float]]:
    row = dict(zip(columns, fields, strict=True))
    for column, value in row.items():
        operation = column.removeprefix("rate-")
        if operation == column:
            continue
        rate = _figure(value, where)
        seconds = _figure(row.get(f"time-{operation}", ""), where)
        if rate and seconds and seconds > _CLOCK_SECONDS:
            yield operation, rate


def _figure(text: str, where: str) -> float | None:
    return None if text in _NO_NUMBERS else number(text, "a figure", where)
