"""Explain one candidate: its arithmetic term by term, with each number's source."""

from collections.abc import Mapping, Sequence

import numpy as np
from msgspec import structs

from tonnage.base import formatting
from tonnage.base.records.plan import ExplainedTerm, Explanation
from tonnage.catalog import Catalog, disk_rate_source
from tonnage.model.profiles.repository import ProfileIndex
from tonnage.model.token_bucket import TokenBucket
from tonnage.plan.candidates import Choice, best_per_layout, candidates, ranked
from tonnage.plan.capacity_samples import Capacity, CapacitySamples, MedianCapacity, SampledCapacity
from tonnage.plan.cost_model import Array, term_work
from tonnage.plan.demand import AdvertisedResource, DemandPart, DemandTerm, ResourceClass
from tonnage.plan.monte_carlo import HIGH, LOW
from tonnage.plan.planner import (
    DISKS_NOT_MEASURED,
    PlanError,
    PlanRequest,
    exclusion_reason,
    options_for,
)
from tonnage.plan.resources.machines import Machine, cores_source, network_source
from tonnage.plan.resources.object_store import CONNECTIONS
from tonnage.plan.search import buckets_at, sampled_buckets, search

OTHER_LIMITS: tuple[ResourceClass, ...] = (CONNECTIONS, "threads", "task slots")
"""Limits of a phase that are not those of the resources in their terms."""


def explain(
    request: PlanRequest, catalogs: Sequence[Catalog], known: ProfileIndex, offer: str
) -> Explanation:
    """Explain the time and cost of an offer's best candidate.

    Raises:
        PlanError: The offer has no candidate; the message says why.
    """
    limits, size = request.job_limits, request.size
    samples = CapacitySamples(limits.max_nodes, limits.min_nodes)
    only = [
        _catalog_of_offer(catalog, offer)
        for catalog in catalogs
        if any(each.type == offer for each in catalog.offers)
    ]
    offered = options_for(request, only, known)
    found = [search(group, size, samples, limits) for group in offered.groups]
    choices = best_per_layout(offered.groups, found)
    if not choices:
        why = [
            exclusion_reason(group, place, each, limits)
            for group, each in zip(offered.groups, found, strict=True)
            for place in range(len(group.machines))
        ]
        why += [DISKS_NOT_MEASURED for _ in offered.unmeasured]
        why += [refused.why for refused in offered.refused]
        raise PlanError(
            f"{offer} is not a candidate: "
            f"{'; '.join(dict.fromkeys(why)) or 'excluded by your options'}"
        )
    pairs = [(each, candidates(request.job, size, [each], samples, limits)[0]) for each in choices]
    candidate, *_ = ranked([each for _, each in pairs], limits)
    choice = next(choice for choice, each in pairs if each is candidate)
    return Explanation(
        candidate=candidate,
        bytes=size,
        terms=[
            _explain_part(phase.name, term, part, choice, size, samples)
            for phase in choice.group.demand.phases
            for term in phase.terms
            for part in term.parts
            if _moves_data(term, part, choice.nodes)
        ],
        prices=_prices(choice, candidate.usd_per_hour),
    )


def _catalog_of_offer(catalog: Catalog, offer: str) -> Catalog:
    offers = tuple(each for each in catalog.offers if each.type == offer)
    return structs.replace(catalog, offers=offers)


def _moves_data(term: DemandTerm, part: DemandPart, nodes: int) -> bool:
    """Whether a cluster of this size moves anything for a part: a single node sends nothing."""
    with_others = part.remote_only or (term.resource_class == "network" and not part.outside)
    return nodes > 1 or not with_others


def _explain_part(
    phase: str,
    term: DemandTerm,
    part: DemandPart,
    choice: Choice,
    size: int,
    samples: CapacitySamples,
) -> ExplainedTerm:
    nodes = np.array([choice.nodes])
    cluster_sizes = nodes.astype(float)
    alike = sum(each.per_byte for each in term.parts if each.advertised == part.advertised)
    share = term.credit_share * part.per_byte / alike
    alone = DemandTerm(term.resource_class, (part,), share, term.max_per_node, term.tasks)
    demand = part.per_byte * (choice.nodes if part.per_node else size)
    if part.remote_only:
        demand *= 1 - 1 / choice.nodes
    if moved := _request_bytes(choice.machine, term, part):
        demand /= moved

    def capacity(capacities: Capacity, buckets: Mapping[AdvertisedResource, TokenBucket]) -> Array:
        """The rate of a node for this part, with its share of credits."""
        return demand / term_work(
            alone, choice.group.demand, size, capacities, cluster_sizes, buckets
        )

    usual = buckets_at(choice.group, [choice.place])
    middle = float(capacity(MedianCapacity(samples, nodes), usual).flat[0])
    sampled = sampled_buckets(choice.group, [choice.place], samples)
    low, high = np.quantile(capacity(SampledCapacity(samples, nodes), sampled), [LOW, HIGH])
    return ExplainedTerm(
        phase=phase,
        resource=part.resource,
        limit=term.resource_class if term.resource_class in OTHER_LIMITS else "",
        demand=demand,
        capacity=middle,
        low_capacity=float(low),
        high_capacity=float(high),
        seconds=demand / choice.nodes / middle,
        evidence=part.capacity.evidence,
        demand_source=part.sources,
        capacity_source=_source(choice, term, part),
        spread_source=part.capacity.spread_source,
    )


