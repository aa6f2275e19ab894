"""How well hidden runs of each job were predicted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from tonnage.base import formatting
from tonnage.model.past_runs.choice import IN_TIME
from tonnage.plan.backtest.runs import CONFIDENCE, Tested
from tonnage.plan.backtest.summary import (
    Comparison,
    LawSummary,
    Summary,
    compare,
    summaries,
    summary,
)

ALL = "all jobs"


def backtest_values(found: Mapping[int, Sequence[Tested]]) -> dict[str, Any]:
    """With one number of known runs as its values, with several by number."""
    by_number = {count: _values(tested) for count, tested in found.items() if tested}
    if len(by_number) == 1:
        (only,) = by_number.values()
        return {"train": next(iter(by_number)), **only}
    return {"train": {str(count): values for count, values in by_number.items()}}


def _values(tested: Sequence[Tested]) -> dict[str, Any]:
    return {
        "jobs": [{"job": each.name, **_summary_values(each)} for each in summaries(tested)],
        "overall": {
            **_summary_values(summary(ALL, tested)),
            "comparison": {law: asdict(each) for law, each in compare(tested).items()},
        },
    }


def _summary_values(its: Summary) -> dict[str, Any]:
    values = asdict(its)
    del values["name"]
    return values


def backtest_lines(found: Mapping[int, Sequence[Tested]]) -> Iterator[str]:
    for count, tested in found.items():
        if tested:
            yield from _lines(count, tested)


def _lines(count: int, tested: Sequence[Tested]) -> Iterator[str]:
    jobs, overall = summaries(tested), summary(ALL, tested)
    width = max(len(each.name) for each in [*jobs, overall])
    yield (
        f"From {formatting.several(count, 'run')} of each job, "
        f"{formatting.count(overall.cells)} hidden runs predicted:"
    )
    yield (
        f"  {'':{width}}  error (90 %)  {100 * CONFIDENCE:.0f} % inside  high/low  regret (mean)"
    )
    for each in [*sorted(jobs, key=lambda one: one.name), overall]:
        yield (
            f"  {each.name:{width}}  {_error(each):>12}  {100 * each.coverage:8.0f} %  "
            f"{each.width:8.2f}  {_regret(each):>13}"
        )
    worst = max(jobs, key=lambda one: one.median_error)
    least = min(jobs, key=lambda one: one.coverage)
    yield (
        f"  worst job: {worst.name}, {100 * worst.median_error:.0f} %; fewest inside: "
        f"{least.name}, {100 * least.coverage:.0f} %"
    )
    yield (
        f"  with a deadline that half of the clusters keep, asked for with {100 * IN_TIME:.0f} %: "
        f"{_deadline(overall)}"
    )
    compared = compare(tested)
    for law, its in overall.baselines.items():
        yield (
            f"  {law + ':':15}{_error(its):>12}, regret {_regret(its)}, deadline "
            f"{_deadline(its)}; {_comparison(compared[law])}"
        )


def _error(its: LawSummary) -> str:
    return f"{100 * its.median_error:.1f} % ({100 * its.p90_error:.0f})"


def _regret(its: LawSummary) -> str:
    return f"{100 * its.regret_median:.0f} % ({100 * its.regret_mean:.0f})"


def _deadline(its: LawSummary) -> str:
    missed = f"missed by {100 * its.missed:.0f} % of the choices"
    median, mean = its.deadline_regret_median, its.deadline_regret_mean
    if median is None or mean is None:
        return missed
    return (
        f"{missed}, the others {100 * median:.0f} % ({100 * mean:.0f}) above the cheapest in time"
    )


def _comparison(its: Comparison) -> str:
    return f"median of a job {points(its)} of it, by program"


def points(its: Comparison) -> str:
    """A difference in points of percent, with its interval."""
    difference = f"{100 * its.difference:+.1f} points"
    if its.low is None or its.high is None:
        return difference
    return f"{difference} [{100 * its.low:+.1f} .. {100 * its.high:+.1f}]"
