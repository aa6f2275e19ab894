"""How often each kind of trial is repeated, and in which order.

Either a fixed number of rounds, or until the median of each kind is known to within a share of
itself. The decision depends only on the trials of earlier rounds, so a resumed command decides as
the killed one would have.
"""

import hashlib
import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from tonnage.base.records import Trial, TrialSpec
from tonnage.measure.trial.trial import CONFIDENCE, median_precision


class TrialKind(NamedTuple):
    """An operation, its queue depth, and its block size if that varies."""

    operation: str
    outstanding: int
    block_bytes: int | None = None


@dataclass(frozen=True)
class RepetitionPlan:
    most: int
    until_confidence: float | None = None
    """A kind is repeated until its median's confidence interval lies within this share of it."""
    seed: int | None = None
    """Shuffles the kinds in each round; None keeps their order."""


def trial_specs(
    suite: str, kinds: Sequence[TrialKind], plan: RepetitionPlan, completed: Sequence[Trial]
) -> Iterator[TrialSpec]:
    """The trials in order; ``completed``, of any suite, grows as they run and decides the rest."""
    for number in range(plan.most):
        kinds_left = [
            kind
            for kind in kinds
            if not is_precise(
                _earlier_trials(completed, suite, kind, number), plan.until_confidence
            )
        ]
        if plan.seed is not None:
            random.Random(f"{plan.seed} {suite} {number}").shuffle(kinds_left)
        for kind in kinds_left:
            yield TrialSpec(
                **kind._asdict(), round=number, suite=suite, until_confidence=plan.until_confidence
            )


def node_seed(seed: int, node: str) -> int:
    """A seed for one node of a cluster, so that nodes differ in the order and the offsets."""
    return int.from_bytes(hashlib.sha256(f"{seed} {node}".encode()).digest()[:7])


def remaining(
    specs: Iterable[TrialSpec], completed: Sequence[Trial]
) -> Iterator[tuple[int, TrialSpec]]:
    """The numbered trials that no earlier command has done; ``completed`` grows as they run."""
    for number, spec in enumerate(specs):
        if number >= len(completed):
            yield number, spec


def is_precise(trials: Sequence[Trial], share: float | None) -> bool:
    return are_precise([trial.bytes_per_second for trial in trials], share)


def are_precise(rates: list[float], share: float | None) -> bool:
    """Whether the median of ``rates`` is known to within ``share``, at 95 %."""
    precision = None if share is None else median_precision(rates, share)
    return precision is not None and precision.is_sufficient


def stopping_rule(plan: RepetitionPlan) -> str:
    if plan.until_confidence is None:
        return f"{plan.most} of each"
    return (
        f"until the median's interval at {CONFIDENCE:.0%} (order statistics) lies within "
        f"{plan.until_confidence:.1%} of it, at most {plan.most} of each; checking after each "
        "round makes the interval somewhat too narrow"
    )


def _earlier_trials(
    completed: Sequence[Trial], suite: str, kind: TrialKind, before: int
) -> list[Trial]:
    return [
        trial
        for trial in completed
        if trial.step
        and (trial.step.operation, trial.step.outstanding, trial.step.block_bytes) == kind
        and trial.step.suite == suite
        and trial.step.round < before
    ]
