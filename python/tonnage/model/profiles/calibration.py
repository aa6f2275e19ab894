"""From finished runs to what a job showed of an offer: every run is a measurement, too.

Benchmarks of single resources are optimistic: in a job, disks, network and cores meet. A run on N
nodes that had D bytes of input and took t seconds for a phase shows the phase's pace, ``D / N / t``
bytes of input a second for each node, and what held it up. What did that carried just so much; of
everything else it is known that it carried so much at least. Plans take both
(`tonnage.plan.calibration`), and the model goes from there to other sizes and other fleets.

Runs of one job on as many nodes of an offer are repetitions: their median counts, and how they vary
is the spread, one for all phases, as each has few samples. Of one run alone that is assumed. Runs
of fewer nodes than others are left out, since plans are mostly of more. Left out are also those
that lost a machine or were taken up by a second command, whose seconds are not the job's, those of
several offers, and those on one machine, where passes have no network between them.
"""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from tonnage.base import formatting
from tonnage.base.records import RunRecord
from tonnage.base.records.calibration import CalibratedPhase, Calibration
from tonnage.base.records.environment import MACHINE_TYPE, PROVIDER
from tonnage.base.records.profile import UnusedMeasurements
from tonnage.model.capacity import UNKNOWN_SPREAD
from tonnage.model.profiles.offer_matching import DEBUG, OfferAssignments, OfferName
from tonnage.model.run_phases import (
    ObservedPhase,
    Run,
    durability_of,
    functions_of,
    is_broken,
    kind_of,
    name_of,
    nodes_of,
    observed_phases,
)

LEAST_BETWEEN_RUNS = 0.05
"""Runs that were repeated have their fleet and their hour in common: no spread is believed to be
smaller, as the next run has neither. Assumed."""


@dataclass(frozen=True)
class RunObservation:
    """What one run showed, and of what."""

    name: str
    offer: OfferName
    job: str
    durability: str
    functions: str | None
    nodes: int
    bytes: int
    phases: tuple[ObservedPhase, ...]
    other_seconds: float

    @property
    def key(self) -> tuple[object, ...]:
        """What repetitions have in common, but for the number of nodes."""
        names = tuple(phase.name for phase in self.phases)
        return self.offer, self.job, self.durability, self.functions, names


def calibrations(
    runs: Sequence[Run], hosts: Mapping[str, OfferName], said: OfferAssignments
) -> tuple[dict[OfferName, list[Calibration]], list[UnusedMeasurements]]:
    """What runs show of each offer, and those that show nothing.

    Args:
        runs: Each once.
        hosts: Which offers machines are, as far as measurements tell.
        said: Which they are by the user's word.
    """
    ones: list[RunObservation] = []
    left: list[UnusedMeasurements] = []
    for run in runs:
        found = _one(run, hosts, said)
        if isinstance(found, str):
            left.append(UnusedMeasurements(measurements=[name_of(run)], why=found))
        else:
            ones.append(found)
    made: dict[OfferName, list[Calibration]] = {}
    for key in dict.fromkeys(each.key for each in ones):
        alike = [each for each in ones if each.key == key]
        nodes = max(each.nodes for each in alike)
        kept = [each for each in alike if each.nodes == nodes]
        made.setdefault(kept[0].offer, []).append(_together(kept))
        for each in alike:
            if each.nodes < nodes:
                why = f"a run on {formatting.several(each.nodes, 'node')}, and there is one on {nodes}"
                left.append(UnusedMeasurements(measurements=[each.name], why=why))
    return made, left


