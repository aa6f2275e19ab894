"""Where a job runs today, in a few lines: what it costs, what limits it, and what would save."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tonnage.base import formatting
from tonnage.base.records.job import START_UP
from tonnage.base.records.plan import (
    UNKNOWN,
    Candidate,
    CurrentCluster,
    Plan,
    PlannedPhase,
    SignedRange,
)
from tonnage.cli.output.candidates import candidate_text, seconds_range, usd, usd_range

IDLE = "idle"
"""In notes on vCPUs without a task."""
NEGLIGIBLE = 0.02
"""Smaller shares of the time are not listed."""


def current_cluster_lines(plan: Plan) -> Iterator[str]:
    current = plan.current
    if current is None:
        return
    now = current.candidate
    yield (
        f"Today: {candidate_text(now)}: {seconds_range(now.seconds, plan.demands_known)}, "
        f"{usd_range(now.cost_usd, plan.demands_known)} a run{_start_text(now)}"
        f"{_run_text(current)}."
    )
    if any(phase.bottleneck != UNKNOWN for phase in now.phases):
        yield f"What limits it today: {limits_text(now.phases)}."
    for note in now.notes:
        if IDLE in note:
            yield f"Today: {formatting.sentence(note)}"
    if plan.candidates and current.saves_usd is not None:
        best = plan.candidates[0]
        yield f"{_saving(best, now, current.saves_usd)}{_monthly(current)}."


def limits_text(phases: Sequence[PlannedPhase]) -> str:
    """What limits a job, by its share of the time, most first."""
    seconds: dict[str, float] = {}
    for each in phases:
        seconds[each.bottleneck] = seconds.get(each.bottleneck, 0.0) + each.seconds
    whole = sum(seconds.values()) or 1.0
    parts = [
        f"{thing} ({formatting.percent(share / whole)} of the time)"
        for thing, share in sorted(seconds.items(), key=lambda pair: -pair[1])
        if share >= NEGLIGIBLE * whole
    ]
    return formatting.listing(parts)


def _start_text(now: Candidate) -> str:
    start = sum(each.seconds for each in now.phases if each.name == START_UP)
    if start < NEGLIGIBLE * now.seconds.median:
        return ""
    return (
        f"; {formatting.duration(start)} of it is the start of its machines (--startup 0 if they "
        "stay up)"
    )


def _run_text(current: CurrentCluster) -> str:
    if current.seen_seconds is None:
        return ""
    return f"; the run that was seen took {formatting.duration(current.seen_seconds)}"


def _saving(best: Candidate, now: Candidate, saves: SignedRange) -> str:
    times = best.seconds.median / now.seconds.median
    speed = f"in {times:.2g} times the time"
    what = f"{candidate_text(best)}, {speed},"
    if saves.median <= 0:
        return f"Today's cluster costs no more than the best candidate, {what.rstrip(',')}"
    share = formatting.percent(saves.median / now.cost_usd.median)
    return f"{what} saves {_dollars(saves)} a run ({share} of what it costs today)"


def _monthly(current: CurrentCluster) -> str:
    saves, runs = current.saves_usd, current.runs_per_month
    if saves is None or runs is None or saves.median <= 0:
        return ""
    month = SignedRange(low=saves.low * runs, median=saves.median * runs, high=saves.high * runs)
    return f", {_dollars(month)} a month of {runs:g} runs"


def _dollars(saves: SignedRange) -> str:
    return f"{usd(saves.median)} [{usd(saves.low)}..{usd(saves.high)}]".replace("$-", "-$")
