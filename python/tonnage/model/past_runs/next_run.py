"""Which run of a job to make next, so that the cluster that is chosen afterwards is a cheap one.

The knowledge gradient (Frazier, Powell and Dayanik, SIAM J. Control Optim. 2008): what choosing
afterwards is expected to cost less than choosing now. Each draw of the prediction is a way that
the job may be. A run on a cluster would take what some of the draws say, and make these more likely
than others; with them the best cluster changes, and what it costs. So a run is worth more where it
tells on which side of a step many clusters are than where it only confirms what is cheap.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tonnage.model.past_runs.choice import log_dollars
from tonnage.model.past_runs.clusters import Floats
from tonnage.model.past_runs.posterior import Times

OUTCOMES = 32
"""Times of a run that are tried, at quantiles as far apart."""
UNLIKE = 0.1
"""How far, as a logarithm, a draw may be from the time of a run and still explain it."""


@dataclass(frozen=True)
class NextRun:
    place: int
    """Of the cluster among those predicted."""
    gain: float
    """By which share the chosen cluster is expected to be cheaper, owing to this run."""
    usd: float
    """What the run itself is expected to cost."""


def next_runs(
    times: Times,
    usd_per_second: Floats,
    deadline: float | None = None,
    choices: Sequence[int] | None = None,
) -> list[NextRun]:
    """All clusters, the one that is worth most to run on first.

    Args:
        times: What is predicted.
        usd_per_second: Of each cluster.
        deadline: In seconds, if the job has one.
        choices: The places of what may be chosen afterwards, if that is not everything: runs of a
            part of the input only tell.
    """
    ends = np.arange(len(usd_per_second)) if choices is None else np.asarray(choices)
    logs = log_dollars(times.at(ends), usd_per_second[ends], deadline)
    now = logs.mean(axis=0).min()
    gains = np.array(
        [now - np.mean((_weights(outcomes) @ logs).min(axis=1)) for outcomes in times.expected.T]
    )
    usd = np.exp(np.median(times.expected, axis=0)) * usd_per_second
    return [
        NextRun(int(place), float(-np.expm1(-max(gains[place], 0.0))), float(usd[place]))
        for place in np.argsort(-gains, kind="stable")
    ]


def _weights(log_seconds: Floats) -> Floats:
    """How likely each draw is after each of some times of a run: times by draws."""
    tried = np.quantile(log_seconds, (np.arange(OUTCOMES) + 0.5) / OUTCOMES)
    far = (log_seconds[None] - tried[:, None]) / UNLIKE
    weights = (1 + far**2) ** -2.0
    result: Floats = weights / weights.sum(axis=1, keepdims=True)
    return result
