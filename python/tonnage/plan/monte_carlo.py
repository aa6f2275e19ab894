"""Sample times and costs: machines with a number of nodes each, in every sampled cluster."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tonnage.base.records.plan import BilledItem
from tonnage.base.stats.distributions import normal_quantiles
from tonnage.plan.capacity_samples import (
    CapacitySamples,
    MedianCapacity,
    SampledCapacity,
)
from tonnage.plan.cost_model import Array, BillingUnit, interruption_work, job_work, term_work
from tonnage.plan.demand import DemandTerm, LayoutDemand, PhaseDemand, ResourceClass
from tonnage.plan.layouts import OfferGroup
from tonnage.plan.search import (
    buckets_at,
    group_bill,
    group_cost_usd,
    machine_usd_per_hour,
    sampled_buckets,
)

CONFIDENCE = 0.9
INTERVAL_RULE = (
    "the middle 90 % of 400 sampled clusters: the slowest node of each, with the uncertainty of "
    "its capacity sampled too"
)
RUNS_VARY = "how runs vary"
"""The draws of how much longer or shorter a run takes than the same job usually does."""
LOW, HIGH = (1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2


@dataclass(frozen=True)
class Outcome:
    """Times and costs of some machines of a group, each with its number of nodes."""

    nodes: Array
    seconds: Array
    """With every resource at its median."""
    cost_usd: Array
    bill: dict[BilledItem, Array]
    """What the cost is the sum of."""
    usd_per_hour: Array
    """The price of a node with its volumes."""
    sampled_seconds: Array
    """In each sampled cluster, shape ``(clusters, machines)``."""
    seconds_interval: Array
    """The ends of the interval, shape ``(2, machines)``."""
    interruption_seconds: Array
    """That interruptions of spot machines are expected to add, included above."""
    run_seconds: Array
    """Without the start of the machines."""
    run_interval: Array
    usd_interval: Array
    phases: list[tuple[PhaseDemand, list[tuple[ResourceClass, Array]]]]
    """The seconds of each term of each phase, every resource at its median."""

    def in_time(self, deadline_seconds: float) -> Array:
        """The share of sampled clusters that meet the deadline, for each machine."""
        return np.asarray(np.mean(self.sampled_seconds <= deadline_seconds, axis=0))


def sample_outcome(
    group: OfferGroup,
    places: Sequence[int] | npt.NDArray[np.int64],
    nodes: Sequence[int] | npt.NDArray[np.int64],
    size: int,
    samples: CapacitySamples,
    billing_unit: BillingUnit,
) -> Outcome:
    """Sample the machines at these places of the group, with so many nodes each."""
    sizes = np.asarray(nodes, dtype=np.int64)
    cluster_sizes = sizes.astype(np.float64)
    buckets = buckets_at(group, places)
    prices = machine_usd_per_hour(group)[places]
    lower, higher = group.machines.usd_range[:, places] / group.machines.usd_per_hour[places]
    volumes = group.demand.volumes
    volume_usd: Array | float = volumes.usd_per_hour(cluster_sizes) if volumes else 0.0

    def cost(work: Array, factor: Array | float = 1.0) -> Array:
        return group_cost_usd(group, places, work, cluster_sizes, billing_unit, factor)

    known: dict[object, Array] = {}

    def seconds_of(term: DemandTerm) -> Array:
        if term.work_key not in known:
            known[term.work_key] = computed_seconds(term)
        return known[term.work_key]

    def computed_seconds(term: DemandTerm) -> Array:
        work = term_work(
            term, group.demand, size, MedianCapacity(samples, sizes), cluster_sizes, buckets
        )
        return np.broadcast_to(work / cluster_sizes, cluster_sizes.shape)

    phases = [
        (phase, [(term.resource_class, seconds_of(term)) for term in phase.terms])
        for phase in group.demand.phases
    ]
    median_seconds = np.zeros_like(cluster_sizes)
    for phase, terms in phases:
        median_seconds += phase.fixed_seconds
        if terms:
            median_seconds += np.max([each for _, each in terms], axis=0)
    rates = group.machines.interruptions_per_second[places]
    interrupted = interruption_work(median_seconds * cluster_sizes, cluster_sizes, rates)
    interrupted = interrupted / cluster_sizes
    median_seconds += interrupted
    drawn_capacity = SampledCapacity(samples, sizes)
    drawn_seconds = sampled_seconds(group, places, sizes, size, samples)
    drawn = drawn_seconds * cluster_sizes
    start, drawn_start = np.zeros_like(cluster_sizes), np.zeros(1)
    for term in group.demand.start_up:
        start = seconds_of(term)
        drawn_start = term_work(term, group.demand, size, drawn_capacity, cluster_sizes, buckets)
    billed = group_bill(group, places, median_seconds * cluster_sizes, cluster_sizes, billing_unit)
    paid = np.asarray(sum(billed.values()))
    lowest = _interval(cost(drawn, lower), paid)
    highest = _interval(cost(drawn, higher), paid) if np.any(lower != higher) else lowest
    time = _interval(drawn_seconds, median_seconds)
    run_time = (
        _interval((drawn - drawn_start) / cluster_sizes, median_seconds - start)
        if group.demand.start_up
        else time
    )
    return Outcome(
        nodes=sizes,
        seconds=median_seconds,
        cost_usd=paid,
        bill=billed,
        usd_per_hour=prices + volume_usd,
        sampled_seconds=drawn_seconds,
        seconds_interval=time,
        interruption_seconds=interrupted,
        run_seconds=median_seconds - start,
        run_interval=run_time,
        usd_interval=np.array([lowest[0], highest[1]]),
        phases=phases,
    )


def sampled_seconds(
    group: OfferGroup,
    places: Sequence[int] | npt.NDArray[np.int64],
    nodes: npt.NDArray[np.int64],
    size: int,
    samples: CapacitySamples,
    clusters: int | None = None,
) -> Array:
    """The seconds of each machine in the first so many sampled clusters, or in all."""
    cluster_sizes = nodes.astype(np.float64)
    work = job_work(
        *(group.demand, size, SampledCapacity(samples, nodes, clusters), cluster_sizes),
        sampled_buckets(group, places, samples, clusters),
        interruptions_per_second=group.machines.interruptions_per_second[places],
    )
    seconds = work / cluster_sizes
    if not group.demand.spread:
        return np.asarray(seconds)
    start: Array | float = 0.0
    for term in group.demand.start_up:
        capacity = SampledCapacity(samples, nodes, clusters)
        start_up = term_work(
            term, group.demand, size, capacity, cluster_sizes, buckets_at(group, places)
        )
        start = start_up / cluster_sizes
    return np.asarray(start + (seconds - start) * how_runs_vary(group.demand, samples, clusters))


def how_runs_vary(
    demand: LayoutDemand, samples: CapacitySamples, clusters: int | None = None
) -> Array:
    """How many times as long a run takes in each of the first so many clusters, or in all."""
    drawn = normal_quantiles(samples.clusters.uniform(RUNS_VARY)[:clusters, None])
    return np.asarray(np.exp(demand.spread * drawn))


def _interval(drawn: Array, median_seconds: Array) -> Array:
    """The ends of the interval; the median is always inside.

    Where several resources are about equally slow, few clusters reach the median of all.
    """
    low, high = np.quantile(
        np.broadcast_to(drawn, (len(drawn), len(median_seconds))), [LOW, HIGH], axis=0
    )
    return np.array([np.minimum(low, median_seconds), np.maximum(high, median_seconds)])
