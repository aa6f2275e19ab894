"""Import fio's logs: bandwidth, IOPS, latencies and latency histograms over time, one file per job.

The content is only numbers, so the file name determines their meaning (``..._bw.1.log``). Columns
are time in milliseconds, value, direction and block size; then, by version and options, offset,
priority and issue time, or a second value (the window's maximum) before the direction. A block size
of 0 means that a line is a window of time (``log_avg_msec``), otherwise it is one operation.

Latencies are in nanoseconds (fio 3) or microseconds (fio 2). Only a priority, which fio 2 does not
write, tells which; without one, latencies are left out.
"""

import re
from collections.abc import Iterable, Mapping
from pathlib import PurePath
from typing import Any, NamedTuple

from tonnage.base.records import Latency, Metric, Source
from tonnage.measure.importers import fio, fio_bins
from tonnage.measure.importers.metric import UnreadableFile, build_metric, require_any
from tonnage.measure.importers.text import integer, latency_of, lines

_NAME = re.compile(r"_(bw|iops|lat|slat|clat|hist|clat_hist)(?:\.\d+)?\.log$")
_FIELD = re.compile(r"[0-9]+|0x[0-9a-fA-F]{1,4}|-1")
_DIRECTIONS = {0: "read", 1: "write", 2: "trim"}
_MAX_COLUMNS = 8
_HISTOGRAM_COLUMNS = 3
_LATENCIES = {
    "clat": "completion",
    "slat": "submission",
    "lat": "the whole operation",
    "hist": "completion",
    "clat_hist": "completion",
}
_SOURCE = Source(tool=fio.TOOL)
_UNKNOWN = "unknown: nanoseconds for fio 3, microseconds for fio 2"


class _Line(NamedTuple):
    seconds: float
    value: int
    most: int
    block: int
    priority: bool
    """Whether there is a priority: hexadecimal, or too small for the offset of a block."""


def matches(text: str, name: str) -> bool:
    return _kind(name) is not None and looks_like_one(text)


def looks_like_one(text: str) -> bool:
    fields = _fields(text.partition("\n")[0])
    return len(fields) >= 4 and all(map(_FIELD.fullmatch, fields))


def read(text: str, name: str) -> list[Metric]:
    kind = _kind(name) or ""
    read_kind = _from_histogram if kind.endswith("hist") else _from_values
    return require_any(read_kind(kind, text, PurePath(name).name), "a line of a fio log")


def _kind(name: str) -> str | None:
    found = _NAME.search(PurePath(name).name)
    return found[1] if found else None


def _fields(line: str) -> list[str]:
    return [field.strip() for field in line.split(",")]


def _rows(text: str) -> Iterable[tuple[list[str], str]]:
    """Each line's fields and place; all lines have the same number of fields."""
    columns = None
    for at, line in lines(text):
        fields = _fields(line)
        if not line.strip():
            continue
        columns = columns or len(fields)
        if len(fields) != columns or not all(map(_FIELD.fullmatch, fields)):
            raise UnreadableFile(f"{columns} numbers, as in the first line", f"line {at}")
        yield fields, f"line {at}"


def _from_values(kind: str, text: str, name: str) -> list[Metric]:
    found: dict[str, list[_Line]] = {}
    rows = list(_rows(text))
    if rows and len(rows[0][0]) > _MAX_COLUMNS:
        raise UnreadableFile(f"at most {_MAX_COLUMNS} columns in a fio log", "line 1")
    both = _has_two_values([fields for fields, _ in rows])
    for fields, where in rows:
        direction, line = _line(fields, both, where)
        found.setdefault(direction, []).append(line)
    summarise = _rates if kind in ("bw", "iops") else _latencies
    return [
        summarise(kind, direction, held, {"file": name, "log": kind})
        for direction, held in found.items()
    ]


def _has_two_values(rows: list[list[str]]) -> bool:
    """Whether a second value precedes the direction (``log_window_value=both``)."""
    if not rows or len(rows[0]) < 6:
        return False
    plain = all(fields[2] in ("0", "1", "2") for fields in rows)
    return not plain and all(fields[3] in ("0", "1", "2") for fields in rows)


def _line(fields: list[str], both: bool, where: str) -> tuple[str, _Line]:
    shift = 1 if both else 0
    direction = _direction(fields[2 + shift], where)
    value = integer(fields[1], "a value", where)
    return direction, _Line(
        seconds=integer(fields[0], "milliseconds", where) / 1e3,
        value=value,
        most=integer(fields[2], "a window's maximum", where) if both else value,
        block=integer(fields[3 + shift], "a block size", where),
        priority=any(
            field in ("0", "1") or field.startswith("0x") for field in fields[4 + shift :]
        ),
    )


