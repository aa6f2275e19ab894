"""Turn sampled cumulative counters into rates over windows, to be drawn.

Windows span enough samples to limit a line to some hundred points. Counters are cumulative, so a
wider window is a mean over a longer time, and no byte is lost.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

Table = dict[str, list[Any]]

# Per line and phase: more would show buffers, not the rate of a stage.
MAX_POINTS = 150


@dataclass(frozen=True)
class Series:
    """Points of one line; a `None` among them is a gap."""

    seconds: list[float | None]
    values: list[float | None]

    def scaled(self, factor: float) -> Series:
        values = [
            None if value is None else drawn_precision(value * factor) for value in self.values
        ]
        return Series(self.seconds, values)

    @property
    def is_zero(self) -> bool:
        return not any(self.values)


def split(table: Table, column: str) -> dict[Any, Table]:
    """Group a table's rows by a column, in order of first appearance."""
    places: dict[Any, list[int]] = {}
    for place, key in enumerate(table[column]):
        places.setdefault(key, []).append(place)
    return {
        key: {name: [values[place] for place in chosen] for name, values in table.items()}
        for key, chosen in places.items()
    }


def prepend_zeros(table: Table, began_seconds: float) -> Table:
    """Prepend a row of zeros at the start of the counters."""
    if not table["seconds"] or table["seconds"][0] <= began_seconds:
        return table
    return {
        name: [began_seconds if name == "seconds" else 0, *values] for name, values in table.items()
    }


def rate(table: Table, column: str) -> Series:
    """The rate of a counter, at the middle of each window."""
    return _difference(table, [column], None)


def share(table: Table, column: str, of: Sequence[str]) -> Series:
    """A counter's share of the increase of several counters."""
    return _difference(table, [column], of)


def gauge(table: Table, column: str) -> Series:
    """The maximum of a gauge in each window, so that no peak is lost."""
    values, seconds = table[column], table["seconds"]
    windows = [(0, 0), *_windows(len(seconds))] if seconds else []
    drawn = [
        (
            drawn_precision(seconds[last]),
            drawn_precision(max(values[min(first + 1, last) : last + 1])),
        )
        for first, last in windows
    ]
    return Series([at for at, _ in drawn], [value for _, value in drawn])


def concatenate(parts: Iterable[Series]) -> Series:
    """Join lines with gaps between."""
    seconds: list[float | None] = []
    values: list[float | None] = []
    for part in parts:
        if seconds:
            seconds.append(None)
            values.append(None)
        seconds += part.seconds
        values += part.values
    return Series(seconds, values)


def drawn_precision(value: float) -> float:
    """Round to the precision of a picture."""
    return float(f"{value:.4g}") if abs(value) < 1e4 else round(value)


def _difference(table: Table, columns: Sequence[str], of: Sequence[str] | None) -> Series:
    seconds = table["seconds"]
    middles: list[float | None] = []
    values: list[float | None] = []
    for first, last in _windows(len(seconds)):
        rise = sum(table[name][last] - table[name][first] for name in columns)
        among = (
            seconds[last] - seconds[first]
            if of is None
            else sum(table[name][last] - table[name][first] for name in of)
        )
        if among > 0:
            middles.append(drawn_precision((seconds[first] + seconds[last]) / 2))
            values.append(drawn_precision(rise / among))
    return Series(middles, values)


def _windows(samples: int) -> list[tuple[int, int]]:
    stride = max(1, -(-(samples - 1) // MAX_POINTS))
    ends = list(range(0, samples, stride))
    if samples and ends[-1] != samples - 1:
        ends.append(samples - 1)
    return list(pairwise(ends))
