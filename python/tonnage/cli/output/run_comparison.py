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
            f"{formatting.seconds(limit.seconds)}, {formatting.percent(compared.phase_efficiency)}"
        )
        if compared.other_seconds is not None:
            line += (
                f"; with start and end {formatting.seconds(seconds)}, "
                f"{formatting.percent(limit.efficiency)}"
            )
        yield line
    if planned := compared.planned:
        each, of = planned.seconds, planned.candidate
        yield (
            f"planned: {formatting.seconds(each.median)} "
            f"({formatting.seconds_between(each.low, each.high)}) on {of.nodes} x {of.offer}; "
            f"{formatting.seconds(seconds)} is {'inside' if planned.inside else 'outside'}"
        )
    for note in compared.notes:
        yield formatting.sentence(note)


def _phase(phase: PhaseComparison) -> str:
    parts = [
        f"{formatting.phase(phase.name)}: {formatting.seconds(phase.seconds)} "
        f"on {phase.slowest_node}, the slowest (median {formatting.seconds(phase.median_seconds)})"
    ]
    if phase.limit_seconds is not None and phase.limit and phase.efficiency is not None:
        parts.append(
            f"limit {formatting.seconds(phase.limit_seconds)} "
            f"({formatting.resource(phase.limit)}), {formatting.percent(phase.efficiency)}"
        )
    expected = {None: "", True: ", as expected", False: ", unexpectedly"}
    parts.append(f"limited by {formatting.resource(phase.bottleneck)}{expected[phase.as_limited]}")
    if phase.planned_seconds is not None and phase.planned_bottleneck:
        found = "the same bottleneck" if phase.as_planned else "another bottleneck"
        if phase.came_seconds is not None and phase.came_seconds > phase.seconds:
            found += f", with copies {formatting.seconds(phase.came_seconds)}"
        parts.append(
            f"planned {formatting.seconds(phase.planned_seconds)} "
            f"by {phase.planned_bottleneck}, {found}"
        )
    return "; ".join(parts)
