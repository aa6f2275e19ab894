"""Split the series into phases, each with its usage and its bottleneck; pure.

Counters become rates on an even grid, `phase_detection` finds where demands change, `boundary`
apportions the counters there, and `bottleneck` finds what limited each phase.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from msgspec import structs

from tonnage.base.records import ObservedPhase
from tonnage.base.stats.samples import FloatArray
from tonnage.measure.observe.bottleneck import MachineCapacity, find_bottleneck, utilisation
from tonnage.measure.observe.phase_boundary import Boundary, find_boundary
from tonnage.measure.observe.phase_detection import FLOORS, bytes_moved, find_cuts

CUMULATIVE = (*FLOORS, "cancelled_bytes")
MAX_POINTS = 2000
"""Longer series are resampled to this many points: phases of long jobs are long."""
NOTHING = 0.02
"""A first or last phase with a smaller share of all bytes does not grow with the input."""
WORK = 0.5
"""Unless it uses this share of all CPU time: then it works on data that it need not read."""


@dataclass(frozen=True)
class Cuts:
    """Where a run's phases change: the transitions between them, in order."""

    boundaries: list[Boundary]
    duration: float

    @property
    def periods(self) -> list[tuple[float, float]]:
        """When each phase begins and ends."""
        moments = [0.0, *(boundary.moment for boundary in self.boundaries), self.duration]
        return list(pairwise(moments))

    def counts(self, series: Mapping[str, Sequence[float]]) -> list[dict[str, float]]:
        """What each phase takes of each counter of this series, which begins with the run."""
        seconds = np.array(series["seconds"])
        totals = {name: _total(series[name]) for name in CUMULATIVE}
        return [
            _counts(self.boundaries, place, seconds, totals) for place in range(len(self.periods))
        ]


def find_phase_cuts(series: Mapping[str, Sequence[float]]) -> Cuts:
    """Find where phases change, if anywhere; ``series`` has two samples or more."""
    seconds = np.array(series["seconds"])
    duration = float(seconds[-1])
    interval = float(np.median(np.diff(seconds)))
    count = int(min(max(duration / interval, 1), MAX_POINTS))
    grid = np.linspace(0.0, duration, count + 1)
    counters = np.column_stack([np.interp(grid, seconds, _total(series[name])) for name in FLOORS])
    points = [0, *find_cuts(np.diff(counters, axis=0) / (duration / count)), count]
    return Cuts(
        [
            find_boundary(before, cut, after, grid, counters)
            for before, cut, after in zip(points, points[1:], points[2:], strict=False)
        ],
        duration,
    )


def split_into_phases(
    series: dict[str, list[float]], devices: dict[str, list[float | str]], machine: MachineCapacity
) -> list[ObservedPhase]:
    """Find the phases, at least one; ``series`` are columns of `SERIES`, two samples or more."""
    cuts = find_phase_cuts(series)
    phases = []
    for place, ((begin, end), counts) in enumerate(
        zip(cuts.periods, cuts.counts(series), strict=True)
    ):
        used = utilisation(series, devices, machine, begin, end, counts)
        bottleneck, why = find_bottleneck(used, counts, machine)
        phases.append(
            build_phase(
                place,
                (begin, end),
                counts,
                peak_memory_bytes=peak_memory(series, begin, end),
                shares=used,
                bottleneck=bottleneck,
                why=why,
            )
        )
    return mark_growth(phases)


def build_phase(
    place: int, period: tuple[float, float], counts: Mapping[str, float], **facts: Any
) -> ObservedPhase:
    """The phase at this place, from its period and its counts."""
    begin, end = period
    amounts: dict[str, Any] = {
        name: round(amount) for name, amount in counts.items() if name != "cpu_seconds"
    }
    return ObservedPhase(
        name=f"phase-{place + 1}",
        began_seconds=begin,
        seconds=end - begin,
        cpu_seconds=counts["cpu_seconds"],
        grows=True,
        **amounts,
        **facts,
    )


def peak_memory(series: Mapping[str, Sequence[float]], begin: float, end: float) -> int:
    """The largest sample in this period, or where it ends if there is none in it."""
    seconds, memory = np.array(series["seconds"]), np.array(series["memory_bytes"])
    inside = (seconds >= begin) & (seconds <= end)
    return int(memory[inside].max() if inside.any() else np.interp(end, seconds, memory))


def _counts(
    boundaries: list[Boundary], place: int, seconds: FloatArray, totals: dict[str, FloatArray]
) -> dict[str, float]:
    return {
        name: max(
            (
                _phase_seconds(boundaries[place], name, seconds, total)
                if place < len(boundaries)
                else total[-1]
            )
            - (_phase_seconds(boundaries[place - 1], name, seconds, total) if place else 0.0),
            0.0,
        )
        for name, total in totals.items()
    }


def _phase_seconds(at: Boundary, name: str, seconds: FloatArray, total: FloatArray) -> float:
    low, high = np.interp([at.begin, at.end], seconds, total)
    return float(low + at.shares.get(name, at.share) * (high - low))


def mark_growth(phases: list[ObservedPhase]) -> list[ObservedPhase]:
    """Mark first and last phases that move almost nothing as not growing with the input."""
    amounts = np.array([[getattr(phase, name) for name in FLOORS] for phase in phases])
    cpu = np.array([phase.cpu_seconds for phase in phases])
    totals = bytes_moved(amounts)
    if totals.sum() < FLOORS["read_bytes"] * sum(phase.seconds for phase in phases):
        return phases
    works = (totals > NOTHING * totals.sum()) | (cpu >= WORK * cpu.sum())
    working = np.flatnonzero(works)
    return [
        structs.replace(phase, grows=bool(working[0] <= place <= working[-1]))
        for place, phase in enumerate(phases)
    ]


def _total(values: Sequence[float]) -> FloatArray:
    """A counter from zero; a decrease, as from another namespace, adds nothing."""
    rises = np.maximum(np.diff(np.array(values)), 0.0)
    total: FloatArray = np.concatenate([[0.0], np.cumsum(rises)])
    return total
