"""What the chosen cluster costs above the cheapest after each of a job's runs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from tonnage.base import formatting
from tonnage.plan.backtest.chosen_runs import ChosenRuns

ALL = "all jobs"


def next_values(found: Sequence[ChosenRuns], counts: Sequence[int]) -> dict[str, Any]:
    return {
        "next": {
            "jobs": [{"job": name, **_values(some, counts)} for name, some in _by_job(found)],
            "overall": _values(found, counts),
        }
    }


def next_lines(found: Sequence[ChosenRuns], counts: Sequence[int]) -> Iterator[str]:
    jobs = _by_job(found)
    width = max(len(name) for name, _ in [*jobs, (ALL, found)])
    yield (
        "Regret (mean) of the cluster chosen after as many runs, each but the first chosen by what "
        "is predicted from those before:"
    )
    yield f"  {'':{width}}" + "".join(f"{formatting.several(each, 'run'):>14}" for each in counts)
    for name, some in [*sorted(jobs), (ALL, found)]:
        yield _line(name, width, [each.regrets for each in some], counts)
    yield _line("at random", width, [each.random_regrets for each in found], counts)
    spent = float(np.median([each.spent for each in found]))
    yield f"  {max(counts)} chosen runs cost {spent:.1f} times the cheapest run, in the median"


def _by_job(found: Sequence[ChosenRuns]) -> list[tuple[str, Sequence[ChosenRuns]]]:
    jobs: dict[str, list[ChosenRuns]] = defaultdict(list)
    for each in found:
        jobs[each.job].append(each)
    return list(jobs.items())


def _values(some: Sequence[ChosenRuns], counts: Sequence[int]) -> dict[str, Any]:
    chosen = [each.regrets for each in some]
    drawn = [each.random_regrets for each in some]
    return {
        "regret_median": _by_count(chosen, counts, np.median),
        "regret_mean": _by_count(chosen, counts, np.mean),
        "random": {
            "regret_median": _by_count(drawn, counts, np.median),
            "regret_mean": _by_count(drawn, counts, np.mean),
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
