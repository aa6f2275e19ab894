"""A job on a cluster compared with its limits and its plan, phase by phase."""

from collections.abc import Iterator

from tonnage.base import formatting
from tonnage.base.records import PhaseComparison, RunComparison


def comparison_lines(compared: RunComparison, seconds: float) -> Iterator[str]:
    for phase in compared.phases:
        yield _phase(phase)
    limit = compared.limit
    if limit and compared.phase_efficiency is not None:
        line = (
            f"all phases: {formatting.seconds(compared.phase_seconds)}, limit "
            f"{formatting.seconds(limit.seconds)}, efficiency "
            f"{formatting.percent(compared.phase_efficiency)}"
        )
        if compared.other_seconds is not None:
            line += (
                f"; including start and end {formatting.seconds(seconds)}, "
                f"efficiency {formatting.percent(limit.efficiency)}"
            )
        yield line
    if planned := compared.planned:
        each, of = planned.seconds, planned.candidate
        yield (
            f"planned: {formatting.seconds(each.median)} "
            f"({formatting.seconds_between(each.low, each.high)}) on {of.nodes} x {of.offer}; "
            f"actual: {formatting.seconds(seconds)}, "
            f"{'inside' if planned.inside else 'outside'} this interval"
        )
    for note in compared.notes:
        yield formatting.sentence(note)


def _phase(phase: PhaseComparison) -> str:
    parts = [
        f"{formatting.phase(phase.name)}: {formatting.seconds(phase.seconds)} "
        f"on {phase.slowest_node}, the slowest node (median "
        f"{formatting.seconds(phase.median_seconds)})"
    ]
    if phase.limit_seconds is not None and phase.limit and phase.efficiency is not None:
        parts.append(
            f"limit {formatting.seconds(phase.limit_seconds)} "
            f"({formatting.resource(phase.limit)}), efficiency "
            f"{formatting.percent(phase.efficiency)}"
        )
    expected = {None: "", True: ", as predicted", False: ", not as predicted"}
    parts.append(f"limited by {formatting.resource(phase.bottleneck)}{expected[phase.as_limited]}")
    if phase.planned_seconds is not None and phase.planned_bottleneck:
        found = "the same bottleneck" if phase.as_planned else "a different bottleneck"
        if phase.came_seconds is not None and phase.came_seconds > phase.seconds:
            found += f", {formatting.seconds(phase.came_seconds)} including replication"
        parts.append(
            f"planned {formatting.seconds(phase.planned_seconds)}, "
            f"limited by {phase.planned_bottleneck} ({found})"
        )
    return "; ".join(parts)
