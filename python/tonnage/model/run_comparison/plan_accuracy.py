"""The accuracy of the plan that a run followed: time, cost, and the largest deviation."""

from tonnage.base import formatting
from tonnage.base.records import FollowedPlan, ReductionRecord, RunComparison, RunRecord
from tonnage.base.records.cluster_study import PlanAccuracy


def plan_accuracy(record: RunRecord | ReductionRecord) -> PlanAccuracy:
    planned = record.compared.planned if record.compared else None
    assert record.compared is not None and planned is not None
    candidate, seconds = planned.candidate, record.seconds
    usd_per_second = candidate.nodes * candidate.usd_per_hour / 3600
    return PlanAccuracy(
        planned=planned.seconds,
        seconds=seconds,
        planned_usd=usd_per_second * planned.seconds.median,
        usd=usd_per_second * seconds,
        error_fraction=abs(planned.seconds.median - seconds) / seconds,
        inside=planned.inside,
        missed=None if planned.inside else _largest_deviation(record.compared, planned),
    )


def _largest_deviation(compared: RunComparison, planned: FollowedPlan) -> str | None:
    """The phase, or the time outside of phases, that was furthest from its plan."""
    deviations, left = {}, planned.seconds.median
    for each in compared.phases:
        if each.planned_seconds is None:
            continue
        took = each.seconds if each.came_seconds is None else each.came_seconds
        bottleneck = formatting.resource(each.bottleneck)
        is_alone = took == each.seconds  # With replication, the longer of both was judged.
        if is_alone and each.planned_bottleneck and not each.as_planned:
            bottleneck += f", planned as {each.planned_bottleneck}"
        deviations[f"{formatting.phase(each.name)} ({bottleneck})"] = abs(
            took - each.planned_seconds
        )
        left -= each.planned_seconds
    if deviations and compared.other_seconds is not None:
        deviations["start and end"] = abs(compared.other_seconds - left)
    return max(deviations, key=deviations.__getitem__, default=None)
