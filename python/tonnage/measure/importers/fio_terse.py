"""Import fio's terse output, versions 2 to 5: a line of fields for each job.

The fields depend only on the version: version 3 and the oldest of 2 have no trims, 5 adds figures
for each direction. Bandwidth is in KiB/s, latency in microseconds. The line does not state the
job's options: access pattern, block size, queue depth and direct I/O are not known.
"""

import re
from collections.abc import Iterator, Mapping

from tonnage.base.records import Latency, Metric, Source
from tonnage.measure.importers import fio
from tonnage.measure.importers.metric import UnreadableFile, build_metric, require_any
from tonnage.measure.importers.text import NUMBER, integer, lines, number

_LINE = re.compile(r"(?:[345];fio-[^;]*|2;[^;]*);[^;]*;\d+;-?\d+;\d+;\d+;|2;[^;]*;\d+;-?\d+;\d+;")
_PERCENTILE = re.compile(r"([0-9.]+)%=([0-9]+)")

_BEFORE_PERCENTILES = 12
# Total latency, bandwidth; from version 5 also samples of bandwidth, and IOPS.
_AFTER_PERCENTILES = {2: 9, 3: 9, 4: 9, 5: 15}
_DIRECTIONS = {2: ("read", "write", "trim"), 3: ("read", "write")}
_ALL_DIRECTIONS = ("read", "write", "trim")
# User and system time, context switches, faults; depths; latencies in micro- and milliseconds.
_JOB_FIELDS = 5 + 7 + 10 + 12
_DISK_FIELDS = 9
_MAX_LAST_FIELDS = 3


def matches(text: str) -> bool:
    return any(_LINE.match(line) for _, line in lines(text))


def read(text: str) -> list[Metric]:
    """Read all terse lines; other lines are warnings, and skipped."""
    results = (
        metric
        for at, line in lines(text)
        if _LINE.match(line)
        for metric in _from_line(line.split(";"), f"line {at}")
    )
    return require_any(results, "a job with I/O in fio's terse output")


def _from_line(fields: list[str], where: str) -> Iterator[Metric]:
    terse = int(fields[0])
    source = Source(tool=fio.TOOL, version=fields[1].removeprefix("fio-") if terse > 2 else None)
    at = 2 if terse > 2 else 1
    if len(fields) < at + 3:
        raise UnreadableFile(f"a complete line of fio's terse output, version {terse}", where)
    details = {
        "job": fields[at],
        "group": integer(fields[at + 1], "a group", where),
        "error": fields[at + 2] if fields[at + 2] != "0" else None,
    }
    at += 3
    sides = {}
    for direction in _DIRECTIONS.get(terse, _ALL_DIRECTIONS):
        if terse == 2 and direction == "trim" and _is_cpu(fields, at):
            break
        side, at = _side(fields, at, terse, f"{where} field {at + 1}")
        sides[direction] = side
    _check_rest(fields, at, terse, where)
    for direction, side in sides.items():
        if side.moved:
            yield side.reading(source, direction, details)


def _is_cpu(fields: list[str], at: int) -> bool:
    """Whether the job's CPU usage is next: version 2 had no trims at first."""
    return at < len(fields) and fields[at].endswith("%")


def _check_rest(fields: list[str], at: int, terse: int, where: str) -> None:
    """Raise `UnreadableFile` for a line that ends early."""
    rest = len(fields) - at - _JOB_FIELDS
    last = at + _JOB_FIELDS - 1
    odd = rest % _DISK_FIELDS if rest > 0 else rest
    if rest < 0 or odd > _MAX_LAST_FIELDS or not fields[last].endswith("%"):
        raise UnreadableFile(f"a complete line of fio's terse output, version {terse}", where)
    if rest and not odd and not fields[-1].endswith("%"):
        raise UnreadableFile("a disk's utilisation in percent", f"the end of {where}")


class _Side:
    def __init__(self, numbers: list[float], listed: dict[float, float]) -> None:
        self.moved, self.kib, self.iops, self.milliseconds = numbers[:4]
        self.most, self.mean = numbers[9], numbers[10]
        self.whole_mean = numbers[_BEFORE_PERCENTILES + 2]
        self.listed = listed

    def reading(self, source: Source, direction: str, details: Mapping[str, object]) -> Metric:
        percents = {at: value / 1e6 for at, value in self.listed.items()}
        measured = self.most > 0 or self.mean > 0
        return build_metric(
            source=source,
            operation=direction,
            bandwidth_bytes_per_second=self.kib * 1024,
            operations_per_second=self.iops,
            latency_seconds=Latency(
                mean=self.mean / 1e6,
                p50=percents.get(50.0),
                p90=percents.get(90.0),
                p99=percents.get(99.0),
                p999=percents.get(99.9),
                max=self.most / 1e6,
            )
            if measured
            else Latency(),
            details={
                **details,
                "bytes": self.moved * 1024,
                "seconds": self.milliseconds / 1e3,
                "whole_latency_mean_seconds": self.whole_mean / 1e6,
                "percentiles_seconds": {f"{at:g}": value for at, value in percents.items()},
            },
        )


def _side(fields: list[str], at: int, terse: int, where: str) -> tuple[_Side, int]:
    behind = at + _BEFORE_PERCENTILES
    listed = {}
    while behind < len(fields) and "%=" in fields[behind]:
        found = _PERCENTILE.fullmatch(fields[behind])
        if not found or not NUMBER.fullmatch(found[1]) or len(found[2]) > 18:
            raise UnreadableFile("a percentile and its microseconds", where)
        if 0 < float(found[1]) <= 100:
            listed[float(found[1])] = float(found[2])
        behind += 1
    end = behind + _AFTER_PERCENTILES[terse]
    if end > len(fields):
        raise UnreadableFile(f"a complete line of fio's terse output, version {terse}", where)
    held = fields[at : at + _BEFORE_PERCENTILES] + fields[behind:end]
    numbers = [number(field.removesuffix("%"), "a figure", where) for field in held]
    return _Side(numbers, listed), end