def _one(run: Run, hosts: Mapping[str, OfferName], said: OfferAssignments) -> RunObservation | str:
    """What a run shows, or why it shows nothing."""
    if run.environment.debug_build:
        return DEBUG
    names = nodes_of(run)
    if not names:
        return "a run on one machine: a fleet's passes have its network between them"
    offers = {_offer(name, run, hosts, said) for name in names}
    if None in offers:
        silent = next(name for name in names if _offer(name, run, hosts, said) is None)
        return f"which offer {silent} is, nothing says (--offer {silent}=PROVIDER/TYPE)"
    if len(offers) > 1:
        return f"a run on {formatting.listing(sorted('/'.join(each or ()) for each in offers))}"
    (offer,) = offers
    assert offer is not None
    phases = observed_phases(run)
    if is_broken(run):
        return "machines were lost in it, or it took several commands"
    if not run.bytes or not phases or any(each.seconds <= 0 for each in phases):
        return "it moved nothing"
    other = 0.0
    if isinstance(run, RunRecord):
        other = max(run.seconds - sum(each.seconds for each in phases), 0.0)
    return RunObservation(
        name=name_of(run),
        offer=offer,
        job=kind_of(run),
        durability=durability_of(run),
        functions=functions_of(run),
        nodes=len(names),
        bytes=run.bytes,
        phases=tuple(phases),
        other_seconds=other,
    )


def _offer(
    node: str, run: Run, hosts: Mapping[str, OfferName], said: OfferAssignments
) -> OfferName | None:
    """What a node is: as is said of it, as labelled, as measured, as is said of all, as planned."""
    labels = run.labels.get(node, {})
    provider, kind = labels.get(PROVIDER), labels.get(MACHINE_TYPE)
    labelled = (provider, kind) if provider and kind else None
    found = said.by_host.get(node) or labelled or hosts.get(node) or said.default
    if found is None and run.compared and run.compared.planned:
        candidate = run.compared.planned.candidate
        found = candidate.provider, candidate.offer
    return found


def _together(runs: Sequence[RunObservation]) -> Calibration:
    """Repetitions of one job."""
    first = runs[0]
    phases = [[each.phases[place] for each in runs] for place in range(len(first.phases))]
    spread = _spread([_paces(runs, each) for each in phases])
    several = formatting.several(len(runs), "run")
    assumed = "; how runs vary is assumed" if len(runs) == 1 else ""
    return Calibration(
        job=first.job,
        durability=first.durability,
        functions=first.functions,
        nodes=first.nodes,
        bytes=max(each.bytes for each in runs),
        phases=[_phase(runs, each, spread) for each in phases],
        other_seconds=statistics.median(each.other_seconds for each in runs),
        runs=[each.name for each in runs],
        spread_source=f"{several} on {formatting.several(first.nodes, 'node')}{assumed}",
    )


def _phase(
    runs: Sequence[RunObservation], phases: Sequence[ObservedPhase], spread: float
) -> CalibratedPhase:
    (limits, _), *_ = Counter(phase.limits for phase in phases).most_common(1)
    return CalibratedPhase(
        name=phases[0].name,
        pace=statistics.median(_paces(runs, phases)),
        spread=spread,
        limits=list(limits),
        made=_median(phase.made for phase in phases),
        cpu_seconds_per_byte=_median(
            phase.cpu_seconds / run.bytes for run, phase in zip(runs, phases, strict=True)
        ),
    )


def _paces(runs: Sequence[RunObservation], phases: Sequence[ObservedPhase]) -> list[float]:
    """Bytes of input a second for each node, of each run."""
    return [run.bytes / run.nodes / phase.seconds for run, phase in zip(runs, phases, strict=True)]


def _spread(paces_of: Sequence[Sequence[float]]) -> float:
    """The standard deviation of paces' logarithms within phases; what is assumed of one run."""
    if len(paces_of[0]) < 2:
        return UNKNOWN_SPREAD
    variances = [statistics.variance(map(math.log, paces)) for paces in paces_of]
    return max(math.sqrt(statistics.fmean(variances)), LEAST_BETWEEN_RUNS)


def _median(values: Iterable[float | None]) -> float | None:
    known = [each for each in values if each is not None]
    return statistics.median(known) if known else None
