"""Phases as finished runs showed them: what held them up carried just so much, the rest no less.

A run on M nodes had a phase's pace, bytes of input a second for each node. What held the phase up
carries that, times the bytes that it has to carry of each byte of input; so the model gives back
the run itself, and goes from there to other sizes and fleets by each resource's own law. Of what
did not hold it up the measured capacity counts, where that is surely more than the run needed of
it; else what the run needed.

Of a shuffle a node of N keeps 1/N, so (N - 1)/N go over the network. The papers' equations count
all of it, which large fleets come near; runs are of small ones, so that here it is counted.

A plan takes the runs of its own kind of job: as durable, with the same functions, as many phases,
and shares of bytes that are within `ALIKE` of its own. Others are passed over, with a word.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tonnage.base import formatting
from tonnage.base.records.calibration import CalibratedPhase, Calibration, CalibrationSource
from tonnage.base.records.job import Job
from tonnage.base.records.profile import CapacityDistribution, Mode
from tonnage.model.profiles.network_scaling import ScalingCurve

ALIKE = 0.05
"""Shares that differ by less are those of the same job."""
SLOW = 2.0
"""Spreads below the median: nodes of a small fleet are seldom slower."""
OUTSIDE_PHASES = "beginning and end"
"""What passes outside of phases, as a phase."""


@dataclass(frozen=True)
class CalibrationMatch:
    """The runs that count for a job, if any do; and what is to be said of others."""

    calibration: Calibration | None
    notes: tuple[str, ...] = ()


NO_MATCH = CalibrationMatch(None)


def match_calibration(job: Job, calibrations: Sequence[Calibration]) -> CalibrationMatch:
    """The calibration of this job: of several the one on most nodes, the last given of these."""
    durability = str(job.settings.get("durability", "none"))
    functions = job.settings.get("functions")
    found: Calibration | None = None
    notes: list[str] = []
    for each in calibrations:
        if (each.job, each.durability) != (job.name, durability):
            continue
        if each.functions != functions:
            notes.append(
                f"{_named(each)} not taken: with functions of its own; to plan with these, give "
                "tonnage plan the run's record as the job"
            )
        elif why := _unlike(job, each):
            notes.append(f"{_named(each)} not taken: {why}")
        elif found is None or each.nodes >= found.nodes:
            found = each
    return CalibrationMatch(found, tuple(dict.fromkeys(notes)))


def cite(calibration: Calibration | None) -> CalibrationSource | None:
    """What is cited of it."""
    if calibration is None:
        return None
    return CalibrationSource(
        runs=list(calibration.runs), nodes=calibration.nodes, bytes=calibration.bytes
    )


def describe(cited: CalibrationSource | None) -> str:
    """Whether something is calibrated, and on what."""
    if cited is None:
        return (
            "not calibrated: no finished run of this job on such machines was given "
            "(tonnage profile)"
        )
    return (
        f"calibrated by {formatting.several(len(cited.runs), 'run')} on "
        f"{formatting.several(cited.nodes, 'node')}, {formatting.size(cited.bytes)}: {', '.join(cited.runs)}"
    )


def calibrated_phase(calibration: Calibration, place: int) -> CalibratedPhase:
    """What is known of a job's phase; each pass of a reduction is like another."""
    return calibration.phases[place if len(calibration.phases) > 1 else 0]


@dataclass(frozen=True)
class ObservedCapacity:
    """What a thing carried in a phase of a run, at least."""

    law: CapacityDistribution
    curve: ScalingCurve | None

    @property
    def pace(self) -> float:
        """Bytes of its resource a second for each node."""
        return self.law.modes[0].median


def observed_capacity(
    calibration: Calibration, phase: CalibratedPhase, moved: float, curve: ScalingCurve | None
) -> ObservedCapacity | None:
    """The rate that a resource had in the run; ``None`` where none of it was used there.

    Args:
        calibration: The runs.
        phase: Which phase of theirs.
        moved: What was carried there of each byte of input.
        curve: How what it carries falls with the number of nodes, from that of two.
    """
    if not moved:
        return None
    of_two = float(curve.share(np.array([calibration.nodes]))[0]) if curve else 1.0
    return ObservedCapacity(
        CapacityDistribution(
            resource=f"{phase.name} as it was run",
            modes=[
                Mode(
                    median=phase.pace * moved / of_two,
                    spread=phase.spread,
                    instances=len(calibration.runs),
                )
            ],
            of_fleet=True,
            evidence="measured",
            source=f"as it was in {', '.join(calibration.runs)}",
            spread_source=calibration.spread_source,
        ),
        curve,
    )


def slow_node_rate(law: CapacityDistribution) -> float:
    """What a node carries that is two spreads slower than others of the slowest kind."""
    return min(
        mode.median * math.exp(-SLOW * math.hypot(mode.spread, law.fleet_spread))
        for mode in law.modes
    )


def _unlike(job: Job, calibration: Calibration) -> str | None:
    """Why runs are not those of this job, if they are not."""
    count = len(calibration.phases)
    if count != len(job.phases) and not (job.name == "reduce" and count == 1):
        return (
            f"it has {formatting.several(count, 'phase')}, and this job has {len(job.phases)}: its "
            "shares are of others"
        )
    made = [phase.made for phase in calibration.phases]
    wanted = [job.settings.get(name) for name in ("map_share", "reduce_share")]
    for name, share, planned in zip(("--map-share", "--reduce-share"), made, wanted, strict=False):
        if share is None or not isinstance(planned, (int, float)):
            continue
        if abs(share / planned - 1) > ALIKE:
            return f"its {name} is {formatting.significant(share)}, and this is planned with {planned:g}"
    return None


def _named(calibration: Calibration) -> str:
    runs = formatting.several(len(calibration.runs), "run")
    return f"{runs} on {formatting.several(calibration.nodes, 'node')} ({calibration.runs[0]})"
