"""The rate of the slowest of N nodes for clusters of every size: the median, and all draws.

Distributions that differ only in scale share their factors, which are drawn once. Medians are
computed for every size up to some dozens and for sizes a factor apart beyond, with log-log
interpolation between: the slowest of N falls ever more slowly.
"""

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from msgspec import structs

from tonnage.base.records.profile import CapacityDistribution
from tonnage.base.stats.distributions import normal_quantiles
from tonnage.model.profiles.network_scaling import ScalingCurve
from tonnage.model.slowest_node import ClusterDraws, Draws

DENSE_UP_TO, STEP = 40, 1.08
"""Medians are computed for every size up to this, and for sizes this factor apart beyond."""

Floats = npt.NDArray[np.float64]
Sizes = npt.NDArray[np.int64]


class CapacitySamples:
    """The slowest of N nodes, N from ``min_nodes`` to ``max_nodes``."""

    def __init__(
        self, max_nodes: int, min_nodes: int = 1, clusters: ClusterDraws | None = None
    ) -> None:
        self.max_nodes = max_nodes
        self.min_nodes = min_nodes
        self.clusters = clusters or ClusterDraws()
        self._medians: dict[object, Floats] = {}
        self._drawn: dict[object, dict[int, Draws]] = {}
        self._normalized_laws: dict[int, _NormalizedLaw] = {}

    def medians(self, law: CapacityDistribution) -> Floats:
        """The median over clusters for each size; one value where the size does not matter."""
        if law.of_fleet and len(law.modes) == 1:
            # The uncertainty is symmetric.
            return np.array([law.modes[0].median])
        normalized = self._normalized(law)
        law_at_one, key = normalized.at_one, normalized.key
        if key not in self._medians:
            sizes = np.arange(self.min_nodes, self.max_nodes + 1)
            if law.of_fleet:
                self._medians[key] = np.median(self.clusters.slowest(law_at_one, sizes[:1]), axis=0)
            else:
                some = _dense_sizes(self.min_nodes, self.max_nodes)
                middles = np.median(self.clusters.slowest(law_at_one, some), axis=0)
                joined = np.interp(np.log(sizes), np.log(some), np.log(middles))
                self._medians[key] = np.exp(joined)
        return normalized.scale * self._medians[key]

    def medians_at(self, law: CapacityDistribution, nodes: Sizes) -> Floats:
        middles = self.medians(law)
        return middles if law.of_fleet else middles[nodes - self.min_nodes]

    def draws_at(self, law: CapacityDistribution, nodes: Sizes) -> Draws:
        """Draws of each cluster's slowest node: a column for each size, or one for all sizes."""
        normalized = self._normalized(law)
        sizes = [1] if law.of_fleet else nodes.tolist()
        drawn = self._drawn.setdefault(normalized.key, {})
        if new := sorted({*sizes} - drawn.keys()):
            drawn.update(zip(new, self.clusters.slowest(normalized.at_one, new).T, strict=True))
        return normalized.scale * np.array([drawn[size] for size in sizes]).T

    def _normalized(self, law: CapacityDistribution) -> "_NormalizedLaw":
        if id(law) not in self._normalized_laws:
            self._normalized_laws[id(law)] = _NormalizedLaw.of(law)
        return self._normalized_laws[id(law)]


@dataclass(frozen=True)
class MedianCapacity:
    """Capacities of clusters of these sizes with every resource at its median."""

    samples: CapacitySamples
    nodes: Sizes

    def slowest_rate(self, law: CapacityDistribution) -> Floats:
        """The rate of each cluster's slowest node."""
        return self.samples.medians_at(law, self.nodes)

    def network_share(self, curve: ScalingCurve) -> Floats:
        """Bandwidth as a share of that between two nodes."""
        return curve.share(self.nodes)


@dataclass(frozen=True)
class SampledCapacity:
    """The same in every sampled cluster: ``(clusters, sizes)``."""

    samples: CapacitySamples
    nodes: Sizes
    clusters: int | None = None
    """Only the first so many."""

    def slowest_rate(self, law: CapacityDistribution) -> Draws:
        return self.samples.draws_at(law, self.nodes)[: self.clusters]

    def network_share(self, curve: ScalingCurve) -> Draws:
        """The same with its uncertainty drawn."""
        drawn = self.samples.clusters.uniform("curve")[: self.clusters]
        return curve.shares(self.nodes, normal_quantiles(drawn))


Capacity = MedianCapacity | SampledCapacity
"""Capacities of clusters, broadcastable with their sizes: the median, or each draw."""


def _dense_sizes(least: int, most: int) -> Sizes:
    """The sizes whose median is computed."""
    begin = max(least, min(DENSE_UP_TO, most))
    steps = math.ceil(math.log(most / begin) / math.log(STEP)) + 1
    beyond = np.geomspace(begin, most, steps).round().astype(np.int64)
    return np.unique(np.concatenate([np.arange(least, begin), beyond, [most]]))


@dataclass(frozen=True)
class _NormalizedLaw:
    law: CapacityDistribution
    scale: float
    at_one: CapacityDistribution
    """The distribution scaled to about 1."""
    key: object
    """Of distributions with equal factors."""

    @classmethod
    def of(cls, law: CapacityDistribution) -> "_NormalizedLaw":
        scale = law.modes[0].median
        modes = [structs.replace(each, median=each.median / scale) for each in law.modes]
        cluster = law.of_fleet, law.fleet_spread, law.fleets, law.fleet_freedom
        key = (law.resource, tuple(modes), *cluster)
        return cls(law, scale, structs.replace(law, modes=modes), key)
