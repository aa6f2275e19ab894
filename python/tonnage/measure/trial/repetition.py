"""Rounds of trials: how often each thing is tried, and in which order.

Set beforehand, or until the median of each is known to within a share of itself. What is decided
depends on the trials of earlier rounds alone, so a command that goes on decides as the killed one
would have.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from tonnage.base.records import Trial, TrialSpec
from tonnage.measure.trial.trial import CONFIDENCE, median_precision


class TrialKind(NamedTuple):
    """An operation, how many of it are outstanding, and of what size, if that varies."""

    operation: str
    outstanding: int
    block_bytes: int | None = None


@dataclass(frozen=True)
class RepetitionPlan:
    """How many rounds there are."""

    most: int
    until_confidence: float | None = None
    """The share of its median within which the interval of what is tried ends its trials."""
    seed: int | None = None
    """Of the order within each round; None keeps to the order given."""


def trial_specs(
    suite: str, kinds: Sequence[TrialKind], plan: RepetitionPlan, done: Sequence[Trial]
) -> Iterator[TrialSpec]:
    """The trials in their order; ``done`` grows meanwhile and decides what follows.

    Args:
        suite: Their name, by which they are told from other trials in ``done``.
        tried: What is tried in each round.
        rounds: How many there are.
        done: All trials so far, of any suite.
    """
    for number in range(plan.most):
        left = [
            each
            for each in kinds
            if not is_precise(_of(done, suite, each, number), plan.until_confidence)
        ]
        if plan.seed is not None:
            random.Random(f"{plan.seed} {suite} {number}").shuffle(left)
        for each in left:
            yield TrialSpec(
                **each._asdict(),
                round=number,
                suite=suite,
                until_confidence=plan.until_confidence,
            )


def node_seed(seed: int, node: str) -> int:
    """A seed for one node of a fleet: no two have the same order, or the same offsets."""
    return int.from_bytes(hashlib.sha256(f"{seed} {node}".encode()).digest()[:7])


def remaining(steps: Iterable[TrialSpec], done: Sequence[Trial]) -> Iterator[tuple[int, TrialSpec]]:
    """The steps that an earlier command has not done, each with its place; ``done`` grows."""
    for number, step in enumerate(steps):
        if number >= len(done):
            yield number, step


def is_precise(trials: Sequence[Trial], share: float | None) -> bool:
    """Whether the trials' median is known to within ``share``, at 95 %."""
    return are_precise([trial.bytes_per_second for trial in trials], share)


def are_precise(rates: list[float], share: float | None) -> bool:
    """The same of rates."""
    known = None if share is None else median_precision(rates, share)
    return known is not None and known.is_sufficient


def stopping_rule(plan: RepetitionPlan) -> str:
    """When there are enough trials."""
    if plan.until_confidence is None:
        return f"{plan.most} of each"
    return (
        f"until the median's interval at {CONFIDENCE:.0%} (order statistics) lies within "
        f"{plan.until_confidence:.1%} of it, at most {plan.most} of each; looking after each "
        "round makes the interval somewhat too narrow"
    )


def _of(done: Sequence[Trial], suite: str, tried: TrialKind, before: int) -> list[Trial]:
    """The trials of one thing in earlier rounds."""
    return [
        trial
        for trial in done
        if trial.step
        and (trial.step.operation, trial.step.outstanding, trial.step.block_bytes) == tried
        and trial.step.suite == suite
        and trial.step.round < before
    ]
