"""A reduction beside its plan: its rounds, which are alike, as one phase.

What held it up is what its workers spent most of their time with, waiting for chunks or reducing
them; waiting for each other is neither, and follows from who was slowest. Planned seconds are in
proportion to the bytes that were read, and to the rounds.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator

from msgspec import structs

from tonnage.base import formatting
from tonnage.base.records import (
    FollowedPlan,
    NodePhase,
    PhaseComparison,
    ReductionRecord,
    RunComparison,
)
from tonnage.base.records.plan import Candidate, Plan, Range
from tonnage.model.run_comparison.two_pass import FAR, GET, THINGS
from tonnage.model.run_phases import functions_of
from tonnage.model.two_pass import CPU

ROUNDS = "rounds"
"""The phase that stands for all of them."""


def compare_reduction(record: ReductionRecord, plan: Plan, candidate: Candidate) -> ReductionRecord:
    """The record, with its rounds beside what was planned of them.

    Args:
        record: A reduction that is done.
        plan: What it was planned with.
        candidate: Which of the plan's candidates it followed.
    """
    rounds = record.rounds_here / max(len(plan.job.phases), 1)
    scale = record.bytes / plan.bytes * rounds
    between = candidate.seconds
    seconds = Range(
        low=between.low * scale, median=between.median * scale, high=between.high * scale
    )
    longest = max(candidate.phases, key=lambda phase: phase.seconds)
    found = _rounds(record)
    return structs.replace(
        record,
        compared=RunComparison(
            phases=[
                structs.replace(
                    found,
                    planned_seconds=seconds.median,
                    planned_bottleneck=longest.bottleneck,
                    as_planned=longest.bottleneck in THINGS[found.bottleneck],
                )
            ],
            phase_seconds=record.seconds,
            other_seconds=0.0,
            planned=FollowedPlan(
                candidate=candidate,
                made_at=plan.made_at,
                bytes=plan.bytes,
                seconds=seconds,
                inside=seconds.low <= record.seconds <= seconds.high,
            ),
            notes=[*_notes(record, plan)],
        ),
    )


def _rounds(record: ReductionRecord) -> PhaseComparison:
    """All rounds on all nodes: on each as long as its slowest worker was not waiting for others."""
    at_work: dict[str, float] = {}
    for each in record.workers:
        seconds = each.retrieval_seconds + each.processing_seconds
        at_work[each.node] = max(at_work.get(each.node, 0.0), seconds)
    retrieving = sum(each.retrieval_seconds for each in record.workers)
    processing = sum(each.processing_seconds for each in record.workers)
    slowest = max(at_work, key=lambda node: (at_work[node], node))
    return PhaseComparison(
        name=ROUNDS,
        seconds=record.seconds,
        median_seconds=statistics.median(at_work.values()),
        slowest_node=slowest,
        bottleneck=CPU if processing > retrieving else GET,
        bottleneck_node=slowest,
        nodes=[NodePhase(node=node, seconds=at_work[node], uses=[]) for node in sorted(at_work)],
    )


def _notes(record: ReductionRecord, plan: Plan) -> Iterator[str]:
    if abs(record.bytes / plan.bytes - 1) > FAR:
        yield (
            f"it was planned for {formatting.size(plan.bytes)}: planned seconds are in proportion to "
            f"the {formatting.size(record.bytes)} that there were"
        )
    planned = len(plan.job.phases)
    if record.rounds_here != planned:
        yield (
            f"it was planned with {formatting.several(planned, 'round')}: "
            f"planned seconds are in proportion to the {record.rounds_here} that this command did"
        )
    functions = plan.job.settings.get("functions")
    if functions not in (None, functions_of(record)):
        yield f"it was planned as {functions}, and was {functions_of(record)}"
    if not any("://" in str(place) for place in record.settings.get("inputs", ())):
        yield "it was planned with object storage, and its input lies on the machines"
