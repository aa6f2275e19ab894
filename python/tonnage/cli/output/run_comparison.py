"""A job on a fleet in words: each phase beside its limit and its plan."""

from __future__ import annotations

from collections.abc import Iterator

from tonnage.base import formatting
from tonnage.base.records import PhaseComparison, RunComparison


def lines(compared: RunComparison, seconds: float) -> Iterator[str]:
    """All that there is to say, line by line.

    Args:
        compared: The run.
        seconds: Of the run, from beginning to end.
    """
    for phase in compared.phases:
        yield _phase(phase)
    limit = compared.limit
    if limit and compared.phase_efficiency is not None:
        said = (
            f"all phases: {formatting.seconds(compared.phase_seconds)}, limit "
            f"{formatting.seconds(limit.seconds)}, {formatting.percent(compared.phase_efficiency)}"
        )
        if compared.other_seconds is not None:
            said += (
                f"; with beginning and end {formatting.seconds(seconds)}, "
                f"{formatting.percent(limit.efficiency)}"
            )
        yield said
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
    """A phase on the node that took longest for it."""
    parts = [
        f"{formatting.phase(phase.name)}: {formatting.seconds(phase.seconds)} on {phase.slowest_node}, the "
        f"slowest (median {formatting.seconds(phase.median_seconds)})"
    ]
    if phase.limit_seconds is not None and phase.limit and phase.efficiency is not None:
        parts.append(
            f"limit {formatting.seconds(phase.limit_seconds)} ({formatting.resource(phase.limit)}), "
            f"{formatting.percent(phase.efficiency)}"
        )
    foreseen = {None: "", True: ", as foreseen", False: ", which was not foreseen"}
    parts.append(f"limited by {formatting.resource(phase.bottleneck)}{foreseen[phase.as_limited]}")
    if phase.planned_seconds is not None and phase.planned_bottleneck:
        found = "as found" if phase.as_planned else "unlike found"
        if phase.came_seconds is not None and phase.came_seconds > phase.seconds:
            found += f", with copies {formatting.seconds(phase.came_seconds)}"
        parts.append(
            f"planned {formatting.seconds(phase.planned_seconds)} by {phase.planned_bottleneck}, {found}"
        )
    return "; ".join(parts)