def _direction(field: str, where: str) -> str:
    direction = _DIRECTIONS.get(int(field)) if field in ("0", "1", "2") else None
    if direction is None:
        raise UnreadableFile("a direction (0, 1 or 2)", f"{where} column 3")
    return direction


def _rates(
    kind: str, direction: str, entries: list[_Line], details: Mapping[str, object]
) -> Metric:
    """Of windows, the mean and the series; of single operations, their total."""
    fields = _rate_details(entries)
    if _is_windowed(entries):
        details = {**details, "windows": len(entries)}
        if kind == "bw":
            series = [(line.seconds, line.value * 1024.0) for line in entries]
            mean = _mean(value for _, value in series)
            fields = {"bandwidth_bytes_per_second": mean, "series": series}
        else:
            rates = [[line.seconds, line.value] for line in entries]
            details["operations_per_second_series"] = rates
            fields = {"operations_per_second": _mean(line.value for line in entries)}
    return build_metric(source=_SOURCE, operation=direction, **fields, details=dict(details))


def _latencies(
    kind: str, direction: str, entries: list[_Line], details: Mapping[str, object]
) -> Metric:
    """Windows give only means; single operations give percentiles, too."""
    details = {**details, "latency_of": _LATENCIES[kind]}
    windowed = _is_windowed(entries)
    fields = {} if windowed else _rate_details(entries)
    mean = _mean(line.value for line in entries) / 1e9
    if not all(line.priority for line in entries):
        details["latency_unit"] = _UNKNOWN
    elif windowed:
        has_most = any(line.most != line.value for line in entries)
        most = max(line.most for line in entries) / 1e9 if has_most else None
        fields["latency_seconds"] = Latency(mean=mean, max=most)
        details["windows"] = len(entries)
        details["latency_seconds_series"] = [[line.seconds, line.value / 1e9] for line in entries]
    else:
        seconds = [line.value / 1e9 for line in entries]
        fields["latency_seconds"] = latency_of(seconds, mean)
    return build_metric(source=_SOURCE, operation=direction, **fields, details=details)


def _from_histogram(kind: str, text: str, name: str) -> list[Metric]:
    """Each line has the bins since the previous line."""
    found: dict[str, list[int]] = {}
    values: list[int] = []
    fio_version = ""
    for fields, where in _rows(text):
        if not values:
            known = fio_bins.values(len(fields) - _HISTOGRAM_COLUMNS)
            if known is None:
                raise UnreadableFile("a number of bins that fio uses", where)
            values, fio_version = known
        counts = [integer(field, "a count", where) for field in fields[_HISTOGRAM_COLUMNS:]]
        sums = found.setdefault(_direction(fields[1], where), [0] * len(values))
        for place, count in enumerate(counts):
            sums[place] += count
    per_second = 1e9 if fio_version == "3" else 1e6
    details = {"file": name, "log": kind, "latency_of": _LATENCIES[kind]}
    readings = []
    for direction, sums in found.items():
        bins = [(value, count) for value, count in zip(values, sums, strict=True) if count]
        listed = fio_bins.percentiles(bins, (50.0, 90.0, 99.0, 99.9))
        seconds = {
            at: None if value is None else value / per_second for at, value in listed.items()
        }
        readings.append(
            build_metric(
                source=_SOURCE,
                operation=direction,
                latency_seconds=Latency(
                    p50=seconds[50.0], p90=seconds[90.0], p99=seconds[99.0], p999=seconds[99.9]
                ),
                bins=[(value / per_second, count) for value, count in bins] or None,
                details={**details, "operations": sum(sums)},
            )
        )
    return readings


def _is_windowed(entries: list[_Line]) -> bool:
    return all(line.block == 0 for line in entries)


def _rate_details(entries: list[_Line]) -> dict[str, Any]:
    blocks = {line.block for line in entries}
    last = max(line.seconds for line in entries)
    return {
        "block_bytes": blocks.pop() if len(blocks) == 1 else None,
        "bandwidth_bytes_per_second": sum(line.block for line in entries) / last if last else None,
        "operations_per_second": len(entries) / last if last else None,
    }


def _mean(values: Iterable[float]) -> float:
    numbers = list(values)
    return sum(numbers) / len(numbers)
