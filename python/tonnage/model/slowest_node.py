"""The slowest of N nodes: order statistics of capacities, since a phase waits for its last node.

A phase takes ``max over nodes, max over resources of demand / capacity``, which is
``max over resources of demand / (the least capacity of N nodes)``. So each resource is drawn once,
as the minimum of N.

A node's rate is ``common * mode``, with the variation of both from a `CapacityDistribution`. The
minimum of n nodes in a mode with distribution F is distributed as ``1 - (1 - F)^n``, and is drawn
by inversion.
Distributions are fitted to few instances, so their parameters are drawn too, for each cluster (the
normal's reference posterior: Gelman et al., Bayesian Data Analysis, section 3.2; a mode's share by
Jeffreys' Dirichlet): ``s'^2 = s^2 (k - 1) / chi^2(k - 1)``, ``m' ~ N(m, s'^2 / k)``.
"""

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from tonnage.base.records.profile import CapacityDistribution, Mode
from tonnage.base.stats.distributions import gamma_quantiles, normal_quantiles

Draws = npt.NDArray[np.float64]
FEW = 8  # Spreads count as those of at least this many instances


class ClusterDraws:
    """Draws of random clusters, the same for all that are compared: each is drawn once."""

    def __init__(self, count: int = 400, seed: int = 20_141_105) -> None:
        self._seed = seed
        self.count = count
        self._dice: dict[str, Draws] = {}
        self._chi: dict[tuple[str, int], Draws] = {}

    def uniform(self, name: str) -> Draws:
        """A permutation of evenly spaced numbers between 0 and 1, shape ``(count,)``."""
        if name not in self._dice:
            even = (np.arange(self.count) + 0.5) / self.count
            # Seeded by name, so that the draws do not depend on the order of calls.
            generator = np.random.default_rng([self._seed, *name.encode()])
            self._dice[name] = generator.permutation(even)
        return self._dice[name]

    def slowest(
        self, law: CapacityDistribution, nodes: Sequence[int] | npt.NDArray[np.int64]
    ) -> Draws:
        """The minimum rate of this many nodes in each cluster, shape ``(count, len(nodes))``."""
        sizes = np.asarray(nodes, dtype=float)[None, :]
        if law.of_fleet:
            sizes = np.ones_like(sizes)
        # The rarest mode first; all remaining nodes belong to the last one.
        modes = sorted(law.modes, key=lambda mode: mode.instances)
        shares = self._shares(law.resource, modes)
        least = np.full((self.count, sizes.size), np.inf)
        left, rest = np.broadcast_to(sizes, least.shape), np.ones(self.count)
        for place, mode in enumerate(modes):
            name = f"{law.resource} {place}"
            last = place == len(modes) - 1
            belong = left if last else self._belong(name, left, shares[place] / rest)
            with np.errstate(divide="ignore"):
                chance = -np.expm1(np.log1p(-self.uniform(f"{name} least"))[:, None] / belong)
            off = self._spread(name, mode)[:, None] * normal_quantiles(chance)
            rates = np.exp(self._mean(name, mode)[:, None] + off)
            least = np.where(belong > 0, np.minimum(least, rates), least)
            left, rest = left - belong, np.maximum(rest - shares[place], 1e-12)
        return least * self._common(law)[:, None]

    def _shares(self, resource: str, modes: Sequence[Mode]) -> list[Draws]:
        if len(modes) == 1:
            return [np.ones(self.count)]
        drawn = [
            gamma_quantiles(mode.instances + 0.5, self.uniform(f"{resource} {place} share"))
            for place, mode in enumerate(modes)
        ]
        total = np.sum(drawn, axis=0)
        return [each / total for each in drawn]

    def _belong(self, name: str, left: Draws, share: Draws) -> Draws:
        """How many of the nodes that are left belong to a mode: a binomial's quantile."""
        share = np.clip(share, 1e-12, 1 - 1e-12)[:, None]
        dice = self.uniform(f"{name} belong")[:, None]
        mean = left * share
        normal = normal_quantiles(dice)
        # For many, Cornish and Fisher's expansion (Johnson, Kotz and Kemp, section 3.6).
        found = mean + np.sqrt(mean * (1 - share)) * normal + (1 - 2 * share) * (normal**2 - 1) / 6
        found = np.ceil(found - 0.5)
        few = mean < 20
        chances, shares = (np.broadcast_to(each, found.shape)[few] for each in (dice, share))
        found[few] = _binomial_quantile(chances, left[few], shares)
        return np.clip(found, 0, left)

    def _spread(self, name: str, mode: Mode) -> Draws:
        return mode.spread * self._wider(f"{name} spread", max(mode.instances, FEW) - 1)

    def _mean(self, name: str, mode: Mode) -> Draws:
        off = normal_quantiles(self.uniform(f"{name} mean")) / np.sqrt(max(mode.instances, 1))
        return np.asarray(np.log(mode.median) + self._spread(name, mode) * off)

    def _wider(self, name: str, freedom: int) -> Draws:
        """The factor between a cluster's standard deviation and the fitted one."""
        if (name, freedom) not in self._chi:
            chi = 2 * gamma_quantiles(freedom / 2, self.uniform(name))
            self._chi[name, freedom] = np.sqrt(freedom / chi)
        return self._chi[name, freedom]

    def _common(self, law: CapacityDistribution) -> Draws:
        """The factor that all nodes of a cluster share: one draw for all resources."""
        if not law.fleet_spread:
            return np.ones(self.count)
        spread = law.fleet_spread * self._wider("fleet spread", fleet_freedom(law))
        # The mean over the measured clusters has an error, too.
        spread = spread * math.sqrt(1 + 1 / max(law.fleets, 1))
        return np.asarray(np.exp(spread * normal_quantiles(self.uniform("fleet"))))


def fleet_freedom(law: CapacityDistribution) -> int:
    """Degrees of freedom of the spread between clusters."""
    return law.fleet_freedom or max(law.fleets, 3) - 1


def _binomial_quantile(chance: Draws, tries: Draws, share: Draws) -> Draws:
    """The least k with ``P(K <= k) >= chance``, for means up to about 20."""
    found = np.zeros(chance.shape)
    odds = share / (1 - share)
    term = np.exp(tries * np.log1p(-share))
    total = term.copy()
    for k in range(1, 60):
        beyond = total < chance
        if not beyond.any():
            break
        found[beyond] = k
        term = term * odds * np.maximum(tries - k + 1, 0) / k
        total = total + term
    return found
