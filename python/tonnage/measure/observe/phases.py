"""The series cut into phases, each with what it moved and what limited it; pure.

Counters become rates on an even grid, `cuts` finds where demands change, `border` shares out what
was counted there, and `bottleneck` says what each phase was limited by.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from msgspec import structs

from tonnage.base.records import ObservedPhase
from tonnage.base.stats.samples import FloatArray
from tonnage.measure.observe.bottleneck import MachineCapacity, find_bottleneck, utilisation
from tonnage.measure.observe.boundary import Boundary, find_boundary
from tonnage.measure.observe.phase_detection import FLOORS, bytes_moved, find_cuts

CUMULATIVE = (*FLOORS, "cancelled_bytes")
MOST_POINTS = 2000
"""Of a longer series several samples are taken together: a phase of a long job is long."""
NOTHING = 0.02
"""A beginning or an end that moves less than this share of all bytes does not grow with them."""
WORK = 0.5
"""Unless it has this share of all CPU time: then it works on what it need not read."""


def split_into_phases(
    series: dict[str, list[float]], devices: dict[str, list[float | str]], machine: MachineCapacity
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
    counters = np.column_stack([np.interp(grid, seconds, totals[name]) for name in FLOORS])

    points = [0, *find_cuts(np.diff(counters, axis=0) / (lasting / count)), count]
    borders = [
        find_boundary(before, cut, after, grid, counters)
        for before, cut, after in zip(points, points[1:], points[2:], strict=False)
    ]
    moments = [0.0, *(each.moment for each in borders), lasting]
    found = []
    for place, (begin, end) in enumerate(pairwise(moments)):
        counts = _counts(borders, place, seconds, totals)
        used = utilisation(series, devices, machine, begin, end, counts)
        named, why = find_bottleneck(used, counts, machine)
        inside = (seconds >= begin) & (seconds <= end)
        memory = np.array(series["memory_bytes"])
        peak = memory[inside].max() if inside.any() else np.interp(end, seconds, memory)
        cpu = counts.pop("cpu_seconds")
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
                **{name: round(amount) for name, amount in counts.items()},
            )
        )
    return _with_growth(found)


def _counts(
    borders: list[Boundary], place: int, seconds: FloatArray, totals: dict[str, FloatArray]
) -> dict[str, float]:
    """What a phase counted: between its borders, and its share at them."""
    return {
        name: max(
            (_until(borders[place], name, seconds, total) if place < len(borders) else total[-1])
            - (_until(borders[place - 1], name, seconds, total) if place else 0.0),
            0.0,
        )
        for name, total in totals.items()
    }


def _until(at: Boundary, name: str, seconds: FloatArray, total: FloatArray) -> float:
    """What all phases before a border have counted."""
    low, high = np.interp([at.begin, at.end], seconds, total)
    return float(low + at.shares.get(name, at.share) * (high - low))


def _with_growth(found: list[ObservedPhase]) -> list[ObservedPhase]:
    """Marks beginnings and ends that move next to nothing; if nothing is moved at all, none."""
    amounts = np.array([[getattr(phase, name) for name in FLOORS] for phase in found])
    cpu = np.array([phase.cpu_seconds for phase in found])
    bytes_moved = bytes_moved(amounts)
    if bytes_moved.sum() < FLOORS["read_bytes"] * sum(phase.seconds for phase in found):
        return found
    works = (bytes_moved > NOTHING * bytes_moved.sum()) | (cpu >= WORK * cpu.sum())
    working = np.flatnonzero(works)
    return [
        structs.replace(phase, grows=bool(working[0] <= place <= working[-1]))
        for place, phase in enumerate(found)
    ]


def _total(values: list[float]) -> FloatArray:
    """A counter from zero; what falls back, like another namespace's, adds nothing."""
    rises = np.maximum(np.diff(np.array(values)), 0.0)
    total: FloatArray = np.concatenate([[0.0], np.cumsum(rises)])
    return total
