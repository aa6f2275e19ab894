"""What nodes of every law carry, for fleets of every size: the middle, and all draws.

Laws that differ only in how fast they are have the same factors, which are drawn once. The middle
is computed for every size up to some dozens, and beyond for sizes that are a factor apart, between
which it is joined (logarithms of both): the slowest of N falls ever more slowly.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from msgspec import structs

from tonnage.base.records.profile import CapacityDistribution
from tonnage.base.stats.distributions import normal_quantiles
from tonnage.model.profiles.network_scaling import ScalingCurve
from tonnage.model.slowest_node import ClusterDraws, Draws

EACH_UP_TO, APART = 40, 1.08
"""So many sizes have a middle of their own; and by what factor others are apart that have."""

Floats = npt.NDArray[np.float64]
Sizes = npt.NDArray[np.int64]


class CapacitySamples:
    """The slowest of N nodes, N from ``least_nodes`` to ``most_nodes``."""

    def __init__(
        self, most_nodes: int, least_nodes: int = 1, fleets: ClusterDraws | None = None
    ) -> None:
        self.max_nodes = most_nodes
        self.min_nodes = least_nodes
        self.fleets = fleets or ClusterDraws()
        self._middles: dict[object, Floats] = {}
        self._drawn: dict[object, Draws] = {}

    def medians(self, law: CapacityDistribution) -> Floats:
        """The median over fleets, of each number of nodes; a single one where it is that of any."""
        if law.of_fleet and len(law.modes) == 1:
            # What is unknown of it is as likely more as it is less.
            return np.array([law.modes[0].median])
        scale, shape, key = _shape(law)
        if key not in self._middles:
            sizes = np.arange(self.min_nodes, self.max_nodes + 1)
            if law.of_fleet:
                self._middles[key] = np.median(self.fleets.slowest(shape, sizes[:1]), axis=0)
            else:
                some = _some(self.min_nodes, self.max_nodes)
                middles = np.median(self.fleets.slowest(shape, some), axis=0)
                joined = np.interp(np.log(sizes), np.log(some), np.log(middles))
                self._middles[key] = np.exp(joined)
        return scale * self._middles[key]

    def medians_at(self, law: CapacityDistribution, nodes: Sizes) -> Floats:
        """The median over fleets of these sizes."""
        middles = self.medians(law)
        return middles if law.of_fleet else middles[nodes - self.min_nodes]

    def draws_at(self, law: CapacityDistribution, nodes: Sizes) -> Draws:
        """Each fleet's slowest node, ``(fleets, len(nodes))``; of any number ``(fleets, 1)``."""
        if law.of_fleet:
            scale, shape, key = _shape(law)
            if key not in self._drawn:
                self._drawn[key] = self.fleets.slowest(shape, [1])
            return scale * self._drawn[key]
        different, back = np.unique(nodes, return_inverse=True)
        return self.fleets.slowest(law, different)[:, back]


@dataclass(frozen=True)
class MedianCapacity:
    """What fleets of these sizes carry with every resource at its middle."""

    rates: CapacitySamples
    nodes: Sizes

    def slowest_rate(self, law: CapacityDistribution) -> Floats:
        """The rate of each fleet's slowest node."""
        return self.rates.medians_at(law, self.nodes)

    def network_share(self, curve: ScalingCurve) -> Floats:
        """The share of two nodes' bandwidth."""
        return curve.share(self.nodes)


@dataclass(frozen=True)
class SampledCapacity:
    """The same in every imagined fleet, shape ``(fleets, sizes)``."""

    rates: CapacitySamples
    nodes: Sizes

    def slowest_rate(self, law: CapacityDistribution) -> Draws:
        """The rate of each fleet's slowest node."""
        return self.rates.draws_at(law, self.nodes)

    def network_share(self, curve: ScalingCurve) -> Draws:
        """The share of two nodes' bandwidth, as far as it is known."""
        return curve.shares(self.nodes, normal_quantiles(self.rates.fleets.uniform("curve")))


def _some(least: int, most: int) -> Sizes:
    """The sizes that have a middle of their own."""
    begin = max(least, min(EACH_UP_TO, most))
    steps = math.ceil(math.log(most / begin) / math.log(APART)) + 1
    beyond = np.geomspace(begin, most, steps).round().astype(np.int64)
    return np.unique(np.concatenate([np.arange(least, begin), beyond, [most]]))


def _shape(law: CapacityDistribution) -> tuple[float, CapacityDistribution, object]:
    """How fast, the same law at a rate of about 1, and what tells its factors from others'."""
    scale = law.modes[0].median
    modes = [structs.replace(each, median=each.median / scale) for each in law.modes]
    key = (
        law.resource,
        tuple(modes),
        law.of_fleet,
        law.fleet_spread,
        law.fleets,
    )
    return scale, structs.replace(law, modes=modes), key