def _request_bytes(machine: Machine, term: DemandTerm, part: DemandPart) -> float | None:
    """What a request moves, if that is a machine's figure."""
    if term.resource_class != "object requests" or not part.advertised:
        return None
    assert term.max_per_node is not None
    return min(float(machine.buckets[part.advertised].baseline), term.max_per_node)


def _source(choice: Choice, term: DemandTerm, part: DemandPart) -> str:
    machine, thing = choice.machine, term.resource_class
    sources = [part.capacity.source]
    if moved := _request_bytes(machine, term, part):
        sources.append(f"each moves {formatting.size(round(moved))}, as its memory allows")
    elif part.advertised == "requests":
        count = float(machine.buckets[part.advertised].baseline)
        sources = [f"{formatting.rate(part.capacity.modes[0].median)} {part.capacity.source}"]
        sources.append(f"{count:g} of them at once, by its vCPUs")
    elif part.advertised:
        figure = machine.buckets[part.advertised]
        share = f"{part.capacity.modes[0].median:.3g} of the advertised {_rates(figure)}"
        if part.advertised in ("cpu", "cores"):
            rate = formatting.rate(part.capacity.modes[0].median)
            each = "" if part.resource == "cpu" else f"{rate} by "
            what = "reference cores" if part.advertised == "cores" else "vCPUs"
            share = f"{each}each of {float(f'{figure.baseline:.3g}'):g} {what}"
            if term.max_per_node is not None:
                share += f", of which the job uses {term.max_per_node:.3g}"
        sources = [f"{share} ({_rate_source(machine, part)}); {part.capacity.source}"]
    if part.curve:
        at = float(part.curve.share(np.array([choice.nodes]))[0])
        sources.append(f"{at:.2f} of that in a cluster of {choice.nodes}")
    volumes = choice.group.demand.volumes
    if volumes and thing == "volumes":
        most = volumes.bucket(np.array([float(choice.nodes)])).select(0)
        sources.append(
            f"at most {_rates(most)} of {volumes.count} x {volumes.kind.name} "
            f"({volumes.kind.limit_source})"
        )
    if thing == "object storage" and part.advertised:
        sources.append("not measured; at most the network bandwidth")
        store = choice.group.catalog.object_store
        if term.max_per_node is not None and store and store.limits:
            share = formatting.rate(term.max_per_node)
            sources.append(f"the store gives a machine at most {share} ({store.limits.source})")
    if part.in_turn:
        threads = round(float(machine.buckets["threads"].baseline))
        sources.append(
            f"{formatting.several(threads, 'thread')} at once, each in turn with its other work"
        )
    return "; ".join(sources)


def _rate_source(machine: Machine, part: DemandPart) -> str:
    if part.advertised == "cores":
        return cores_source(machine.offer)
    if part.advertised in ("local read", "local write"):
        return disk_rate_source(machine.offer)
    if part.advertised == "network":
        return network_source(machine.offer)
    return machine.offer.spec_source


def _rates(bucket: TokenBucket) -> str:
    said = formatting.rate(float(bucket.baseline))
    if bucket.credit:
        credit = formatting.size(round(float(bucket.credit)))
        said += f" (up to {formatting.rate(float(bucket.burst))} for a credit of {credit})"
    return said


def _prices(choice: Choice, usd_per_hour: float) -> list[str]:
    machine, group = choice.machine, choice.group
    lines = [_price(machine)]
    if machine.address_usd_per_hour and (address := machine.catalog.address):
        lines.append(
            f"{address.usd_per_hour:g} USD an hour for its public address "
            f"({cite_price(address.source, address.date)})"
        )
    volumes = group.demand.volumes
    if volumes:
        extra = machine.offer.volume_link.extra
        if extra and machine.link_usd_per_hour:
            lines.append(
                f"{extra.usd_per_hour:g} USD an hour for its link to volumes ({extra.source})"
            )
        nodes = np.array([float(choice.nodes)])
        lines.append(
            f"{float(volumes.usd_per_hour(nodes)[0]):.4g} USD an hour for {volumes.count} x "
            f"{volumes.gib_of_one(choice.nodes)} GiB of {volumes.kind.name} at "
            f"{volumes.kind.usd_per_gib_month:g} USD per GiB and month of "
            f"{volumes.hours_per_month:g} h ({volumes.kind.price_source})"
        )
    store = group.catalog.object_store
    lines += [
        f"{usd[choice.place]:.2f} USD for {item} ({store.source})"
        for item, usd in group.outside.items()
        if store and usd[choice.place]
    ]
    lines.append(
        f"{formatting.several(choice.nodes, 'node')} at {usd_per_hour:.4g} USD an hour; "
        f"{group.catalog.billing.source}"
    )
    return lines


def _price(machine: Machine) -> str:
    if machine.purchase == "on-demand":
        price = machine.offer.on_demand
        assert price is not None
        return (
            f"{price.usd_per_hour:g} USD an hour on demand ({cite_price(price.source, price.date)})"
        )
    spot = machine.offer.spot
    assert spot is not None
    low, high = machine.usd_range
    return (
        f"{machine.usd_per_hour:.4g} USD an hour on the spot market, {low:g} to {high:g} "
        f"({cite_price(spot.source, spot.date)})"
    )


def cite_price(source: str | None, date: str | None) -> str:
    """The source of a price, and its date if it has one."""
    return ", ".join(filter(None, (source or "of an unknown source", date)))
