"""Calibrations from finished runs: every run is a measurement, too.

Benchmarks of single resources are optimistic, since a job uses disks, network and cores at the same
time. A run on N nodes with D bytes of input and t seconds for a phase gives the phase's pace,
``D / N / t`` bytes of input a second for each node, and its bottleneck. The bottleneck carried
exactly that much, every other resource at least that much. Plans use both
(`tonnage.plan.calibration`), and the model extrapolates to other sizes and clusters.

Runs of one job on the same number of nodes of an offer are repetitions: their median counts. Their
variation is the spread, one for all phases, as each has few samples; for a single run it is
assumed. Not used are runs on fewer nodes than others, since plans are mostly for more; runs that
lost a node or took several commands, whose duration is not the job's; runs on several offers; and
runs on one machine, whose passes have no network between them.
"""

import math
import statistics
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from tonnage.base import formatting
from tonnage.base.records import RunRecord
from tonnage.base.records.calibration import CalibratedPhase, Calibration
from tonnage.base.records.durability import Durability
from tonnage.base.records.environment import MACHINE_TYPE, PROVIDER
from tonnage.base.records.location import Location
from tonnage.base.records.profile import UnusedMeasurements
from tonnage.model.capacity import UNKNOWN_SPREAD
from tonnage.model.profiles.offer_matching import DEBUG, OfferAssignments, OfferName, unused
from tonnage.model.run_phases import (
    ObservedPhase,
    Run,
    durability_of,
    functions_of,
    is_broken,
    kind_of,
    locations_of,
    name_of,
    nodes_of,
    observed_phases,
)

MIN_BETWEEN_RUNS = 0.05
"""Minimum spread: repeated runs share their cluster and their hour, the next run shares neither.
Assumed."""


@dataclass(frozen=True)
class RunObservation:
    name: str
    offer: OfferName
    job: str
    durability: Durability
    locations: tuple[Location, Location] | None
    """Of its input and output; those of a reduction are not distinguished."""
    functions: str | None
    nodes: int
    bytes: int
    phases: tuple[ObservedPhase, ...]
    other_seconds: float

    @property
    def key(self) -> tuple[object, ...]:
        """What repetitions have in common, except the number of nodes."""
        names = tuple(phase.name for phase in self.phases)
        return self.offer, self.job, self.durability, self.locations, self.functions, names


def calibrations(
    runs: Sequence[Run], hosts: Mapping[str, OfferName], assigned: OfferAssignments
) -> tuple[dict[OfferName, list[Calibration]], list[UnusedMeasurements]]:
    """Each offer's calibrations, and the unused runs; ``hosts`` are measured machines' offers."""
    observations: list[RunObservation] = []
    left: list[UnusedMeasurements] = []
    for run in runs:
        found = _observation(run, hosts, assigned)
        if isinstance(found, str):
            left.append(unused(name_of(run), found))
        else:
            observations.append(found)
    made: dict[OfferName, list[Calibration]] = {}
    for key in dict.fromkeys(each.key for each in observations):
        alike = [each for each in observations if each.key == key]
        nodes = max(each.nodes for each in alike)
        largest = [each for each in alike if each.nodes == nodes]
        made.setdefault(largest[0].offer, []).append(_combine(largest))
        for each in alike:
            if each.nodes < nodes:
                fewer = formatting.several(each.nodes, "node")
                why = f"a run on only {fewer}, while another run used {nodes}"
                left.append(unused(each.name, why))
    return made, left


def _observation(
    run: Run, hosts: Mapping[str, OfferName], assigned: OfferAssignments
) -> RunObservation | str:
    if run.environment.debug_build:
        return DEBUG
    names = nodes_of(run)
    if not names:
        return "a run on one machine, so there is no network between its passes"
    offers = {_offer(name, run, hosts, assigned) for name in names}
    if None in offers:
        silent = next(name for name in names if _offer(name, run, hosts, assigned) is None)
        return f"the offer of {silent} is unknown; assign it one, as in {silent}=PROVIDER/TYPE"
    if len(offers) > 1:
        return (
            "a run on several offers "
            f"({formatting.listing(sorted('/'.join(each or ()) for each in offers))})"
        )
    (offer,) = offers
    assert offer is not None
    phases = observed_phases(run)
    if is_broken(run):
        return "nodes were lost, or the job took several commands"
    if not run.bytes or not phases or any(each.seconds <= 0 for each in phases):
        return "the run moved no data"
    other = 0.0
    if isinstance(run, RunRecord):
        other = max(run.seconds - sum(each.seconds for each in phases), 0.0)
    return RunObservation(
        name=name_of(run),
        offer=offer,
        job=kind_of(run),
        durability=durability_of(run),
        locations=locations_of(run) if isinstance(run, RunRecord) else None,
        functions=functions_of(run),
        nodes=len(names),
        bytes=run.bytes,
        phases=tuple(phases),
        other_seconds=other,
    )


def _offer(
    node: str, run: Run, hosts: Mapping[str, OfferName], assigned: OfferAssignments
) -> OfferName | None:
    """A node's offer: assigned, labelled, measured, assigned by default, or planned."""
    labels = run.labels.get(node, {})
    provider, kind = labels.get(PROVIDER), labels.get(MACHINE_TYPE)
    labelled = (provider, kind) if provider and kind else None
    found = assigned.by_host.get(node) or labelled or hosts.get(node) or assigned.default
    if found is None and run.compared and run.compared.planned:
        candidate = run.compared.planned.candidate
        found = candidate.provider, candidate.offer
    return found


def _combine(runs: Sequence[RunObservation]) -> Calibration:
    first = runs[0]
    phases = [[each.phases[place] for each in runs] for place in range(len(first.phases))]
    spread = _spread([_paces(runs, each) for each in phases])
    several = formatting.several(len(runs), "run")
    assumed = "; the variation of runs is assumed" if len(runs) == 1 else ""
    return Calibration(
        job=first.job,
        durability=first.durability,
        input_location=first.locations and first.locations[0],
        output_location=first.locations and first.locations[1],
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
    return [run.bytes / run.nodes / phase.seconds for run, phase in zip(runs, phases, strict=True)]


def _spread(paces_of: Sequence[Sequence[float]]) -> float:
    """The standard deviation of the paces' logarithms within phases; assumed for a single run."""
    if len(paces_of[0]) < 2:
        return UNKNOWN_SPREAD
    variances = [statistics.variance(map(math.log, paces)) for paces in paces_of]
    return max(math.sqrt(statistics.fmean(variances)), MIN_BETWEEN_RUNS)


def _median(values: Iterable[float | None]) -> float | None:
    known = [each for each in values if each is not None]
    return statistics.median(known) if known else None
