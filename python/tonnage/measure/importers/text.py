"""Parse lines, numbers, sizes and durations as tools print them."""

import math
import re
from collections.abc import Iterator

from tonnage.base.records import Latency
from tonnage.measure.importers.metric import UnreadableFile

NUMBER = re.compile(r"[0-9]+(?:\.[0-9]*)?(?:[eE][+-]?[0-9]{1,3})?|\.[0-9]+")
_DURATION_PART = re.compile(r"([0-9]+(?:\.[0-9]+)?)(ns|us|µs|ms|s|m|h)")
_SECONDS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_SIZE = re.compile(r"([0-9]+(?:\.[0-9]+)?) ?(bytes|[KMGTP]iB|[kKmMgGtTpP]?)")
_POWERS = "kmgtp"
_MAX_DIGITS = 18


def lines(text: str) -> Iterator[tuple[int, str]]:
    """The lines, numbered from 1, without line ends."""
    for number, line in enumerate(text.split("\n"), 1):
        yield number, line.rstrip("\r")


def number(text: str, name: str, where: str) -> float:
    """A number of zero or more."""
    if not NUMBER.fullmatch(text):
        raise UnreadableFile(f"{name} as a number", where)
    value = float(text)
    if value > 1e300:
        raise UnreadableFile(f"{name} below 1e300", where)
    return value


def integer(text: str, name: str, where: str) -> int:
    """A whole number of zero or more."""
    if not re.fullmatch(r"[0-9]+", text) or len(text) > _MAX_DIGITS:
        raise UnreadableFile(f"{name} as a whole number", where)
    return int(text)


def duration_seconds(text: str) -> float | None:
    """The seconds of a duration in Go's format (``1m2.5s``, ``3.3ms``), or None."""
    parts = _DURATION_PART.findall(text)
    if not parts or "".join(amount + unit for amount, unit in parts) != text:
        return None
    return sum(float(amount) * _SECONDS[unit] for amount, unit in parts)


def size_bytes(text: str) -> int | None:
    """The bytes of a size in binary units (``4 MiB``, ``262144 bytes``, ``64k``), or None."""
    match = _SIZE.fullmatch(text.strip())
    if not match or len(match[1]) > _MAX_DIGITS:
        return None
    unit = match[2][:1].lower() if match[2] != "bytes" else ""
    scale: int = 1024 ** (_POWERS.index(unit) + 1 if unit else 0)
    return round(float(match[1]) * scale)


def latency_of(seconds: list[float], mean: float) -> Latency:
    """The latency of single operations, with percentiles by the nearest-rank method."""
    ordered = sorted(seconds)

    def percentile(percent: float) -> float:
        return ordered[max(1, math.ceil(round(percent * len(ordered) / 100, 6))) - 1]

    return Latency(
        mean=mean,
        p50=percentile(50),
        p90=percentile(90),
        p99=percentile(99),
        p999=percentile(99.9),
        max=ordered[-1],
    )
