"""What the chosen cluster costs above the cheapest after each of a job's runs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from tonnage.base import formatting
from tonnage.cli.output.planning.backtest_runs import points
from tonnage.plan.backtest.chosen_runs import ChosenRuns
from tonnage.plan.backtest.summary import Comparison, compare_programs

ALL = "all jobs"
AT_RANDOM = "the same law"
"""From runs at random."""


def next_values(found: Sequence[ChosenRuns], counts: Sequence[int]) -> dict[str, Any]:
    return {
        "next": {
            "jobs": [{"job": name, **_values(some, counts)} for name, some in _by_job(found)],
            "overall": {
                **_values(found, counts),
                "less_than_random": {
                    str(count): asdict(_less_than_random(_by_job(found), count)) for count in counts
                },
            },
        }
    }


def next_lines(found: Sequence[ChosenRuns], counts: Sequence[int]) -> Iterator[str]:
    jobs = _by_job(found)
    laws = [AT_RANDOM, *found[0].law_regrets]
    width = max(map(len, [*(name for name, _ in jobs), ALL, *laws]))
    yield (
        "Regret (mean) of the cluster chosen after as many runs, each but the first chosen by what "
        "is predicted from those before:"
    )
    yield f"  {'':{width}}" + "".join(f"{formatting.several(each, 'run'):>14}" for each in counts)
    for name, some in [*sorted(jobs), (ALL, found)]:
        yield _line(name, width, [each.regrets for each in some], counts)
    yield "  from runs at random:"
    yield _line(AT_RANDOM, width, [each.random_regrets for each in found], counts)
    for law in found[0].law_regrets:
        yield _line(law, width, [each.law_regrets[law] for each in found], counts)
    last = min(max(counts), max(len(each.regrets) for each in found))
    worst, regret = max(
        ((name, _mean([each.regrets for each in some], last)) for name, some in jobs),
        key=lambda job: job[1],
    )
    yield f"  worst job after {formatting.several(last, 'run')}: {worst}, mean {100 * regret:.0f} %"
    yield (
        "  mean regret of a job less that of runs at random: "
        f"{points(_less_than_random(jobs, last))}, by program"
    )
    spent = float(np.median([each.spent for each in found]))
    yield f"  {last} chosen runs cost {spent:.1f} times the cheapest run, in the median"


def _less_than_random(jobs: Sequence[tuple[str, Sequence[ChosenRuns]]], count: int) -> Comparison:
    programs: dict[Hashable, list[float]] = defaultdict(list)
    for _, some in jobs:
        own, drawn = (
            _mean([getattr(each, name) for each in some], count)
            for name in ("regrets", "random_regrets")
        )
        programs[some[0].program].append(own - drawn)
    return compare_programs(programs)


def _mean(regrets: Sequence[Sequence[float]], count: int) -> float:
    return float(np.mean(_after(regrets, count)))


def _by_job(found: Sequence[ChosenRuns]) -> list[tuple[str, Sequence[ChosenRuns]]]:
    jobs: dict[str, list[ChosenRuns]] = defaultdict(list)
    for each in found:
        jobs[each.job].append(each)
    return list(jobs.items())


def _values(some: Sequence[ChosenRuns], counts: Sequence[int]) -> dict[str, Any]:
    chosen = [each.regrets for each in some]
    drawn = [each.random_regrets for each in some]
    by_law = {law: [each.law_regrets[law] for each in some] for law in some[0].law_regrets}
    return {
        "regret_median": _by_count(chosen, counts, np.median),
        "regret_mean": _by_count(chosen, counts, np.mean),
        "random": {
            "regret_median": _by_count(drawn, counts, np.median),
            "regret_mean": _by_count(drawn, counts, np.mean),
        },
        "baselines": {
            law: {
                "regret_median": _by_count(its, counts, np.median),
                "regret_mean": _by_count(its, counts, np.mean),
            }
            for law, its in by_law.items()
        },
        "spent_median": float(np.median([each.spent for each in some])),
    }


def _by_count(
    regrets: Sequence[Sequence[float]], counts: Sequence[int], summed: Any
) -> dict[str, float]:
    return {str(count): float(summed(_after(regrets, count))) for count in counts}


def _after(regrets: Sequence[Sequence[float]], count: int) -> list[float]:
    """After so many runs, or all of a job that has fewer."""
    return [each[min(count, len(each)) - 1] for each in regrets]


def _line(name: str, width: int, regrets: Sequence[Sequence[float]], counts: Sequence[int]) -> str:
    cells = [
        f"{100 * np.median(some):.0f} % ({100 * np.mean(some):.0f})"
        for some in (_after(regrets, count) for count in counts)
    ]
    return f"  {name:{width}}" + "".join(f"{each:>14}" for each in cells)
