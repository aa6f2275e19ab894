"""Cross-validation by program of what is assumed of jobs before their runs are known.

    .venv/bin/python benches/past_runs/bench.py RUNS.csv... --training-sets FILE

For each program (the jobs of one name, whatever their engine, data and table), the settings of the
prior and the misfit are learned from all other programs, and judged on it. Learning begins with a
broad prior, `BROAD`, and goes once through the settings of `CHOICES`, each time keeping the value
of the best mean score. The score is the continuous ranked probability score (Matheson and Winkler
1976) of the logarithm of seconds: the mean distance between what is predicted and what was, less
half of the mean distance between two draws. Each program counts the same.

Printed are errors, coverage and width for each program with the settings learned without it, and
pooled over all, next to the settings in use, which know all of these programs. The form of the law
and the list of settings and values are what the figures do not judge: they were fixed before.
"""

from __future__ import annotations

import argparse
import sys
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from tonnage.catalog import catalog_names, load_catalog
from tonnage.model.past_runs.clusters import Floats
from tonnage.model.past_runs.misfit import MISFIT, Misfit
from tonnage.model.past_runs.posterior import Times
from tonnage.model.past_runs.prior import PRIOR, LogNormal, Normal, Prior
from tonnage.plan.backtest.runs import CONFIDENCE, Backtest
from tonnage.plan.backtest.training_sets import TrainingSet, read_training_sets
from tonnage.plan.past_runs.run_machines import Machines
from tonnage.plan.past_runs.run_table import read_runs

Assumed = tuple[Prior, Misfit]
Change = Callable[[Prior, Misfit], Assumed]

BROAD = (
    replace(
        PRIOR,
        core_speed_power=Normal(0.75, 0.25),
        network=LogNormal(0.37, 1.2),
        serial=LogNormal(0.1, 1.4),
        cliff_factor=LogNormal(1.35, 0.9, 0.25),
    ),
    replace(MISFIT, of_type=0.08),
)


def of_prior(name: str, *values: Normal | LogNormal) -> tuple[str, list[Change]]:
    return name, [
        lambda prior, misfit, to=to: (replace(prior, **{name: to}), misfit) for to in values
    ]


def of_misfit(name: str, *values: float) -> tuple[str, list[Change]]:
    return name, [
        lambda prior, misfit, to=to: (prior, replace(misfit, **{name: to})) for to in values
    ]


CHOICES = [
    of_prior(
        "cliff_factor",
        LogNormal(1.35, 0.9, 0.25),
        LogNormal(2.0, 0.8, 0.25),
        LogNormal(2.0, 0.8, 0.5),
        LogNormal(3.0, 0.7, 0.5),
    ),
    of_prior("network", LogNormal(0.37, 1.2), LogNormal(0.2, 1.2), LogNormal(0.2, 1.2, 0.6)),
    of_prior("serial", LogNormal(0.1, 1.4), LogNormal(0.1, 1.4, 0.6)),
    of_prior("core_speed_power", Normal(0.75, 0.25), Normal(0.5, 0.25), Normal(0.3, 0.25)),
    of_misfit("spread", 0.06, 0.09, 0.12),
    of_misfit("of_type", 0.06, 0.08, 0.1),
    of_misfit("noise", 0.035, 0.05, 0.07),
]


@dataclass(frozen=True)
class Predicted:
    """The hidden runs of a job, from one training set."""

    program: str
    source: str
    known: int
    score: float
    errors: Floats
    inside: Floats
    widths: Floats


@dataclass
class Tables:
    """The tables of runs with their training sets, and what was predicted with some settings."""

    backtests: Mapping[str, tuple[Backtest, Sequence[TrainingSet]]]
    counts: Sequence[int]

    def __post_init__(self) -> None:
        self._found: dict[Assumed, list[Predicted]] = {}

    def predicted(self, assumed: Assumed) -> list[Predicted]:
        if assumed not in self._found:
            self._found[assumed] = [
                one
                for source, (backtest, sets) in self.backtests.items()
                for each in sets
                for name in each.places
                for count in self.counts
                for one in self._of_job(source, backtest, assumed, each, name, count)
            ]
        return self._found[assumed]

    def _of_job(
        self,
        source: str,
        backtest: Backtest,
        assumed: Assumed,
        trained: TrainingSet,
        name: str,
        count: int,
    ) -> list[Predicted]:
        backtest.prior, backtest.misfit = assumed
        known = backtest.known_runs(name, trained, count)
        if known is None:
            return []
        job = backtest.jobs[name]
        own = [place for other, place in known if other == name]
        hidden = [place for place in job.finished if place not in own]
        times, true = backtest.predict(name, known).at(hidden), job.seconds[hidden]
        low, high = times.interval(CONFIDENCE)
        return [
            Predicted(
                program=job.program[0],
                source=source,
                known=count,
                score=score(times, np.log(true)),
                errors=np.abs(times.seconds / true - 1),
                inside=((low <= true) & (true <= high)).astype(np.float64),
                widths=high / low,
            )
        ]


