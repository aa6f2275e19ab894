"""Sum up a backtest: errors, intervals and regret of each job and of all, and of simpler laws."""

from collections import defaultdict
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tonnage.model.past_runs.clusters import Floats
from tonnage.plan.backtest.runs import Tested

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


@dataclass(frozen=True)
class Summary(LawSummary):
    name: str
    cells: int
    coverage: float
    width: float
    """The median of the intervals' upper bound over the lower."""
    deadline_regret_median: float | None
    baselines: Mapping[str, LawSummary]


@dataclass(frozen=True)
class Comparison:
    """The mean of the jobs' median errors less a baseline's, and its 90 % interval by program."""

    difference: float
    low: float
    high: float


def summary(name: str, tested: Sequence[Tested]) -> Summary:
    """Of all predictions of these tests together."""
    kept = [each.deadline_regret for each in tested if each.deadline_regret is not None]
    own = _law(
        [each.errors for each in tested],
        [each.regret for each in tested],
        [each.missed for each in tested],
    )
    return Summary(
        **vars(own),
        name=name,
        cells=sum(len(each.errors) for each in tested),
        coverage=float(np.concatenate([each.inside for each in tested]).mean()),
        width=float(np.median(np.concatenate([each.widths for each in tested]))),
        deadline_regret_median=float(np.median(kept)) if kept else None,
        baselines={
            law: _law(
                [each.baselines[law].errors for each in tested],
                [each.baselines[law].regret for each in tested],
                [each.baselines[law].missed for each in tested],
            )
            for law in tested[0].baselines
        },
    )


def summaries(tested: Sequence[Tested]) -> list[Summary]:
    """Of each job."""
    found: dict[str, list[Tested]] = defaultdict(list)
    for each in tested:
        found[each.job].append(each)
    return [summary(name, some) for name, some in found.items()]


def compare(tested: Sequence[Tested]) -> dict[str, Comparison]:
    """With each baseline; programs are drawn with replacement, with all of their jobs."""
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
    sums = np.array([sum(each) for each in programs.values()])
    counts = np.array([len(each) for each in programs.values()])
    drawn = np.random.default_rng(SEED).integers(0, len(sums), (RESAMPLED, len(sums)))
    means = sums[drawn].sum(axis=1) / counts[drawn].sum(axis=1)
    low, high = np.quantile(means, [0.05, 0.95])
    return Comparison(float(sums.sum() / counts.sum()), float(low), float(high))


def _law(errors: Sequence[Floats], regrets: Sequence[float], missed: Sequence[bool]) -> LawSummary:
    together = np.concatenate(errors)
    return LawSummary(
        median_error=float(np.median(together)),
        p90_error=float(np.quantile(together, 0.9)),
        regret_median=float(np.median(regrets)),
        regret_mean=float(np.mean(regrets)),
        regret_p90=float(np.quantile(regrets, 0.9)),
        missed=float(np.mean(missed)),
    )
