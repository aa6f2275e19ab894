"""The phases of a finished run: duration, bottleneck, and selectivity.

The phases of a sort or a MapReduce are its passes on the slowest node, with the bottleneck from its
probes (`tonnage.model.run_comparison.two_pass`), and a MapReduce's copying of its output, as in
plans. The rounds of a reduction are represented by one, whose bottleneck is what its workers
spent most time on.
"""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from tonnage.base.records import ReductionRecord, RunRecord
from tonnage.base.records.calibration import run_name
from tonnage.base.records.durability import Durability
from tonnage.base.records.location import Location
from tonnage.model.run_comparison.two_pass import COPY, PASSES, PLAN_RESOURCES, compare
from tonnage.model.two_pass import CPU

Run = RunRecord | ReductionRecord
PASS = "pass"  # A round of a reduction
OBJECTS = "object storage"


@dataclass(frozen=True)
class ObservedPhase:
    """A phase of a run.

    ``limits`` names its bottleneck as plans do, with a name for each resource that it may mean;
    ``made`` is its selectivity, bytes of output for each byte of input.
    """

    name: str
    seconds: float
    limits: tuple[str, ...]
    made: float | None = None
    cpu_seconds: float = 0.0


def kind_of(run: Run) -> str:
    return "reduce" if isinstance(run, ReductionRecord) else run.job


def durability_of(run: Run) -> Durability:
    copied = isinstance(run, RunRecord) and run.durability == "replicated"
    return "replicated" if copied else "none"


def locations_of(run: RunRecord) -> tuple[Location, Location]:
    """Where its input was, and where its output went; directories are taken for local disks."""
    inputs, outputs = (run.settings.get(name, ()) for name in ("inputs", "output"))
    return _location(inputs), _location(outputs)


def _location(places: Iterable[object]) -> Location:
    return "objects" if any("://" in str(place) for place in places) else "local"


def name_of(run: Run) -> str:
    """The name by which profiles and plans cite a run."""
    return run_name(kind_of(run), run.began_at)


def nodes_of(run: Run) -> list[str]:
    """The nodes of a run; none for a run outside a cluster."""
    if isinstance(run, ReductionRecord):
        return sorted({each.node for each in run.workers})
    return sorted(each.node for each in run.nodes)


def functions_of(run: Run) -> str | None:
    """What identifies the work of a job besides its kind: the user's code, or name and flags."""
    if isinstance(run, ReductionRecord):
        flags = json.dumps(run.settings.get("flags", {}), sort_keys=True)
        return f"{run.job} {flags}"
    return run.settings.get("code") if run.job == "mapreduce" else None


def is_broken(run: Run) -> bool:
    """Whether its duration does not count: nodes were lost, or it took several commands."""
    if isinstance(run, ReductionRecord):
        return bool(run.lost) or run.rounds_here < run.rounds
    return run.commands > 1 or any(each.lost for each in run.nodes)


def observed_phases(run: Run) -> list[ObservedPhase]:
    """Its phases in order; none, if it is of another kind or empty."""
    return [*(_rounds(run) if isinstance(run, ReductionRecord) else _passes(run))]


def _passes(run: RunRecord) -> Iterator[ObservedPhase]:
    compared = {each.name: each for each in compare(run).phases}
    if not {*PASSES} <= compared.keys() <= {*PASSES, COPY}:
        return
    made = dict.fromkeys(PASSES, 1.0)
    if run.job != "sort":
        shuffled, written = run.shuffled_bytes or 0, run.written_bytes or 0
        made = {"pass_one": shuffled / max(run.bytes, 1), "pass_two": written / max(shuffled, 1)}
    seconds = {name: each.seconds for name, each in compared.items()}
    cores = {
        name: sum(use.amount for node in each.nodes for use in node.uses if use.resource == CPU)
        for name, each in compared.items()
    }
    names = [*PASSES]
    if COPY in compared and run.job == "sort":  # As earlier versions did.
        seconds["pass_two"] += compared[COPY].seconds
        cores["pass_two"] += cores[COPY]
    elif COPY in compared:
        names.append(COPY)
    # Phases do not count the CPU time of functions: it is shared out by duration.
    unattributed = max(run.cpu_seconds - sum(cores[name] for name in names), 0.0)
    total = sum(seconds[name] for name in names) or 1.0
    for name in names:
        yield ObservedPhase(
            name=name,
            seconds=seconds[name],
            limits=tuple(PLAN_RESOURCES[compared[name].bottleneck]),
            made=made.get(name),
            cpu_seconds=cores[name] + unattributed * seconds[name] / total,
        )


def _rounds(run: ReductionRecord) -> Iterator[ObservedPhase]:
    """One round: its bottleneck is retrieving chunks, or processing them."""
    if run.rounds_here:
        retrieving = sum(each.retrieval_seconds for each in run.workers)
        processing = sum(each.processing_seconds for each in run.workers)
        yield ObservedPhase(
            name=PASS,
            seconds=run.seconds / run.rounds_here,
            limits=("cpu",) if processing > retrieving else (OBJECTS,),
            cpu_seconds=run.cpu_seconds / run.rounds_here,
        )
