"""Which demands jobs have before any of their runs is known: broad distributions.

Many jobs have no use for a resource at all, so a part may be absent: then its share is 0. Centers
and widths were set by hand after what nine public jobs on 69 clusters each, and one on 72, turn out
to need when all their runs are known, and by what predicts programs that are left out
(``benches/past_runs``), and widened: other jobs are unlike these. So predictions of these ten are
mildly optimistic.
"""

import math
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from tonnage.model.past_runs.clusters import Floats
from tonnage.model.past_runs.law import Demands
from tonnage.model.past_runs.run_demands import DemandShares

DRAWS = 20_000
SEED = 20_260_731


class LogNormal(NamedTuple):
    median: float
    spread: float
    chance: float = 1.0
    """That it is there at all; otherwise it is 0."""

    def draw(self, dice: np.random.Generator, count: int) -> Floats:
        if not self.median:
            return np.zeros(count)
        drawn: Floats = self.median * np.exp(dice.normal(0.0, self.spread, count))
        return drawn * (dice.random(count) < self.chance)


class Normal(NamedTuple):
    mean: float
    spread: float

    def draw(self, dice: np.random.Generator, count: int) -> Floats:
        return dice.normal(self.mean, self.spread, count)


KEEPS_NOTHING = ("hadoop", "mapreduce")
"""Engines that read their input from disks in each pass, so that there is hardly a step where a
working set fits into memory."""
CLIFF_CHANCE = 0.08
"""Of a job of these engines, or of one that keeps nothing in memory."""
TOLD_SHARE_SPREAD = 0.5
"""How far the disks', the network's and the serial share of another cluster's time are from what a
run's bytes and seconds say, as a logarithm: page caches, rates below the stated ones."""
LEAST_SHARE = 0.01
"""A share that is stated to be none: the logarithm of 0 has no spread."""
TOLD_SPREAD = 0.2
"""How far off a stated working set is, as a logarithm."""


@dataclass(frozen=True)
class Prior:
    """Of each of a job's demands, by its name."""

    core_speed_power: Normal
    disk: LogNormal
    network: LogNormal
    overlap: LogNormal
    growth: Normal
    serial: LogNormal
    coordination: LogNormal
    start: LogNormal
    working_set_log_gib: Normal
    cliff_width: LogNormal
    cliff_factor: LogNormal
    heap_log_gib: Normal
    heap_width: LogNormal
    heap_factor: LogNormal
    size_power: Normal
    coordination_power: Normal
    store: LogNormal
    """Only known if it is stated: tables of runs do not state where the data is."""
    family_speeds: Normal
    """How far a family's cores are from what they sort, for a job, as a logarithm."""

    def of_engine(self, engine: str) -> "Prior":
        """Of the jobs of an engine, such as Spark; of any job where it is unknown."""
        if engine.lower().startswith(KEEPS_NOTHING):
            return self.without_working_set()
        return self

    def with_working_set(self, size: float, spread: float = TOLD_SPREAD) -> "Prior":
        """Of a job that keeps about so many bytes in memory, as its user states."""
        return replace(
            self,
            cliff_factor=self.cliff_factor._replace(chance=1.0),
            working_set_log_gib=Normal(math.log(size / (1 << 30)), spread),
        )

    def with_shares(self, told: DemandShares) -> "Prior":
        """Of a job of which one run's demands are known."""
        changes: dict[str, Any] = {
            name: LogNormal(max(share, LEAST_SHARE), TOLD_SHARE_SPREAD)
            for name, share in vars(told).items()
            if share is not None
        }
        return replace(self, **changes)

    def without_working_set(self) -> "Prior":
        """Of a job that keeps nothing in memory."""
        return replace(self, cliff_factor=self.cliff_factor._replace(chance=CLIFF_CHANCE))


PRIOR = Prior(
    core_speed_power=Normal(0.4, 0.25),
    disk=LogNormal(0.2, 1.2),
    network=LogNormal(0.2, 1.2, 0.6),
    overlap=LogNormal(1.8, 0.4),
    growth=Normal(0.02, 0.06),
    serial=LogNormal(0.1, 1.4, 0.6),
    coordination=LogNormal(0.067, 1.6),
    start=LogNormal(0.06, 1.2),
    working_set_log_gib=Normal(4.8, 1.2),
    cliff_width=LogNormal(0.08, 0.8),
    cliff_factor=LogNormal(3.0, 0.7, 0.5),
    heap_log_gib=Normal(0.7, 0.6),
    heap_width=LogNormal(0.37, 0.5),
    heap_factor=LogNormal(0.3, 0.8, 0.4),
    size_power=Normal(1.0, 0.12),
    coordination_power=Normal(0.3, 0.3),
    store=LogNormal(0.0, 0.0),
    family_speeds=Normal(0.0, 0.06),
)


@lru_cache(maxsize=8)
def prior_draws(
    families: int, count: int = DRAWS, seed: int = SEED, prior: Prior = PRIOR
) -> Demands:
    """Draws of the prior, the same each time."""
    dice = np.random.default_rng(seed)
    drawn = {
        each.name: getattr(prior, each.name).draw(dice, count)
        for each in fields(prior)
        if each.name != "family_speeds"
    }
    speeds = prior.family_speeds.draw(dice, count * families).reshape(count, families)
    return Demands(**drawn, family_speeds=speeds)
