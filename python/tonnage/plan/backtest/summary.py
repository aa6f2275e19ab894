"""Sum up a backtest: errors, intervals and regret of each job and of all, and of simpler laws."""

from collections import defaultdict
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tonnage.plan.backtest.runs import OfBaseline, Tested

RESAMPLED = 2_000
SEED = 28


@dataclass(frozen=True)
class LawSummary:
    """Medians and 90 % quantiles of absolute relative errors, and of regret."""

    median_error: float
    p90_error: float
    regret_median: float
    regret_mean: float
    regret_p90: float
    missed: float
    """The share of deadlines that the chosen clusters miss."""
    deadline_regret_median: float | None
    deadline_regret_mean: float | None
    """Of the others, what they cost above the cheapest in time; ``None`` if all are late."""


@dataclass(frozen=True)
class Summary(LawSummary):
    name: str
    cells: int
    coverage: float
    width: float
    """The median of the intervals' upper bound over the lower."""
    baselines: Mapping[str, LawSummary]


@dataclass(frozen=True)
class Comparison:
    """The mean over jobs of a figure less that of another law, and its 90 % interval by program;
    none of a single program."""

    difference: float
    low: float | None
    high: float | None


def summary(name: str, tested: Sequence[Tested]) -> Summary:
    """Of all predictions of these tests together."""
    return Summary(
        **vars(_law(tested)),
        name=name,
        cells=sum(len(each.errors) for each in tested),
        coverage=float(np.concatenate([each.inside for each in tested]).mean()),
        width=float(np.median(np.concatenate([each.widths for each in tested]))),
        baselines={
            law: _law([each.baselines[law] for each in tested]) for law in tested[0].baselines
        },
    )


def summaries(tested: Sequence[Tested]) -> list[Summary]:
    """Of each job."""
    found: dict[str, list[Tested]] = defaultdict(list)
    for each in tested:
        found[each.job].append(each)
    return [summary(name, some) for name, some in found.items()]


def compare(tested: Sequence[Tested]) -> dict[str, Comparison]:
    """The jobs' median errors with each baseline's."""
    jobs: dict[str, list[Tested]] = defaultdict(list)
    for each in tested:
        jobs[each.job].append(each)
    return {law: _compare(jobs, law) for law in tested[0].baselines}


def _compare(jobs: Mapping[str, Sequence[Tested]], law: str) -> Comparison:
    programs: dict[Hashable, list[float]] = defaultdict(list)
    for some in jobs.values():
        own = np.median(np.concatenate([each.errors for each in some]))
        its = np.median(np.concatenate([each.baselines[law].errors for each in some]))
        programs[some[0].program].append(float(own - its))
    return compare_programs(programs)


def compare_programs(programs: Mapping[Hashable, Sequence[float]]) -> Comparison:
    """From each program's differences, one for each of its jobs; programs are drawn with
    replacement, with all of their jobs."""
    found = [difference for some in programs.values() for difference in some]
    if len(programs) < 2:
        return Comparison(float(np.mean(found)), None, None)
    sums = np.array([sum(each) for each in programs.values()])
    counts = np.array([len(each) for each in programs.values()])
    drawn = np.random.default_rng(SEED).integers(0, len(sums), (RESAMPLED, len(sums)))
    means = sums[drawn].sum(axis=1) / counts[drawn].sum(axis=1)
    low, high = np.quantile(means, [0.05, 0.95])
    return Comparison(float(np.mean(found)), float(low), float(high))


def _law(tested: Sequence[Tested | OfBaseline]) -> LawSummary:
    together = np.concatenate([each.errors for each in tested])
    regrets = [each.regret for each in tested]
    in_time = [each.deadline_regret for each in tested if each.deadline_regret is not None]
    return LawSummary(
        median_error=float(np.median(together)),
        p90_error=float(np.quantile(together, 0.9)),
        regret_median=float(np.median(regrets)),
        regret_mean=float(np.mean(regrets)),
        regret_p90=float(np.quantile(regrets, 0.9)),
        missed=float(np.mean([each.missed for each in tested])),
        deadline_regret_median=float(np.median(in_time)) if in_time else None,
        deadline_regret_mean=float(np.mean(in_time)) if in_time else None,
    )
