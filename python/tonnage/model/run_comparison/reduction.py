"""Compare a reduction with its plan: all of its rounds as one phase.

Its bottleneck is what its workers spent most time on, retrieving chunks or processing them. Waiting
for each other is neither: it follows from the slowest worker. Planned seconds are scaled to the
bytes that were read, and to the rounds.
"""

import statistics
from collections.abc import Iterator

from msgspec import structs

from tonnage.base import formatting
from tonnage.base.records import NodePhase, PhaseComparison, ReductionRecord, RunComparison
from tonnage.base.records.plan import Candidate, Plan
from tonnage.model.run_comparison.two_pass import GET, PLAN_RESOURCES, TOLERANCE, followed_plan
from tonnage.model.run_phases import functions_of
from tonnage.model.two_pass import CPU

ROUNDS = "rounds"  # The phase that represents all of them


def compare_reduction(record: ReductionRecord, plan: Plan, candidate: Candidate) -> ReductionRecord:
    """The record of a finished reduction, compared with a candidate of its plan."""
    rounds = record.rounds_here / max(len(plan.job.phases), 1)
    planned = followed_plan(record, plan, candidate, record.bytes / plan.bytes * rounds)
    longest = max(candidate.job_phases, key=lambda phase: phase.seconds)
    found = _rounds(record)
    return structs.replace(
        record,
        compared=RunComparison(
            phases=[
                structs.replace(
                    found,
                    planned_seconds=planned.seconds.median,
                    planned_bottleneck=longest.bottleneck,
                    as_planned=longest.bottleneck in PLAN_RESOURCES[found.bottleneck],
                )
            ],
            phase_seconds=record.seconds,
            other_seconds=0.0,
            planned=planned,
            notes=[*_notes(record, plan)],
        ),
    )


def _rounds(record: ReductionRecord) -> PhaseComparison:
    """All rounds on all nodes; a node's duration is that of its slowest worker without waiting."""
    busy_seconds: dict[str, float] = {}
    for each in record.workers:
        seconds = each.retrieval_seconds + each.processing_seconds
        busy_seconds[each.node] = max(busy_seconds.get(each.node, 0.0), seconds)
    retrieving = sum(each.retrieval_seconds for each in record.workers)
    processing = sum(each.processing_seconds for each in record.workers)
    slowest = max(busy_seconds, key=lambda node: (busy_seconds[node], node))
    return PhaseComparison(
        name=ROUNDS,
        seconds=record.seconds,
        median_seconds=statistics.median(busy_seconds.values()),
        slowest_node=slowest,
        bottleneck=CPU if processing > retrieving else GET,
        bottleneck_node=slowest,
        nodes=[
            NodePhase(node=node, seconds=busy_seconds[node], uses=[])
            for node in sorted(busy_seconds)
        ],
    )


def _notes(record: ReductionRecord, plan: Plan) -> Iterator[str]:
    if abs(record.bytes / plan.bytes - 1) > TOLERANCE:
        yield (
            f"the plan was for {formatting.size(plan.bytes)}; its seconds are scaled to "
            f"{formatting.size(record.bytes)}"
        )
    planned = len(plan.job.phases)
    if record.rounds_here != planned:
        yield (
            f"the plan was for {formatting.several(planned, 'round')}; "
            f"its seconds are scaled to the {record.rounds_here} of this command"
        )
    functions = plan.job.settings.get("functions")
    if functions not in (None, functions_of(record)):
        yield f"the plan was for {functions}, but the run used {functions_of(record)}"
    if not any("://" in str(place) for place in record.settings.get("inputs", ())):
        yield "the plan assumed object storage, but the input was on the nodes' disks"
