"""A study of a cluster on the terminal."""

from collections import Counter
from collections.abc import Iterator

from tonnage.base import formatting
from tonnage.base.records.cluster_study import ClusterStudy


def study_lines(study: ClusterStudy) -> Iterator[str]:
    counts = Counter(f"{each.provider}/{each.type}" for each in study.machines)
    if counts:
        yield f"Nodes: {', '.join(f'{counts[name]} x {name}' for name in sorted(counts))}"
    if chosen := study.candidate:
        seconds = chosen.seconds
        yield (
            f"Planned: {chosen.nodes} x {chosen.offer} ({chosen.layout}), "
            f"{formatting.seconds(seconds.median)} "
            f"({formatting.seconds_between(seconds.low, seconds.high)})"
        )
    if came := study.came:
        of = "inside" if came.inside else "outside"
        missed = f"; largest error: {came.missed}" if came.missed else ""
        yield (
            f"Result: {formatting.seconds(came.seconds)}, "
            f"{formatting.percent(came.error_fraction)} off the plan, {of} its interval{missed}; "
            f"cost {formatting.usd(came.usd)}, planned {formatting.usd(came.planned_usd)}"
        )
    if study.report:
        yield f"Report: {study.report}"
