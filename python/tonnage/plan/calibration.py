"""Calibrate phases by finished runs of the job.

A run on M nodes had a pace in each phase: bytes of input per second and node. The bottleneck
delivered that pace times its bytes per byte of input. So the model reproduces the run, and
extrapolates to other sizes and clusters by each resource's own distribution. For any other resource
the measured capacity counts if it surely exceeds the run's rate; else the run's rate.

A run matches a job of the same kind: the same durability, locations of its data, functions and
number of phases, and shares of bytes within `ALIKE`. Others are skipped with a note.
"""

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
"""Relative difference up to which shares are the same job's."""
SLOW = 2.0
"""Standard deviations below the median: few nodes of a small cluster are slower."""


@dataclass(frozen=True)
class CalibrationMatch:
    """The runs that calibrate a job, if any, and why others do not."""

    calibration: Calibration | None
    notes: tuple[str, ...] = ()


NO_MATCH = CalibrationMatch(None)


def match_calibration(job: Job, calibrations: Sequence[Calibration]) -> CalibrationMatch:
    """Find the job's calibration: the one on most nodes, the last of equals."""
    wanted = job.name, job.durability == "replicated", (job.input_location, job.output_location)
    functions = job.settings.get("functions")
    found: Calibration | None = None
    notes: list[str] = []
    for each in calibrations:
        if (each.job, each.is_replicated, each.locations) != wanted:
            continue
        if each.functions != functions:
            notes.append(
                f"{_runs_text(each)} not used: other functions were run; to plan with those, "
                "use the record of the run as the job"
            )
        elif why := _unlike(job, each):
            notes.append(f"{_runs_text(each)} not used: {why}")
        elif found is None or each.nodes >= found.nodes:
            found = each
    return CalibrationMatch(found, tuple(dict.fromkeys(notes)))


def cite(calibration: Calibration | None) -> CalibrationSource | None:
    if calibration is None:
        return None
    return CalibrationSource(
        runs=list(calibration.runs), nodes=calibration.nodes, bytes=calibration.bytes
    )


def describe(cited: CalibrationSource | None) -> str:
    """State whether a plan is calibrated, and by which runs."""
    if cited is None:
        return "not calibrated: no profile contains a finished run of this job on this machine type"
    return (
        f"calibrated by {formatting.several(len(cited.runs), 'run')} on "
        f"{formatting.several(cited.nodes, 'node')}, {formatting.size(cited.bytes)}: "
        f"{', '.join(cited.runs)}"
    )


def calibrated_phase(calibration: Calibration, place: int) -> CalibratedPhase:
    """The calibrated counterpart of a job's phase; a reduction's passes share one."""
    return calibration.phases[place if len(calibration.phases) > 1 else 0]


@dataclass(frozen=True)
class ObservedCapacity:
    """The rate that a resource had in a phase of a run."""

    law: CapacityDistribution
    curve: ScalingCurve | None

    @property
    def rate(self) -> float:
        """Bytes per second and node."""
        return self.law.modes[0].median


def observed_capacity(
    calibration: Calibration, phase: CalibratedPhase, moved: float, curve: ScalingCurve | None
) -> ObservedCapacity | None:
    """The rate that a resource had in the run; ``None`` if the phase did not use it.

    ``moved`` is in bytes per byte of input; ``curve`` is relative to two nodes.
    """
    if not moved:
        return None
    of_two = float(curve.share(np.array([calibration.nodes]))[0]) if curve else 1.0
    return ObservedCapacity(
        CapacityDistribution(
            resource=f"{phase.name} of the run",
            modes=[
                Mode(
                    median=phase.pace * moved / of_two,
                    spread=phase.spread,
                    instances=len(calibration.runs),
                )
            ],
            of_fleet=True,
            evidence="measured",
            source=f"run {', '.join(calibration.runs)}",
            spread_source=calibration.spread_source,
        ),
        curve,
    )


def slow_node_rate(law: CapacityDistribution) -> float:
    """The rate of a node two standard deviations below the slowest mode's median."""
    return min(
        mode.median * math.exp(-SLOW * math.hypot(mode.spread, law.fleet_spread))
        for mode in law.modes
    )


def _unlike(job: Job, calibration: Calibration) -> str | None:
    """Why the runs do not match the job; ``None`` if they do."""
    count = len(calibration.phases)
    if count != len(job.phases) and not (job.name == "reduce" and count == 1):
        return (
            f"the run has {formatting.several(count, 'phase')}, but this job has {len(job.phases)}"
        )
    made = [phase.made for phase in calibration.phases]
    wanted = [job.settings.get(name) for name in ("map_share", "reduce_share")]
    for name, share, planned in zip(("map share", "reduce share"), made, wanted, strict=False):
        if share is None or not isinstance(planned, (int, float)):
            continue
        if abs(share - planned) > ALIKE * planned:
            return (
                f"the {name} of the run is {formatting.significant(share)}, but that of this plan "
                f"is {planned:g}"
            )
    return None


def _runs_text(calibration: Calibration) -> str:
    runs = formatting.several(len(calibration.runs), "run")
    return f"{runs} on {formatting.several(calibration.nodes, 'node')} ({calibration.runs[0]})"
