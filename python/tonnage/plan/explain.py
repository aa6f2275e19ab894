"""The arithmetic of one candidate, term by term, with each number's source."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tonnage.artifacts.plan import ExplainedTerm, Explanation
from tonnage.catalog import Catalog
from tonnage.model.known import Known
from tonnage.plan.candidates import Choice, best_of_each, candidates
from tonnage.plan.draws import HIGH, LOW
from tonnage.plan.evaluate import Array
from tonnage.plan.planner import PlanError, Question, offered_to
from tonnage.plan.rates import Rates
from tonnage.plan.search import search
from tonnage.plan.shapes import Part, Shape, Thing
from tonnage.plan.volumes import Volumes


def explain(
    question: Question, catalogs: Sequence[Catalog], known: Known, offer: str
) -> Explanation:
    """How an offer's best candidate comes to its time and cost.

    Raises:
        PlanError: It is no candidate; the message says why.
    """
    limits, size = question.limits, question.size
    rates = Rates(limits.most_nodes, limits.least_nodes)
    only = [
        _only(catalog, offer)
        for catalog in catalogs
        if any(each.type == offer for each in catalog.offers)
    ]
    offered = offered_to(question, only, known)
    choices = [
        Choice(group, int(place), int(found.nodes[place]), float(found.value[place]))
        for group in offered.groups
        for found in [search(group, size, rates, limits)]
        for place in np.flatnonzero(found.nodes)
    ]
    if not choices:
        why = [refused.why for refused in offered.refused]
        why += ["what its disks carry was not measured" for _ in offered.unmeasured]
        why += ["no number of nodes keeps the limits" for _ in offered.groups]
        raise PlanError(f"--explain {offer}: {'; '.join(dict.fromkeys(why)) or 'not asked for'}")
    choice = min(best_of_each(choices), key=lambda each: (each.value, each.nodes))
    candidate = candidates(question.job, size, [choice], rates, limits)[0]
    return Explanation(
        candidate=candidate,
        bytes=size,
        terms=[
            _explained(name, term.thing, part, choice, size, rates)
            for name, terms in choice.group.shape.phases
            for term in terms
            for part in term.parts
        ],
        prices=_prices(choice, candidate.usd_per_hour),
    )


def _only(catalog: Catalog, offer: str) -> Catalog:
    return Catalog(
        name=catalog.name,
        provider=catalog.provider,
        region=catalog.region,
        date=catalog.date,
        offers=tuple(each for each in catalog.offers if each.type == offer),
        volume_kinds=catalog.volume_kinds,
        object_store=catalog.object_store,
        billing=catalog.billing,
        sources=catalog.sources,
    )


def _explained(
    phase: str, thing: Thing, part: Part, choice: Choice, size: int, rates: Rates
) -> ExplainedTerm:
    nodes = np.array([choice.nodes])
    middle = _carried(choice, thing, part, rates.middle_of(part.law, nodes), nodes)
    drawn = _carried(choice, thing, part, rates.draws(part.law, nodes), nodes)
    low, high = np.quantile(drawn, [LOW, HIGH])
    demand = part.per_byte * size
    capacity = float(middle.flat[0])
    return ExplainedTerm(
        phase=phase,
        resource=part.resource,
        demand=demand,
        capacity=capacity,
        low_capacity=float(low),
        high_capacity=float(high),
        seconds=demand / choice.nodes / capacity,
        evidence=part.law.evidence,
        demand_source=part.sources,
        capacity_source=_source(choice, thing, part),
        spread_source=part.law.spread_source,
    )


def _carried(choice: Choice, thing: Thing, part: Part, rate: Array, nodes: Array) -> Array:
    """What a node carries of a part, as `evaluate.term_work` has it."""
    volumes = _volumes(choice.group.shape, thing)
    attached = volumes.bytes_per_second(nodes.astype(float)) if volumes else np.inf
    if part.curve:
        rate = rate * part.curve.share(nodes)
    if part.advertised:
        return np.asarray(rate * np.minimum(_figure(choice, thing), attached))
    return np.asarray(np.minimum(rate, attached))


def _figure(choice: Choice, thing: Thing) -> float:
    return choice.machine.figures["network" if thing == "object storage" else thing]


def _source(choice: Choice, thing: Thing, part: Part) -> str:
    said = [part.law.source]
    if part.advertised:
        advertised = _figure(choice, thing) / 1e6
        share = f"{part.law.modes[0].median:.3g} of the advertised {advertised:g} MB/s"
        if thing == "cpu":
            share = f"{_figure(choice, thing):g} vCPUs"
        said = [f"{share} ({choice.machine.offer.spec_source}); {part.law.source}"]
    if part.curve:
        at = float(part.curve.share(np.array([choice.nodes]))[0])
        said.append(f"{at:.2f} of that in a fleet of {choice.nodes}")
    volumes = _volumes(choice.group.shape, thing)
    if volumes:
        most = float(volumes.bytes_per_second(np.array([float(choice.nodes)]))[0])
        said.append(
            f"no more than {most / 1e6:.0f} MB/s of {volumes.count} x {volumes.kind.name} "
            f"({volumes.kind.limit_source})"
        )
    if thing == "object storage" and part.advertised:
        said.append("no faster than its network; not measured")
    return "; ".join(said)


def _volumes(shape: Shape, thing: Thing) -> Volumes | None:
    return shape.volumes if thing == "volumes" else None


def _prices(choice: Choice, usd_per_hour: float) -> list[str]:
    machine, group = choice.machine, choice.group
    price = machine.offer.on_demand
    assert price is not None
    said = [f"{price.usd_per_hour:g} USD an hour on demand ({price.source}, {price.date})"]
    volumes = group.shape.volumes
    if volumes:
        extra = machine.offer.volume_link.extra
        if extra and machine.link_usd_per_hour:
            said.append(
                f"{extra.usd_per_hour:g} USD an hour for its link to volumes ({extra.source})"
            )
        nodes = np.array([float(choice.nodes)])
        said.append(
            f"{float(volumes.usd_per_hour(nodes)[0]):.4g} USD an hour for {volumes.count} x "
            f"{volumes.gib_each(nodes)[0]:.0f} GiB of {volumes.kind.name} at "
            f"{volumes.kind.usd_per_gib_month:g} USD a GiB and month of "
            f"{volumes.hours_per_month:g} h ({volumes.kind.price_source})"
        )
    if group.request_usd:
        said.append(f"{group.request_usd:.2f} USD for requests of object storage")
    said.append(
        f"{choice.nodes} nodes at {usd_per_hour:.4g} USD an hour; {group.catalog.billing.source}"
    )
    return said
