"""Import warp's results: JSON (--json, or from --benchdata), operations as CSV, and its text.

A metric is one kind of request. warp leaves the beginning and the end of a run out of its rates;
for single operations in CSV the rates here cover the whole time. Latency is that of a request; the
time to its first byte is among the details.
"""

import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import NamedTuple

from tonnage.base.records import Latency, Metric, Source
from tonnage.measure.importers.json_reader import JsonValue
from tonnage.measure.importers.metric import UnreadableFile, build_metric, require_any
from tonnage.measure.importers.text import (
    NUMBER,
    duration_seconds,
    integer,
    latency_of,
    lines,
    number,
)

TOOL = "warp"

_OPERATIONS = {
    "GET": "get",
    "PUT": "put",
    "DELETE": "remove",
    "STAT": "stat",
    "LIST": "list",
    "PUTPART": "put",
    "MULTIPUT": "put",
}
_UNITS = {"B/s": 1, "KiB/s": 1 << 10, "MiB/s": 1 << 20, "GiB/s": 1 << 30, "TiB/s": 1 << 40}
_CSV_HEADER = "idx\tthread\top\t"
_REPORT = re.compile(r"(?:Report|Operation): ([A-Z]+)\b.*")
_CONCURRENCY = re.compile(r"Concurrency: ([0-9]{1,9})\b")
_AVERAGE = re.compile(r" ?\* Average: (?:([0-9.]+) ?([KMGT]?i?B/s), )?([0-9.]+) (?:obj|ops)/s.*")
_TIMES = re.compile(r" ?\* (Reqs|TTFB): (.{0,400})")
_FIRST_BYTE = {"mean": "Avg", "p50": "Median", "p90": "90th", "p99": "99th", "max": "Worst"}
_TIME = re.compile(r"([A-Za-z0-9]+%?(?:th)?): (\S+?)(?:,|\s|$)")
_STAMP = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?(Z|[+-]\d\d:\d\d)")
_NANO = 1_000_000_000


def matches(document: JsonValue) -> bool:
    """Whether this is warp's JSON, in the current format or that of --full and older versions."""
    return "by_op_type" in document or ("operations" in document and "mixed" in document)


def matches_text(text: str) -> bool:
    return text.startswith(_CSV_HEADER) or any(
        _REPORT.match(line) and _CONCURRENCY.search(text) and "* Average:" in text
        for _, line in lines(text)
    )


def read(documents: list[JsonValue]) -> list[Metric]:
    found: list[Metric] = []
    for document in documents:
        read_kind = _from_aggregate if "by_op_type" in document else _from_operations
        found += read_kind(document)
    return require_any(found, "a warp result", documents[0].path)


def read_text(text: str) -> list[Metric]:
    results = _from_csv(text) if text.startswith(_CSV_HEADER) else _from_report(text)
    return require_any(results, "a warp result")


def _from_aggregate(document: JsonValue) -> Iterator[Metric]:
    if document.object().get("final") is not True:
        raise UnreadableFile("a final result (true)", f"{document.path}.final")
    source = Source(tool=TOOL, version=document.optional_text("warp_version") or None)
    command = document.optional_text("commandline")
    for name, operation in document.member("by_op_type").members():
        requests = [
            segment
            for _, segments in operation.member("requests_by_client").members()
            for segment in segments.items()
        ]
        yield _reading(source, name, operation, requests, {"command": command})


def _from_operations(document: JsonValue) -> Iterator[Metric]:
    """warp marks preparations and too short operations as skipped."""
    for operation in document.member("operations").items():
        if operation.object().get("skipped") is not True:
            name = operation.member("type").text()
            yield _reading(Source(tool=TOOL), name, operation, [operation], {})


def _reading(
    source: Source,
    name: str,
    operation: JsonValue,
    requests: list[JsonValue],
    details: Mapping[str, object],
) -> Metric:
    throughput = operation.member("throughput")
    seconds = throughput.member("measure_duration_millis").number() / 1e3
    moved = throughput.member("bytes").number()
    done = throughput.member("objects").number() or throughput.member("ops").number()
    latency, object_bytes, first_byte = _requests(requests)
    return build_metric(
        source=source,
        operation=_OPERATIONS.get(name, "other"),
        block_bytes=object_bytes,
        concurrency=operation.optional_int("concurrency") or None,
        bandwidth_bytes_per_second=moved / seconds if seconds and moved else None,
        operations_per_second=done / seconds if seconds else None,
        latency_seconds=latency,
        series=_series(throughput) if moved else None,
        details={
            **details,
            "tool_operation": name,
            "seconds": seconds,
            "requests": operation.optional_int("total_requests") or operation.optional_int("n"),
            "errors": operation.optional_int("total_errors") or operation.optional_int("errors"),
            "first_byte_seconds": first_byte or None,
        },
    )