def score(times: Times, log_seconds: Floats) -> float:
    """The mean over runs of the continuous ranked probability score."""
    draws = np.sort(times.single, axis=0)
    count = len(draws)
    ranks = (2 * np.arange(1, count + 1) - count - 1) / count**2
    return float(np.mean(np.abs(draws - log_seconds).mean(axis=0) - ranks @ draws))


def scores(predicted: Sequence[Predicted]) -> dict[str, float]:
    """Of each program."""
    found: dict[str, list[float]] = defaultdict(list)
    for each in predicted:
        found[each.program].append(each.score)
    return {program: float(np.mean(some)) for program, some in found.items()}


def learned(tables: Tables, without: str) -> tuple[Assumed, list[str]]:
    """The settings of the best mean score over the other programs, and what was changed."""

    def mean(assumed: Assumed) -> float:
        by_program = scores(tables.predicted(assumed))
        return float(np.mean([value for name, value in by_program.items() if name != without]))

    best, changed = BROAD, []
    for name, changes in CHOICES:
        tried = min((change(*best) for change in changes), key=mean)
        if tried != best:
            part = getattr(tried[0], name, None) or getattr(tried[1], name)
            changed.append(f"{name} {tuple(part) if isinstance(part, tuple) else part}")
        best = tried
    return best, changed


def figures(name: str, some: Sequence[Predicted]) -> str:
    together = {
        part: np.concatenate([getattr(each, part) for each in some])
        for part in ("errors", "inside", "widths")
    }
    return (
        f"{name:34} {100 * np.median(together['errors']):5.1f} % "
        f"({100 * np.quantile(together['errors'], 0.9):3.0f})  "
        f"{100 * together['inside'].mean():3.0f} % inside  "
        f"high/low {np.median(together['widths']):.2f}  "
        f"score {np.mean([each.score for each in some]):.4f}"
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("runs", nargs="+", type=Path, help="tables of runs, as of tonnage backtest")
    parser.add_argument("--training-sets", required=True, type=Path)
    parser.add_argument("--strategies", nargs="*", default=["mid", "random"])
    parser.add_argument("--sets", type=int, default=8, help="how many training sets of each table")
    parser.add_argument("--train", nargs="+", type=int, default=[1, 2, 3])
    arguments = parser.parse_args()
    machines = Machines([load_catalog(name) for name in sorted(catalog_names())])
    backtests = {}
    for path in arguments.runs:
        backtest = Backtest(read_runs(path), machines)
        sets = read_training_sets(arguments.training_sets, backtest.runs, arguments.strategies)
        backtests[path.stem] = (backtest, sets[: arguments.sets])
    tables = Tables(backtests, arguments.train)
    in_use = tables.predicted((PRIOR, MISFIT))
    hidden: list[Predicted] = []
    for program in sorted(scores(in_use)):
        assumed, changed = learned(tables, program)
        print(f"without {program}: {'; '.join(changed) or 'nothing changed'}", flush=True)
        hidden += [each for each in tables.predicted(assumed) if each.program == program]
    broad = tables.predicted(BROAD)
    for title, some in (("broad", broad), ("learned without it", hidden), ("in use", in_use)):
        print(f"\n{title}:")
        for program in sorted(scores(some)):
            print(figures(program, [each for each in some if each.program == program]))
        for source in backtests:
            for count in arguments.train:
                its = [each for each in some if (each.source, each.known) == (source, count)]
                print(figures(f"{source}, {count} known", its))
    return 0


if __name__ == "__main__":
    sys.exit(main())
