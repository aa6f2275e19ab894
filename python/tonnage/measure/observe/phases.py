"""The series cut where demands change (-> `ObservedPhase`); pure.

1. Counters become rates on an even grid, their logarithms are smoothed by medians of three, and
   `statistics.changes` finds where their levels step.
2. Neighbours that differ by less than a quarter in every rate are one phase, and so are those that
   differ by speed alone: the demands are the job's, the speed is the machine's.
3. A step lies somewhere within a sample or two. There, time and counters are shared out between the
   two phases so that each keeps its rates: at 1 GB/s a sample of 0.1 s is 100 MB.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from tonnage.artifacts import ObservedPhase
from tonnage.measure.observe.bottleneck import Machine, limit, shares
from tonnage.statistics.changes import changes
from tonnage.statistics.samples import FloatArray

FLOORS = {
    "cpu_seconds": 0.05,
    "read_bytes": 2e6,
    "written_bytes": 2e6,
    "reads": 50.0,
    "writes": 50.0,
    "network_received_bytes": 1e6,
    "network_sent_bytes": 1e6,
    "loopback_bytes": 1e6,
}
"""The rates that tell phases apart, and for each how much a second is as good as nothing."""
CUMULATIVE = (*FLOORS, "cancelled_bytes")
LEAST_SAMPLES = 5
"""A phase has so many, or it is a part of its neighbour."""
MOST_PHASES = 20
"""And so large a part of the run: what comes and goes faster, as in a JVM, is how a phase works."""
MOST_POINTS = 2000
"""Of a longer series several samples are taken together: a phase of a long job is long."""
ALIKE = math.log(1.25)
"""Levels of logarithms that differ by less are alike."""
NOTHING = 0.02
"""A beginning or an end that moves less than this share of all bytes does not grow with them."""


@dataclass
class _Stretch:
    begin: int
    end: int
    """Points of the grid."""


def phases(
    series: dict[str, list[float]], devices: dict[str, list[float | str]], machine: Machine
) -> list[ObservedPhase]:
    """The phases, in order; one at least.

    Args:
        series: As `series.SERIES` names the columns, two samples at least.
        devices: As `series.DEVICES`.
        machine: What could be used.
    """
    seconds = np.array(series["seconds"])
    lasting = float(seconds[-1])
    interval = float(np.median(np.diff(seconds)))
    count = int(min(max(lasting / interval, 1), MOST_POINTS))
    grid = np.linspace(0.0, lasting, count + 1)
    totals = {name: _total(series[name]) for name in CUMULATIVE}
    on_grid = np.column_stack([np.interp(grid, seconds, totals[name]) for name in FLOORS])
    rates = np.diff(on_grid, axis=0) / (lasting / count)

    cuts = _cuts(rates)
    edges = [_Edge.at(cut, before, after, grid, on_grid) for before, cut, after in cuts]
    borders = [0.0, *(edge.moment for edge in edges), lasting]
    counts = _shared_out(edges, seconds, totals)
    found = []
    for place, (begin, end) in enumerate(pairwise(borders)):
        used = shares(series, devices, machine, begin, end, counts[place])
        named, why = limit(used, counts[place], devices, end - begin, machine, (begin, end))
        inside = (seconds >= begin) & (seconds <= end)
        memory = np.array(series["memory_bytes"])
        peak = memory[inside].max() if inside.any() else np.interp(end, seconds, memory)
        whole = {name: round(counts[place][name]) for name in CUMULATIVE}
        cpu = counts[place]["cpu_seconds"]
        del whole["cpu_seconds"]
        found.append(
            ObservedPhase(
                name=f"phase-{place + 1}",
                began_seconds=begin,
                seconds=end - begin,
                cpu_seconds=cpu,
                peak_memory_bytes=int(peak),
                shares=used,
                bottleneck=named,
                why=why,
                grows=True,
                **whole,
            )
        )
    return _with_growth(found)


@dataclass(frozen=True)
class _Edge:
    """Somewhere from ``begin`` to ``end`` the first phase's rates give way to the second's."""

    begin: float
    end: float
    moment: float
    first_rates: FloatArray
    second_rates: FloatArray

    @classmethod
    def at(
        cls, cut: int, before: slice, after: slice, grid: FloatArray, counters: FloatArray
    ) -> _Edge:
        """The step at a point of the grid, between two stretches of it."""
        low, high = cut - 1, cut + 1
        step = grid[1] - grid[0]
        rates = np.diff(counters, axis=0) / step
        # Without what lies at the step itself.
        first = np.median(rates[before.start : max(low, before.start + 1)], axis=0)
        second = np.median(rates[min(high, after.stop - 1) : after.stop], axis=0)
        width = grid[high] - grid[low]
        moved = counters[high] - counters[low]
        # Least squares: moved = first * t + second * (width - t), each in units of its larger rate.
        scale = np.maximum(np.maximum(first, second), [*FLOORS.values()])
        contrast = (first - second) / scale
        asked = (moved - second * width) / scale
        weight = float(contrast @ contrast)
        passed = float(asked @ contrast) / weight if weight else width / 2
        passed = min(max(passed, 0.0), width)
        return cls(grid[low], grid[high], grid[low] + passed, first, second)


def _cuts(rates: FloatArray) -> list[tuple[slice, int, slice]]:
    """Where levels step, each with the stretches before and after it."""
    floors = np.array([*FLOORS.values()])
    logarithms = np.log1p(np.maximum(rates, 0) / floors)
    least = max(LEAST_SAMPLES, rates.shape[0] // MOST_PHASES)
    found = changes(_smooth(logarithms), least=least, floor=ALIKE / 2, blurred=1)
    borders = [0, *found, rates.shape[0]]
    stretches = [_Stretch(begin, end) for begin, end in pairwise(borders)]
    while len(stretches) > 1:
        apart = [
            _distance(
                rates[one.begin : one.end].mean(axis=0), rates[two.begin : two.end].mean(axis=0)
            )
            for one, two in pairwise(stretches)
        ]
        nearest = int(np.argmin(apart))
        if apart[nearest] >= ALIKE:
            break
        stretches[nearest].end = stretches.pop(nearest + 1).end
    return [
        (slice(one.begin, one.end), one.end, slice(two.begin, two.end))
        for one, two in pairwise(stretches)
    ]


def _distance(one: FloatArray, two: FloatArray) -> float:
    """The largest step of any rate, in logarithms; without a step of all by the same factor."""
    floors = np.array([*FLOORS.values()])
    steps = np.abs(np.log1p(one / floors) - np.log1p(two / floors))
    largest = float(steps.max())
    active = (one > floors) & (two > floors)
    if active.sum() >= 2 and not steps[~active].max(initial=0.0) >= ALIKE:
        factors = np.log(one[active] / two[active])
        return min(largest, float(np.ptp(factors)))
    return largest


def _shared_out(
    edges: list[_Edge], seconds: FloatArray, totals: dict[str, FloatArray]
) -> list[dict[str, float]]:
    """What each phase counted: between its edges, and its share at them."""
    at_border: list[dict[str, float]] = []
    names = list(FLOORS)
    for edge in edges:
        passed, left = edge.moment - edge.begin, edge.end - edge.moment
        border = {}
        for name, total in totals.items():
            low, high = np.interp([edge.begin, edge.end], seconds, total)
            share = passed / (edge.end - edge.begin)
            if name in names:
                first = edge.first_rates[names.index(name)] * passed
                second = edge.second_rates[names.index(name)] * left
                share = first / (first + second) if first + second > 0 else share
            border[name] = float(low + share * (high - low))
        at_border.append(border)
    start = dict.fromkeys(totals, 0.0)
    end = {name: float(total[-1]) for name, total in totals.items()}
    borders = [start, *at_border, end]
    return [
        {name: max(late[name] - early[name], 0.0) for name in totals}
        for early, late in pairwise(borders)
    ]


def _with_growth(found: list[ObservedPhase]) -> list[ObservedPhase]:
    """Marks beginnings and ends that move next to nothing; if nothing is moved at all, none."""
    moved = [
        phase.read_bytes
        + phase.written_bytes
        + max(phase.network_received_bytes, phase.network_sent_bytes)
        for phase in found
    ]
    moving = [place for place, each in enumerate(moved) if each > NOTHING * sum(moved)]
    if not moving:
        return found
    return [
        dataclasses.replace(phase, grows=moving[0] <= place <= moving[-1])
        for place, phase in enumerate(found)
    ]


def _total(values: list[float]) -> FloatArray:
    """A counter from zero; what falls back, like another namespace's, adds nothing."""
    rises = np.maximum(np.diff(np.array(values)), 0.0)
    total: FloatArray = np.concatenate([[0.0], np.cumsum(rises)])
    return total


def _smooth(values: FloatArray) -> FloatArray:
    """Running medians of three: a single spike is gone, a step stays where it is."""
    if values.shape[0] < 3:
        return values
    padded = np.vstack([values[:1], values, values[-1:]])
    smooth: FloatArray = np.median(np.stack([padded[:-2], padded[1:-1], padded[2:]]), axis=0)
    return smooth