def _requests(segments: list[JsonValue]) -> tuple[Latency, int | None, dict[str, float]]:
    """The latency over all segments of all clients, as far as warp states it.

    A time is a sum over ``merged_entries``, apart from the slowest and the fastest. So several
    entries have no percentiles: those of parts cannot be combined. For objects of several sizes
    warp gives only means, by size.
    """
    single = [node for segment in segments if (node := segment.get("single_sized_requests"))]
    several = [
        size
        for segment in segments
        if (node := segment.get("multi_sized_requests")) and node.get("by_size")
        for size in node.member("by_size").items()
    ]
    single = [node for node in single if node.object().get("skipped") is not True]
    if not single:
        requests = sum(node.member("requests").number() for node in several)
        total = sum(
            node.member("avg_duration_millis").number()
            / _merged(node)
            * node.member("requests").number()
            for node in several
        )
        mean = total / requests / 1e3 if requests else None
        return Latency(mean=mean), None, {}

    sizes = {node.member("obj_size").number() / _merged(node) for node in single}
    latency = Latency(
        mean=_mean(single, single, "dur_avg_millis"),
        p50=_whole_percentile(single, single, "dur_median_millis"),
        p90=_whole_percentile(single, single, "dur_90_millis"),
        p99=_whole_percentile(single, single, "dur_99_millis"),
        max=max(node.member("slowest_millis").number() for node in single) / 1e3,
    )
    block = sizes.pop() if len(sizes) == 1 else 0.0
    return latency, round(block) or None, _first_byte(single)


def _mean(segments: list[JsonValue], nodes: list[JsonValue], name: str) -> float | None:
    weights = [node.member("requests").number() for node in segments]
    means = [
        node.member(name).number() / _merged(segment)
        for node, segment in zip(nodes, segments, strict=True)
    ]
    total = sum(weights)
    if not total:
        return None
    return sum(mean * weight for mean, weight in zip(means, weights, strict=True)) / total / 1e3


def _whole_percentile(segments: list[JsonValue], nodes: list[JsonValue], name: str) -> float | None:
    alone = len(segments) == 1 and _merged(segments[0]) == 1
    return nodes[0].member(name).number() / 1e3 if alone else None


def _first_byte(single: list[JsonValue]) -> dict[str, float]:
    segments = [node for node in single if node.get("first_byte")]
    if not segments:
        return {}
    first_bytes = [node.member("first_byte") for node in segments]
    names = {"p50": "median_millis", "p90": "p90_millis", "p99": "p99_millis"}
    found = {to: _whole_percentile(segments, first_bytes, name) for to, name in names.items()}
    found["mean"] = _mean(segments, first_bytes, "average_millis")
    found["max"] = max(node.member("slowest_millis").number() for node in first_bytes) / 1e3
    return {name: value for name, value in found.items() if value is not None}


def _merged(node: JsonValue) -> int:
    return node.optional_int("merged_entries") or 1


def _series(throughput: JsonValue) -> list[tuple[float, float]] | None:
    """The rate at the end of each segment; warp sorts them by rate."""
    segmented = throughput.get("segmented")
    if not segmented:
        return None
    length = segmented.member("segment_duration_millis").number() / 1e3
    rates = sorted(
        (_stamp(node.member("start").text(), node.path), node.member("bytes_per_sec").number())
        for node in segmented.member("segments").items()
    )
    return [((start - rates[0][0]) / _NANO + length, rate) for start, rate in rates] or None


def _stamp(text: str, where: str) -> int:
    """Nanoseconds since the epoch."""
    found = _STAMP.fullmatch(text)
    if not found:
        raise UnreadableFile("a time like 2026-01-31T12:00:00Z", where)
    try:
        moment = datetime.fromisoformat(found[1] + found[3].replace("Z", "+00:00"))
        return int(moment.timestamp()) * _NANO + int((found[2] or "").ljust(9, "0"))
    except (ValueError, OverflowError):
        raise UnreadableFile("a time like 2026-01-31T12:00:00Z", where) from None


class _Request(NamedTuple):
    thread: str
    size: int
    start: int
    end: int
    seconds: float


