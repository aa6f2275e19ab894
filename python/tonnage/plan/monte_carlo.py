"""What may come: times and costs of machines with so many nodes each, in every imagined fleet."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tonnage.plan.capacity_samples import CapacitySamples, MedianCapacity, SampledCapacity
from tonnage.plan.cost_model import Array, BillingUnit, cost_usd, job_work, term_work
from tonnage.plan.demand import DemandTerm, PhaseDemand, ResourceClass
from tonnage.plan.layouts import OfferGroup
from tonnage.plan.search import buckets_at, machine_usd_per_hour

CONFIDENCE = 0.9
INTERVAL_RULE = (
    "the middle 90 % of 400 imagined fleets: of each the slowest node, with what is not known of "
    "its law drawn too"
)
LOW, HIGH = (1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2


@dataclass(frozen=True)
class Outcome:
    """Of some machines of a group, each with its number of nodes."""

    nodes: Array
    seconds: Array
    """With every resource at its middle."""
    cost_usd: Array
    usd_per_hour: Array
    """Of a node with its volumes."""
    sampled_seconds: Array
    """In each fleet, shape ``(fleets, machines)``."""
    seconds_interval: Array
    """The ends of the interval, shape ``(2, machines)``."""
    usd_interval: Array
    phases: list[tuple[PhaseDemand, list[tuple[ResourceClass, Array]]]]
    """Of each phase and each of its terms the seconds, every resource at its middle."""

    def in_time(self, deadline_seconds: float) -> Array:
        """The share of fleets that meet the deadline, of each machine."""
        return np.asarray(np.mean(self.sampled_seconds <= deadline_seconds, axis=0))


def sample_outcome(
    group: OfferGroup,
    places: Sequence[int] | npt.NDArray[np.int64],
    nodes: Sequence[int] | npt.NDArray[np.int64],
    size: int,
    rates: CapacitySamples,
    charged: BillingUnit,
) -> Outcome:
    """What comes of the machines at these places of the group with so many nodes each."""
    sizes = np.asarray(nodes, dtype=np.int64)
    fleet = sizes.astype(np.float64)
    figures = buckets_at(group, places)
    prices = machine_usd_per_hour(group)[places]
    lower, higher = group.machines.usd_range[:, places] / group.machines.usd_per_hour[places]
    volumes = group.demand.volumes
    volume_usd: Array | float = volumes.usd_per_hour(fleet) if volumes else 0.0

    def cost(spent: Array, factor: Array | float = 1.0) -> Array:
        return cost_usd(
            spent,
            fleet,
            prices + group.machines.usd_per_hour[places] * (factor - 1),
            volume_usd,
            group.outside_usd,
            group.catalog.billing,
            charged,
        )

    def seconds_of(term: DemandTerm) -> Array:
        spent = term_work(term, group.demand, size, MedianCapacity(rates, sizes), fleet, figures)
        return np.broadcast_to(spent / fleet, fleet.shape)

    phases = [
        (phase, [(term.resource_class, seconds_of(term)) for term in phase.terms])
        for phase in group.demand.phases
    ]
    middle = np.zeros_like(fleet)
    for phase, terms in phases:
        middle += phase.fixed_seconds
        if terms:
            middle += np.max([each for _, each in terms], axis=0)
    drawn = job_work(group.demand, size, SampledCapacity(rates, sizes), fleet, figures)
    paid = cost(middle * fleet)
    ends = np.array([_between(cost(drawn, each), paid) for each in (lower, higher)])
    return Outcome(
        nodes=sizes,
        seconds=middle,
        cost_usd=paid,
        usd_per_hour=prices + volume_usd,
        sampled_seconds=drawn / fleet,
        seconds_interval=_between(drawn / fleet, middle),
        usd_interval=np.array([ends[0, 0], ends[1, 1]]),
        phases=phases,
    )


def _between(drawn: Array, middle: Array) -> Array:
    """The ends of the interval, and never on one side of the middle.

    Where several resources are nearly as slow as each other, few fleets are at the middle of all.
    """
    low, high = np.quantile(np.broadcast_to(drawn, (len(drawn), len(middle))), [LOW, HIGH], axis=0)
    return np.array([np.minimum(low, middle), np.maximum(high, middle)])
