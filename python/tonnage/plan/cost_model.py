"""Times and costs of machines on one layout, for many cluster sizes or many draws at once.

Work is in node-seconds, seconds times nodes, since each of N nodes does 1/N of the job. Arrays
broadcast: in a search machines down and cluster sizes across, for candidates pairs of both, and for
draws a row of those each.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from tonnage.base.records.job import Job
from tonnage.base.records.plan import BilledItem
from tonnage.catalog import Billing, Catalog
from tonnage.model.token_bucket import TokenBucket
from tonnage.plan.capacity_samples import Capacity
from tonnage.plan.demand import AdvertisedResource, DemandTerm, LayoutDemand
from tonnage.plan.resources.object_store import Requests, RequestSize

Array = npt.NDArray[Any]
BillingUnit = Literal["seconds", "hours"]


@dataclass(frozen=True)
class NodePrice:
    """US dollars an hour of a node, or of a node of each of several machines."""

    machine: Array | float
    """With its link to volumes."""
    volumes: Array | float
    address: Array | float = 0.0


def term_work(
    term: DemandTerm,
    demand: LayoutDemand,
    size: float,
    capacity: Capacity,
    nodes: Array,
    buckets: Mapping[AdvertisedResource, TokenBucket],
    dtype: npt.DTypeLike = np.float64,
) -> Array:
    """Node-seconds of one term of a demand.

    ``size`` is bytes of input, ``nodes`` are cluster sizes with these capacities, ``buckets`` are
    the machines' advertised rates, ``dtype`` is that of large arrays.
    """
    measured: Any = 0.0
    measured_in_turn: Any = 0.0
    in_turn: set[AdvertisedResource] = set()
    advertised: dict[AdvertisedResource, Any] = {}
    moved: Any = 0.0
    for part in term.parts:
        rate = capacity.slowest_rate(part.capacity)
        if part.curve:
            rate = rate * capacity.network_share(part.curve)
        amount: Any = size * part.per_byte
        if part.per_node:
            amount = nodes * part.per_byte
        elif part.shared:
            amount = amount * nodes
        elif part.remote_only:
            amount = amount * (1 - 1 / nodes)
        elif term.resource_class == "network" and not part.outside:
            # One node has no other to copy to.
            amount = amount * (nodes > 1)
        if part.advertised:
            # A node below the advertised rate counts as one with more bytes to move.
            before = advertised.get(part.advertised, 0.0)
            advertised[part.advertised] = before + amount / rate
            if part.in_turn:
                in_turn.add(part.advertised)
        elif part.in_turn:
            measured_in_turn = measured_in_turn + amount / rate
        else:
            measured = measured + amount / rate
            moved = moved + amount
    work: list[Array] = []
    for thing, wanted in advertised.items():
        bucket = buckets[thing]
        if term.max_per_node is not None:
            bucket = bucket.capped(term.max_per_node)
        # Everything so far is a row or a column; only this is as large as their product.
        seconds = bucket.node_seconds(np.asarray(wanted, dtype=dtype), nodes, term.credit_share)
        work.append(seconds / _threads(buckets, dtype) if thing in in_turn else seconds)
    if np.ndim(measured_in_turn):
        work.append(np.asarray(measured_in_turn, dtype=dtype) / _threads(buckets, dtype))
    if np.ndim(measured) or not work:
        work.append(np.asarray(measured, dtype=dtype))
    whole = work[0]
    for each in work[1:]:
        whole = whole + each
    if demand.volumes and term.resource_class == "volumes":
        wanted = np.asarray(advertised.get("volumes", 0.0) + moved, dtype=dtype)
        attached = demand.volumes.bucket(nodes)
        whole = np.maximum(whole, attached.node_seconds(wanted, nodes, term.credit_share))
    if term.tasks is not None:
        whole = whole * last_wave(term.tasks, nodes * buckets["slots"].baseline).astype(dtype)
    return np.asarray(whole)


def last_wave(tasks: int, slots: Array) -> Array:
    """How much longer tasks take for the slots that the last wave of them leaves idle."""
    return np.asarray(np.ceil(tasks / slots) * slots / tasks)


def _threads(buckets: Mapping[AdvertisedResource, TokenBucket], dtype: npt.DTypeLike) -> Array:
    return buckets["threads"].baseline.astype(dtype)


def job_work(
    demand: LayoutDemand,
    size: float,
    capacity: Capacity,
    nodes: Array,
    buckets: Mapping[AdvertisedResource, TokenBucket],
    dtype: npt.DTypeLike = np.float64,
    *,
    interruptions_per_second: Array | float = 0.0,
) -> Array:
    """Node-seconds of the job: phases add up, each as long as its longest term.

    ``interruptions_per_second`` are those of each machine, which add to it.
    """
    fixed = sum(phase.fixed_seconds for phase in demand.phases)
    total = (nodes * fixed).astype(dtype)
    work_of: dict[object, Array] = {}
    for phase in demand.phases:
        longest: Any = None
        for term in phase.terms:
            if term.work_key not in work_of:
                work_of[term.work_key] = term_work(
                    term, demand, size, capacity, nodes, buckets, dtype
                )
            term_seconds = work_of[term.work_key]
            longest = term_seconds if longest is None else np.maximum(longest, term_seconds)
        if longest is not None:
            total = total + longest
    if np.any(interruptions_per_second):
        rate = np.asarray(interruptions_per_second, dtype=dtype)
        total = total + interruption_work(total, nodes, rate)
    return np.asarray(total)


def interruption_work(work: Array, nodes: Array, interruptions_per_second: Array) -> Array:
    """Node-seconds that interruptions of machines are expected to add to so many.

    A node that is lost after a share f of the job leaves f / N of it to be done again and 1 - f to
    be done, both by N - 1 nodes. Whenever that happens, the job takes N / (N - 1) times as long.
    That is 1.33 with four nodes; benches/node_lost measured 1.31, 1.57 and 2.06. Detecting the loss
    and planning again are not counted. A single node begins anew, after half of the job on average.
    The lost node is billed on, as if it were replaced.
    """
    divisor = np.where(nodes > 1, nodes - 1, 2).astype(work.dtype)
    return np.asarray(work * (work * interruptions_per_second / divisor))


def bill(
    work: Array, nodes: Array, price: NodePrice, billing: Billing, billing_unit: BillingUnit
) -> dict[BilledItem, Array]:
    """The cost of so many node-seconds, by what is billed: of a plan, and of its launch.

    Billed by the second, a machine costs at least the provider's minimum, and so does its address.
    Providers that bill started hours are billed by the second too, unless ``billing_unit`` is
    hours. Volumes are billed by the second.
    """
    hours = machine_hours(work, nodes, billing, billing_unit)
    return {
        "machines": np.asarray(hours * price.machine),
        "public addresses": np.asarray(hours * price.address),
        "volumes": np.asarray(work * (price.volumes / 3600)),
    }


def cost_usd(
    work: Array,
    nodes: Array,
    machine_usd_per_hour: Array,
    volume_usd_per_hour: Array | float,
    outside_usd: Array | float,
    billing: Billing,
    billing_unit: BillingUnit,
) -> Array:
    """The sum of the bill, and what is billed outside of the nodes."""
    price = NodePrice(machine_usd_per_hour, volume_usd_per_hour)
    return np.asarray(sum(bill(work, nodes, price, billing, billing_unit).values()) + outside_usd)


def machine_hours(work: Array, nodes: Array, billing: Billing, billing_unit: BillingUnit) -> Array:
    if billing_unit == "hours":
        return np.asarray(np.ceil(work / nodes / 3600) * nodes)
    if billing.granularity_seconds < 3600:
        least = (nodes * billing.least_seconds).astype(work.dtype)
        return np.asarray(np.maximum(work, least) / 3600)
    return np.asarray(work / 3600)


def object_store_bill(
    job: Job,
    size: int,
    catalog: Catalog,
    requests: Sequence[Requests],
    sizes: Mapping[RequestSize, Array],
) -> dict[BilledItem, Array] | str:
    """The cost of object storage requests and egress; or which price is unknown.

    ``sizes`` are what the requests of each machine move; there is a cost for each.
    """
    if catalog.provider == "lab":
        return {}  # A lab's object stores run on the machine itself and cost nothing.
    found: dict[BilledItem, Array] = {}
    store = catalog.object_store
    for each in requests:
        price = None
        if store:
            price = store.usd_per_1000_gets if each.kind == "get" else store.usd_per_1000_puts
        if price is None:
            return f"{catalog.name} has no price for object storage requests"
        per_byte = each.per_byte_of(sizes[each.size]) if each.size else np.array(each.per_byte)
        paid = per_byte * size / 1000 * price
        found["object storage requests"] = found.get("object storage requests", np.zeros(1)) + paid
    if job.taken_out_per_byte:
        if store is None or store.usd_per_gb_to_internet is None:
            return f"{catalog.name} has no price for egress"
        sent = job.taken_out_per_byte * size
        found["egress"] = np.array([sent / 1e9 * store.usd_per_gb_to_internet])
    return found
