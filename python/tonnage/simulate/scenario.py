"""Simulate a sort with slow and failing nodes, and tabulate the limits of other cluster sizes."""

import dataclasses
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from tonnage.base import core
from tonnage.base.records.durability import Durability
from tonnage.model.profiles.repository import OfferCapacity, ProfileIndex
from tonnage.plan.demand import AdvertisedResource
from tonnage.simulate import scalability_limits
from tonnage.simulate.cluster import (
    Machine,
    SimulatedCluster,
    bound_seconds,
    draw_cluster,
    sort_demand,
)
from tonnage.simulate.sort import SimulatedSort, SortRequest, draw_deaths, simulate


@dataclass(frozen=True)
class Scenario:
    nodes: int
    data_bytes: int
    machine: Machine
    capacity: OfferCapacity
    shares: OfferCapacity  # The shares of advertised figures that measured offers reached
    figures: Mapping[AdvertisedResource, float]
    durability: Durability = "none"
    input_copies: int = 1
    lose: int = 0
    slow: tuple[int, float] | None = None  # The number of slow nodes, and the factor of their rates
    even: bool = False
    seed: int = 0
    mtbf_seconds: float = scalability_limits.MTBF_SECONDS
    descriptors: int = scalability_limits.DESCRIPTORS
    per_node: bool = False  # Whether the data grows with the cluster

    def cluster(self, nodes: int) -> SimulatedCluster:
        known = ProfileIndex(names=(), offers={}, shares=self.shares)
        shape = sort_demand(self.capacity, known, self.figures, self.durability)
        cluster = draw_cluster(shape, nodes, self.figures, self.seed)
        return (
            cluster.with_slow_nodes(*self.slow, self.seed)
            if self.slow and nodes == self.nodes
            else cluster
        )


@dataclass(frozen=True)
class ScenarioResult:
    bound_seconds: float
    undisturbed: SimulatedSort
    disturbed: SimulatedSort | None  # With failing nodes
    deaths: dict[int, float]
    here: scalability_limits.ClusterLimits
    rows: list[scalability_limits.ClusterLimits]  # Those of other sizes
    warning: str | None  # If the network is larger than any measured one
    took_seconds: float  # Time of the simulation itself

    @property
    def first_limit(self) -> tuple[int, list[str]] | None:
        return scalability_limits.first_limit([*self.rows, self.here])

    def to_json(self) -> dict[str, Any]:
        rows = [self.here, *self.rows]
        values = dataclasses.asdict(self)
        for one, row in zip([values["here"], *values["rows"]], rows, strict=True):
            one["hit"] = row.hit
        smallest = self.first_limit
        values["first"] = smallest and {"nodes": smallest[0], "limits": smallest[1]}
        return values


def run_scenario(scenario: Scenario) -> ScenarioResult:
    """Simulate a scenario, and tabulate the limits of clusters of other sizes."""
    began = time.perf_counter()
    if scenario.lose >= scenario.nodes:
        raise core.UsageError(
            f"must be fewer than the cluster's {scenario.nodes} nodes", setting="lose"
        )
    here = scenario.cluster(scenario.nodes)
    request = SortRequest(
        scenario.data_bytes,
        scenario.durability,
        scenario.input_copies,
        even=scenario.even,
        seed=scenario.seed,
    )
    undisturbed = simulate(here, scenario.machine, request)
    deaths = draw_deaths(scenario.nodes, scenario.lose, undisturbed.seconds, scenario.seed)
    disturbed = None
    if deaths:
        request = dataclasses.replace(request, deaths=deaths)
        disturbed = simulate(here, scenario.machine, request)
    took = time.perf_counter() - began
    curve = scenario.capacity.curve or scenario.shares.curve
    return ScenarioResult(
        bound_seconds=bound_seconds(here, scenario.data_bytes, scenario.durability),
        undisturbed=undisturbed,
        disturbed=disturbed,
        deaths=deaths,
        here=_limits(scenario, scenario.nodes),
        rows=[_limits(scenario, nodes) for nodes in scalability_limits.SIZES],
        warning=curve.warning(scenario.nodes) if curve else None,
        took_seconds=took,
    )


def _limits(scenario: Scenario, nodes: int) -> scalability_limits.ClusterLimits:
    data = scenario.data_bytes
    if scenario.per_node:
        data = data * nodes // scenario.nodes
    cluster = scenario.cluster(nodes)
    network = float(np.median(cluster.network))
    return scalability_limits.cluster_limits(
        nodes,
        data,
        scenario.machine,
        network,
        bound_seconds(cluster, data, scenario.durability),
        scenario.mtbf_seconds,
        scenario.descriptors,
    )
