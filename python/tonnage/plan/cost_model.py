"""Times and costs of many machines of one shape, for many fleet sizes, or in many draws.

What is computed is ``work``: node-seconds, that is seconds times nodes, since of N nodes each has
1/N of the job. It broadcasts: machines down a column and fleet sizes along a row for a search,
pairs of both for candidates, and a row of those for each draw.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, Protocol

import numpy as np
import numpy.typing as npt

from tonnage.base.records.profile import CapacityDistribution
from tonnage.catalog import Billing
from tonnage.model.profiles.network_scaling import ScalingCurve
from tonnage.model.token_bucket import TokenBucket
from tonnage.plan.demand import DemandTerm, LayoutDemand, ResourceClass

Array = npt.NDArray[Any]
BillingUnit = Literal["seconds", "hours"]


class Capacity(Protocol):
    """What fleets carry, broadcastable with their sizes: their middle, or each that is imagined."""

    def slowest_rate(self, law: CapacityDistribution, /) -> Array:
        """The rate of the slowest node."""

    def network_share(self, curve: ScalingCurve, /) -> Array:
        """The share of two nodes' bandwidth."""


def term_work(
    term: DemandTerm,
    shape: LayoutDemand,
    size: float,
    carried: Capacity,
    nodes: Array,
    figures: Mapping[ResourceClass, TokenBucket],
    dtype: npt.DTypeLike = np.float64,
) -> Array:
    """Node-seconds of one term.

    Args:
        term: The term.
        shape: Its shape.
        size: Bytes of input.
        carried: What fleets of these sizes carry.
        nodes: Fleet sizes.
        figures: What is advertised of the machines.
        dtype: Of the large arrays.
    """
    measured: Any = 0.0
    advertised: Any = 0.0
    moved: Any = 0.0
    for part in term.parts:
        rate = carried.slowest_rate(part.capacity)
        if part.curve:
            rate = rate * carried.network_share(part.curve)
        amount: Any = size * part.per_byte
        if part.remote_only:
            amount = amount * (1 - 1 / nodes)
        elif term.resource_class == "network":
            # A node alone sends nothing. With more all is counted, as the equations do.
            amount = amount * (nodes > 1)
        if part.advertised:
            # As many bytes more as a node falls short of what is advertised.
            advertised = advertised + amount / rate
        else:
            measured = measured + amount / rate
            moved = moved + amount
    whole = np.asarray(measured, dtype=dtype)
    if any(part.advertised for part in term.parts):
        figure = figures[
            "network" if term.resource_class == "object storage" else term.resource_class
        ]
        if term.max_per_node is not None:
            figure = figure.capped(term.max_per_node)
        # Everything so far is a row or a column; this alone is as large as their product.
        through = figure.node_seconds(np.asarray(advertised, dtype=dtype), nodes, term.credit_share)
        whole = through + whole if np.ndim(measured) else through
    if shape.volumes and term.resource_class == "volumes":
        wanted = np.asarray(advertised + moved, dtype=dtype)
        attached = shape.volumes.bucket(nodes)
        whole = np.maximum(whole, attached.node_seconds(wanted, nodes, term.credit_share))
    return np.asarray(whole)


def job_work(
    shape: LayoutDemand,
    size: float,
    carried: Capacity,
    nodes: Array,
    figures: Mapping[ResourceClass, TokenBucket],
    dtype: npt.DTypeLike = np.float64,
) -> Array:
    """Node-seconds of the whole job: phases add up, each as long as its longest term."""
    fixed = sum(phase.fixed_seconds for phase in shape.phases)
    total = (nodes * fixed).astype(dtype)
    known: dict[object, Array] = {}
    for phase in shape.phases:
        longest: Any = None
        for term in phase.terms:
            if term.work_key not in known:
                known[term.work_key] = term_work(term, shape, size, carried, nodes, figures, dtype)
            found = known[term.work_key]
            longest = found if longest is None else np.maximum(longest, found)
        if longest is not None:
            total = total + longest
    return np.asarray(total)


def cost_usd(
    work: Array,
    nodes: Array,
    machine_usd_per_hour: Array,
    volume_usd_per_hour: Array | float,
    outside_usd: float,
    billing: Billing,
    charged: BillingUnit,
) -> Array:
    """What so many node-seconds cost.

    By the second, machines cost the provider's minimum at least; where the provider bills begun
    hours that is not counted, unless ``charged`` says hours. Volumes are billed by the second.
    """
    machines = machine_hours(work, nodes, billing, charged) * machine_usd_per_hour
    return np.asarray(machines + work * (volume_usd_per_hour / 3600) + outside_usd)


def machine_hours(work: Array, nodes: Array, billing: Billing, charged: BillingUnit) -> Array:
    """The hours that machines are paid for, of all nodes together."""
    if charged == "hours":
        return np.asarray(np.ceil(work / nodes / 3600) * nodes)
    if billing.granularity_seconds < 3600:
        least = (nodes * billing.least_seconds).astype(work.dtype)
        return np.asarray(np.maximum(work, least) / 3600)
    return np.asarray(work / 3600)
