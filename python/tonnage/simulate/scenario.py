"""A question about a sort on a fleet, and all that is told of it."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from tonnage.model.jobs.mapreduce import Durability
from tonnage.model.profiles.repository import OfferCapacity, ProfileIndex
from tonnage.plan.demand import ResourceClass
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
    """What is asked."""

    nodes: int
    data_bytes: int
    machine: Machine
    laws: OfferCapacity
    """What was measured of the machine."""
    shares: OfferCapacity
    """What share of advertised figures is reached."""
    figures: Mapping[ResourceClass, float]
    """What is advertised of it."""
    durability: Durability = "none"
    input_copies: int = 1
    lose: int = 0
    slow: tuple[int, float] | None = None
    """How many nodes carry which part of what they would."""
    even: bool = False
    seed: int = 0
    mtbf_seconds: float = scalability_limits.MTBF_SECONDS
    descriptors: int = scalability_limits.DESCRIPTORS
    per_node: bool = False
    """Whether larger fleets have more data, and not as much."""

    def fleet(self, nodes: int) -> SimulatedCluster:
        """So many of these machines."""
        known = ProfileIndex(names=(), offers={}, shares=self.shares)
        shape = sort_demand(self.laws, known, self.figures, self.durability)
        made = draw_cluster(shape, nodes, self.figures, self.seed)
        return made.slowed(*self.slow, self.seed) if self.slow and nodes == self.nodes else made


@dataclass(frozen=True)
class ScenarioResult:
    """What came of it."""

    bound_seconds: float
    """What no sort on these nodes can be faster than."""
    undisturbed: SimulatedSort
    disturbed: SimulatedSort | None
    """With nodes that die."""
    deaths: dict[int, float]
    here: scalability_limits.ClusterLimits
    """The limits of this fleet."""
    rows: list[scalability_limits.ClusterLimits]
    """Those of others."""
    warning: str | None
    """Of a network larger than any that was measured."""
    took_seconds: float
    """Of this machine, to simulate."""

    @property
    def first(self) -> tuple[int, list[str]] | None:
        """The smallest fleet that hits a limit, and which."""
        return scalability_limits.first_limit([*self.rows, self.here])

    def to_json(self) -> dict[str, Any]:
        """All of it as JSON values."""
        rows = [self.here, *self.rows]
        told = dataclasses.asdict(self)
        for one, row in zip([told["here"], *told["rows"]], rows, strict=True):
            one["hit"] = row.hit
        smallest = self.first
        told["first"] = smallest and {"nodes": smallest[0], "limits": smallest[1]}
        return told


def run_scenario(wanted: Scenario) -> ScenarioResult:
    """Simulates what is asked, and tabulates the limits of fleets of other sizes.

    Raises:
        UsageError: The memory is too small.
        SimulationError: It cannot be simulated, or fails.
    """
    began = time.perf_counter()
    here = wanted.fleet(wanted.nodes)
    asked = SortRequest(
        wanted.data_bytes,
        wanted.durability,
        wanted.input_copies,
        even=wanted.even,
        seed=wanted.seed,
    )
    undisturbed = simulate(here, wanted.machine, asked)
    deaths = draw_deaths(wanted.nodes, wanted.lose, undisturbed.seconds, wanted.seed)
    disturbed = None
    if deaths:
        asked = dataclasses.replace(asked, deaths=deaths)
        disturbed = simulate(here, wanted.machine, asked)
    took = time.perf_counter() - began
    curve = wanted.laws.curve or wanted.shares.curve
    return ScenarioResult(
        bound_seconds=bound_seconds(here, wanted.data_bytes, wanted.durability),
        undisturbed=undisturbed,
        disturbed=disturbed,
        deaths=deaths,
        here=_row(wanted, wanted.nodes),
        rows=[_row(wanted, nodes) for nodes in scalability_limits.SIZES],
        warning=curve.warning(wanted.nodes) if curve else None,
        took_seconds=took,
    )


def _row(wanted: Scenario, nodes: int) -> scalability_limits.ClusterLimits:
    data = wanted.data_bytes
    if wanted.per_node:
        data = data * nodes // wanted.nodes
    made = wanted.fleet(nodes)
    network = float(np.median(made.network))
    return scalability_limits.cluster_limits(
        nodes,
        data,
        wanted.machine,
        network,
        bound_seconds(made, data, wanted.durability),
        wanted.mtbf_seconds,
        wanted.descriptors,
    )