def _from_csv(text: str) -> Iterator[Metric]:
    columns: list[str] = []
    by_name: dict[str, list[_Request]] = {}
    errors: dict[str, int] = {}
    command = None
    for at, line in lines(text):
        where = f"line {at}"
        fields = line.split("\t")
        if at == 1:
            columns = fields
        elif line.startswith("#"):
            command = line[1:].strip()
        elif line.strip():
            if len(fields) != len(columns):
                raise UnreadableFile(f"{len(columns)} fields, as in the header", where)
            row = dict(zip(columns, fields, strict=True))
            name, request = _request(row, where)
            if row.get("error"):
                errors[name] = errors.get(name, 0) + 1
            else:
                by_name.setdefault(name, []).append(request)
    for name, requests in by_name.items():
        yield _from_requests(
            name, requests, {"command": command, "errors": errors.get(name), "full": True}
        )


def _request(row: dict[str, str], where: str) -> tuple[str, _Request]:
    for name in ("thread", "op", "client_id", "bytes", "start", "end", "duration_ns"):
        if name not in row:
            raise UnreadableFile(f'a column "{name}"', "line 1")
    return row["op"], _Request(
        thread=f"{row['client_id']} {row['thread']}",
        size=integer(row["bytes"], "bytes", where),
        start=_stamp(row["start"], where),
        end=_stamp(row["end"], where),
        seconds=integer(row["duration_ns"], "a duration", where) / _NANO,
    )


def _from_requests(name: str, requests: list[_Request], details: Mapping[str, object]) -> Metric:
    seconds = (max(r.end for r in requests) - min(r.start for r in requests)) / _NANO
    moved = sum(request.size for request in requests)
    sizes = {request.size for request in requests}
    times = sorted(request.seconds for request in requests)
    rates = seconds > 0
    return build_metric(
        source=Source(tool=TOOL),
        operation=_OPERATIONS.get(name, "other"),
        block_bytes=(sizes.pop() or None) if len(sizes) == 1 else None,
        concurrency=len({request.thread for request in requests}),
        bandwidth_bytes_per_second=moved / seconds if rates and moved else None,
        operations_per_second=len(requests) / seconds if rates else None,
        latency_seconds=latency_of(times, sum(times) / len(times)),
        details={**details, "tool_operation": name, "seconds": seconds, "requests": len(requests)},
    )


def _from_report(text: str) -> Iterator[Metric]:
    """A section starts with its operation; that of all operations together is skipped."""
    name, opened, concurrency = "", "", None
    average: re.Match[str] | None = None
    times: dict[str, dict[str, float]] = {}
    for at, line in [*lines(text), (0, "Report: END")]:
        where = f"line {at}"
        if found := _REPORT.fullmatch(line.strip()):
            if name:
                if average is None:
                    raise UnreadableFile(f"the average of {name}", opened)
                yield _from_section(name, concurrency, average, times, opened)
            name, opened, average, times, concurrency = found[1], where, None, {}, None
        if name and (found := _CONCURRENCY.search(line)):
            concurrency = int(found[1])
        if found := _AVERAGE.fullmatch(line):
            average = found
        elif (found := _TIMES.match(line)) and name:
            times.setdefault(found[1], _times(found[2]))


def _times(text: str) -> dict[str, float]:
    """``Avg: 3.3ms, 50%: 2.8ms`` as seconds by name."""
    found = ((name, duration_seconds(value)) for name, value in _TIME.findall(text))
    return {name: seconds for name, seconds in found if seconds is not None}


def _from_section(
    name: str,
    concurrency: int | None,
    average: re.Match[str],
    times: dict[str, dict[str, float]],
    where: str,
) -> Metric:
    requests, first_byte = times.get("Reqs", {}), times.get("TTFB", {})
    speed, unit, rate = average.groups()
    if not NUMBER.fullmatch(rate) or (unit and unit not in _UNITS):
        raise UnreadableFile("an average in MiB/s and obj/s", where)
    return build_metric(
        source=Source(tool=TOOL),
        operation=_OPERATIONS.get(name, "other"),
        concurrency=concurrency,
        bandwidth_bytes_per_second=None
        if speed is None
        else number(speed, "a speed", where) * _UNITS[unit],
        operations_per_second=number(rate, "a rate", where),
        latency_seconds=Latency(
            mean=requests.get("Avg"),
            p50=requests.get("50%"),
            p90=requests.get("90%"),
            p99=requests.get("99%"),
            max=requests.get("Slowest"),
        ),
        details={
            "tool_operation": name,
            "first_byte_seconds": {
                to: first_byte[of] for to, of in _FIRST_BYTE.items() if of in first_byte
            }
            or None,
        },
    )
