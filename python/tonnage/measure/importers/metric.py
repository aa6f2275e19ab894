"""What an importer makes of a file: readings, in one vocabulary and one set of units.

Rates are bytes per second (decimal), times seconds. What a tool does not say is None, never a
guess. A file that cannot be read whole is `Unreadable`: nothing of it is given.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, Self

from msgspec import structs

from tonnage.base.records import Metric

# Every operation that a reading may name. "read" and "write" are sequential, or of a tool that does
# not say in which order.
OPERATIONS = {
    "read": "data read, in order where the tool says so",
    "write": "data written, in order where the tool says so",
    "randread": "data read at random places",
    "randwrite": "data written at random places",
    "readwrite": "reads and writes in order, reported as one",
    "randreadwrite": "reads and writes at random places, reported as one",
    "reread": "data read that was read just before",
    "rewrite": "data written over data (bonnie++ reads it first)",
    "backwardread": "data read from the end to the beginning",
    "strideread": "data read at equal distances",
    "recordrewrite": "one record written over and over",
    "seek": "a block read at a random place, one in ten written back (bonnie++)",
    "trim": "blocks given back to the device",
    "randtrim": "blocks at random places given back to the device",
    "fsync": "waiting until what was written is durable",
    "create": "files, directories or trees made",
    "stat": "files, directories or objects looked at",
    "rename": "files or directories renamed",
    "remove": "files, directories, trees or objects removed",
    "list": "objects listed",
    "get": "objects fetched",
    "put": "objects stored",
    "send": "data sent over a network, from where the tool ran",
    "receive": "data received over a network, where the tool ran",
    "device read": "what a block device read while sysstat looked",
    "device write": "what a block device wrote while sysstat looked",
    "device discard": "what a block device discarded while sysstat looked",
    "interface send": "what a network interface sent while sysstat looked",
    "interface receive": "what a network interface received while sysstat looked",
    "other": "what has no name here; details['tool_operation'] has the tool's",
}

LONGEST_MESSAGE = 400


class UnreadableFile(Exception):
    """A file that no importer can read whole: what was expected, and where, in one line."""

    def __init__(self, expected: str, where: str = "", file: str = "") -> None:
        self.expected, self.where, self.file = expected, where, file
        message = f"{file}: " if file else ""
        message += f"expected {expected}" + (f" at {where}" if where else "")
        super().__init__(one_line(message))

    def in_file(self, file: str) -> Self:
        """The same, of a named file."""
        return type(self)(self.expected, self.where, file)


def build_metric(**fields: Any) -> Metric:
    """A reading of these fields, if they can be true: numbers of zero or more, a known operation.

    Raises:
        Unreadable: A number that nothing measures.
        ValueError: An operation that has no name here.
    """
    made = Metric(**{**fields, "details": _plain(fields.get("details", {}))})
    if made.operation not in OPERATIONS:
        raise ValueError(f"no such operation: {made.operation}")
    for name, value in _numbers(made):
        if value is not None and not (math.isfinite(value) and value >= 0):
            raise UnreadableFile(f"a {name} of zero or more", made.operation)
    return made


def _numbers(reading: Metric) -> Iterator[tuple[str, float | None]]:
    yield "block size", reading.block_bytes
    yield "concurrency", reading.concurrency
    yield "bandwidth", reading.bandwidth_bytes_per_second
    yield "rate of operations", reading.operations_per_second
    for name, value in structs.asdict(reading.latency_seconds).items():
        yield f"{name} latency", value
    for pairs in (reading.bins, reading.series):
        for at, amount in pairs or []:
            yield "time", at
            yield "value", amount


def one_line(text: str) -> str:
    """A text that a terminal shows in one line, whatever a file put into it."""
    shown = "".join(sign if sign.isprintable() else "?" for sign in text)
    return shown if len(shown) <= LONGEST_MESSAGE else shown[: LONGEST_MESSAGE - 3] + "..."


def _plain(value: Any) -> Any:
    """The value without what it does not say: JSON can hold it."""
    if isinstance(value, dict):
        held = {str(key): _plain(inner) for key, inner in value.items()}
        return {key: inner for key, inner in held.items() if inner is not None}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
