"""Simulate a job with slow and failing nodes, and tabulate the limits of other cluster sizes."""

import dataclasses
import math
import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from tonnage.base import core
from tonnage.base.core.sockets import DESCRIPTORS
from tonnage.base.records.job import Job
from tonnage.base.records.plan import Candidate
from tonnage.plan.demand import LayoutDemand
from tonnage.simulate import scalability_limits
from tonnage.simulate.cluster import (
    LINK_OUT,
    Buckets,
    SimulatedCluster,
    bound_seconds,
    draw_cluster,
)
from tonnage.simulate.division import Division, Machine, division_of
from tonnage.simulate.two_pass import JobRequest, SimulatedJob, draw_deaths, simulate


@dataclass(frozen=True)
class PlannedSeconds:
    """What a plan says of the same cluster, with every resource at its median."""

    start: float  # Until all machines run
    passes: tuple[tuple[str, float], ...]  # The phases of the job, by name

    @classmethod
    def of(cls, candidate: Candidate) -> "PlannedSeconds":
        """What a plan says of a candidate with two passes."""
        run = sum(phase.seconds for phase in candidate.job_phases)
        start = sum(phase.seconds for phase in candidate.phases) - run
        return cls(start, tuple((phase.name, phase.seconds) for phase in candidate.job_phases))

    @property
    def run(self) -> float:
        """Without the start."""
        return sum(seconds for _, seconds in self.passes)


@dataclass(frozen=True)
class Scenario:
    nodes: int
    data_bytes: int
    machine: Machine
    job: Job
    demand: LayoutDemand
    """The job's demands on these machines, and their capacities."""
    buckets: Buckets
    """The advertised rates of a machine."""
    planned: PlannedSeconds | None = None
    input_copies: int = 1
    lose: int = 0
    slow: tuple[int, float] | None = None  # The number of slow nodes, and the factor of their rates
    even: bool = False
    seed: int = 0
    mtbf_seconds: float = scalability_limits.MTBF_SECONDS
    descriptors: int = DESCRIPTORS
    per_node: bool = False  # Whether the data grows with the cluster

    @property
    def division(self) -> Division:
        return division_of(self.job, self.machine)

    def cluster(self, nodes: int, data_bytes: int) -> SimulatedCluster:
        cluster = draw_cluster(
            self.job,
            self.demand,
            self.buckets,
            nodes,
            self.seed,
            self._block_bytes(nodes, data_bytes),
        )
        return (
            cluster.with_slow_nodes(*self.slow, self.seed)
            if self.slow and nodes == self.nodes
            else cluster
        )

    def _block_bytes(self, nodes: int, data_bytes: int) -> float:
        """The blocks that pass one makes; infinite where memory allows none, which is a limit."""
        try:
            return self.division.first_block_bytes(-(-data_bytes // nodes), nodes)
        except core.UsageError:
            return math.inf


@dataclass(frozen=True)
class ScenarioResult:
    bound_seconds: float
    undisturbed: SimulatedJob
    disturbed: SimulatedJob | None  # With failing nodes
    deaths: dict[int, float]
    here: scalability_limits.ClusterLimits
    rows: list[scalability_limits.ClusterLimits]  # Those of other sizes
    warning: str | None  # If the network is larger than any measured one
    took_seconds: float  # Time of the simulation itself
    planned: PlannedSeconds | None = None  # By the plan that was simulated

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
    here = scenario.cluster(scenario.nodes, scenario.data_bytes)
    everywhere = scenario.machine.from_objects
    request = JobRequest.of(
        scenario.job,
        scenario.data_bytes,
        input_copies=None if everywhere else scenario.input_copies,
        even=scenario.even,
        seed=scenario.seed,
    )
    undisturbed = simulate(here, scenario.division, request)
    deaths = draw_deaths(scenario.nodes, scenario.lose, undisturbed.seconds, scenario.seed)
    disturbed = None
    if deaths:
        request = dataclasses.replace(request, deaths=deaths)
        disturbed = simulate(here, scenario.division, request)
    took = time.perf_counter() - began
    curve = scenario.demand.curve
    return ScenarioResult(
        bound_seconds=bound_seconds(here, scenario.data_bytes),
        undisturbed=undisturbed,
        disturbed=disturbed,
        deaths=deaths,
        here=_limits(scenario, scenario.nodes),
        rows=[_limits(scenario, nodes) for nodes in scalability_limits.SIZES],
        warning=curve.warning(scenario.nodes) if curve else None,
        took_seconds=took,
        planned=scenario.planned,
    )


def _limits(scenario: Scenario, nodes: int) -> scalability_limits.ClusterLimits:
    data = scenario.data_bytes
    if scenario.per_node:
        data = data * nodes // scenario.nodes
    cluster = scenario.cluster(nodes, data)
    return scalability_limits.cluster_limits(
        nodes,
        data,
        scenario.division,
        link_bytes_per_second(scenario, cluster),
        bound_seconds(cluster, data),
        scenario.mtbf_seconds,
        scenario.descriptors,
    )


def link_bytes_per_second(scenario: Scenario, cluster: SimulatedCluster) -> float:
    """The median rate of a node's link; infinite if the network does not limit."""
    if LINK_OUT not in cluster.resources:
        return np.inf
    seconds = float(np.median(cluster.pass_one.sent[cluster.row(LINK_OUT)]))
    shuffled = float(scenario.job.settings.get("map_share", 1.0))
    return shuffled / seconds if seconds else np.inf
