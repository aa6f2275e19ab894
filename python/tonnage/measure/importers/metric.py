"""Build metrics with one vocabulary of operations and one set of units.

Rates are in bytes per second (decimal), times in seconds. What a tool does not state is None, never
a guess. An incomplete file raises `UnreadableFile` and gives nothing.
"""

import math
from collections.abc import Iterable, Iterator
from typing import Any, Self

from msgspec import structs

from tonnage.base.records import Metric

# Every operation that a metric may name. "read" and "write" are sequential, unless the tool states
# no order.
OPERATIONS = {
    "read": "data read, sequentially if the tool says so",
    "write": "data written, sequentially if the tool says so",
    "randread": "data read at random offsets",
    "randwrite": "data written at random offsets",
    "readwrite": "sequential reads and writes, reported as one",
    "randreadwrite": "random reads and writes, reported as one",
    "reread": "data read again right after reading it",
    "rewrite": "existing data overwritten (bonnie++ reads it first)",
    "backwardread": "data read from end to start",
    "strideread": "data read at a fixed stride",
    "recordrewrite": "one record written again and again",
    "seek": "a block read at a random offset, one in ten written back (bonnie++)",
    "trim": "blocks discarded",
    "randtrim": "blocks discarded at random offsets",
    "fsync": "waiting until written data is durable",
    "create": "files, directories or trees created",
    "stat": "metadata of files, directories or objects read",
    "rename": "files or directories renamed",
    "remove": "files, directories, trees or objects removed",
    "list": "objects listed",
    "get": "objects fetched",
    "put": "objects stored",
    "send": "data sent over a network by the machine that ran the tool",
    "receive": "data received over a network by the machine that ran the tool",
    "device read": "what a block device read while sysstat was sampling",
    "device write": "what a block device wrote while sysstat was sampling",
    "device discard": "what a block device discarded while sysstat was sampling",
    "interface send": "what a network interface sent while sysstat was sampling",
    "interface receive": "what a network interface received while sysstat was sampling",
    "other": "any other; details['tool_operation'] has the tool's name",
}

LONGEST_MESSAGE = 400


class UnreadableFile(Exception):
    """No importer can read the file completely: what was expected, and where, in one line."""

    def __init__(self, expected: str, where: str = "", file: str = "") -> None:
        self.expected, self.where, self.file = expected, where, file
        message = f"{file}: " if file else ""
        message += f"expected {expected}" + (f" at {where}" if where else "")
        super().__init__(one_line(message))

    def in_file(self, file: str) -> Self:
        return type(self)(self.expected, self.where, file)


class UnknownFormat(UnreadableFile):
    """A file that is of no kind that is read."""


def build_metric(**fields: Any) -> Metric:
    """Build a checked metric; `UnreadableFile` for a bad number, `ValueError` for an operation."""
    metric = Metric(**{**fields, "details": _plain(fields.get("details", {}))})
    if metric.operation not in OPERATIONS:
        raise ValueError(f"unknown operation: {metric.operation}")
    for name, value in _numbers(metric):
        if value is not None and not (math.isfinite(value) and value >= 0):
            raise UnreadableFile(f"a {name} of zero or more", metric.operation)
    return metric


def require_any(metrics: Iterable[Metric], expected: str, where: str = "") -> list[Metric]:
    """List the metrics; raises `UnreadableFile` if there are none."""
    found = list(metrics)
    if not found:
        raise UnreadableFile(expected, where)
    return found


def _numbers(metric: Metric) -> Iterator[tuple[str, float | None]]:
    yield "block size", metric.block_bytes
    yield "concurrency", metric.concurrency
    yield "bandwidth", metric.bandwidth_bytes_per_second
    yield "rate of operations", metric.operations_per_second
    for name, value in structs.asdict(metric.latency_seconds).items():
        yield f"{name} latency", value
    for pairs in (metric.bins, metric.series):
        for at, amount in pairs or []:
            yield "time", at
            yield "value", amount


def one_line(text: str) -> str:
    """The text as one printable line, whatever a file put into it."""
    line = "".join(char if char.isprintable() else "?" for char in text)
    return line if len(line) <= LONGEST_MESSAGE else line[: LONGEST_MESSAGE - 3] + "..."


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        members = {str(key): _plain(inner) for key, inner in value.items()}
        return {key: inner for key, inner in members.items() if inner is not None}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
