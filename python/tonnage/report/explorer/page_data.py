"""What can be planned with, as numbers that a page computes plans from.

Which offers can have which layout, what of it they are to carry, and by which laws, does not depend
on how many bytes there are: `options` is asked for one byte, once for each durability and way to
buy, and what it finds is written as tables in which the same is written once. What is left to the
page is arithmetic.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tonnage.base import formatting
from tonnage.base.records.base import to_builtins
from tonnage.base.records.job import Job
from tonnage.base.records.profile import CapacityDistribution
from tonnage.catalog import Billing, Catalog, Grant, VolumeKind
from tonnage.model.profiles.network_scaling import ScalingCurve
from tonnage.model.profiles.repository import ProfileIndex
from tonnage.model.token_bucket import TokenBucket
from tonnage.plan.calibration import cite, describe
from tonnage.plan.demand import DemandPart, DemandTerm, LayoutDemand, PhaseDemand
from tonnage.plan.layouts import LayoutOptions, OfferGroup
from tonnage.plan.machines import PURCHASES, Machine, Purchase
from tonnage.plan.monte_carlo import INTERVAL_RULE
from tonnage.plan.planner import NO_CORES, PlanRequest, options_for, plan_notes
from tonnage.report.explorer.random_draws import random_draws


@dataclass(frozen=True)
class PageData:
    """All that a page asks: JSON values, and how much they hold."""

    values: dict[str, Any]

    @property
    def offers(self) -> int:
        """How many machines can be planned with, whatever is asked."""
        return len(self.values["machines"])


def page_data(
    jobs: Mapping[str, Job], catalogs: Sequence[Catalog], known: ProfileIndex
) -> PageData:
    """What plans of these jobs are made from.

    Args:
        jobs: The same job in every durability there is of it, by name; ``""`` of one that has none.
        catalogs: What can be rented.
        known: What was measured.
    """
    tables = _Tables(catalogs)
    variants = {
        name: {
            "job": _job(job),
            **{
                purchase: _offered(job, catalogs, known, purchase, tables) for purchase in PURCHASES
            },
        }
        for name, job in jobs.items()
    }
    machines, places = tables.sorted_machines()
    for variant in variants.values():
        for purchase in PURCHASES:
            for group in variant[purchase]["groups"]:
                group["machines"] = tables.machine_lists.put(
                    sorted(places[each] for each in group["machines"])
                )
    return PageData(
        {
            "job": next(iter(jobs.values())).name,
            "variants": variants,
            "catalogs": [_catalog(each) for each in catalogs],
            "profiles": list(known.names),
            "notes": list(known.notes),
            "no_cores": NO_CORES,
            "machines": [_machine(each, tables) for each in machines],
            "lists": tables.machine_lists.values,
            "shapes": tables.shapes.values,
            "laws": [_law(each) for each in tables.laws],
            "curves": [_curve(each) for each in tables.curves],
            "texts": tables.texts.values,
            "chances": random_draws(tables.laws),
            "commands": {
                name: formatting.command(line)
                for name, line in known.commands.items()
                if any(name in law.source for law in tables.laws)
            },
            "interval_rule": INTERVAL_RULE,
        }
    )


@dataclass
class _Once:
    """Values in a list, each of them once."""

    values: list[Any] = field(default_factory=list)
    places: dict[str, int] = field(default_factory=dict)

    def put(self, value: Any) -> int:
        """Where the value is."""
        key = json.dumps(value)
        if key not in self.places:
            self.places[key] = len(self.values)
            self.values.append(value)
        return self.places[key]


Bought = dict[Purchase, Machine]
Key = tuple[int, int, bool]


class _Tables:
    """What several layouts have in common."""

    def __init__(self, catalogs: Sequence[Catalog]) -> None:
        self.offers = {
            (at, offer.type): place
            for at, catalog in enumerate(catalogs)
            for place, offer in enumerate(catalog.offers)
        }
        self.catalogs = {catalog.name: at for at, catalog in enumerate(catalogs)}
        self.laws: list[CapacityDistribution] = []
        self.curves: list[ScalingCurve] = []
        self.texts = _Once()
        self.shapes = _Once()
        self.machine_lists = _Once()
        self.machines: dict[Key, Bought] = {}
        self.numbers: dict[Key, int] = {}

    def machine(self, machine: Machine) -> Key:
        """Keeps the machine, bought in one way or the other."""
        catalog = self.catalogs[machine.catalog.name]
        key = catalog, self.offers[catalog, machine.offer.type], machine.placement
        self.machines.setdefault(key, {})[machine.purchase] = machine
        self.numbers.setdefault(key, machine.number)
        return key

    def sorted_machines(self) -> tuple[list[Bought], dict[Key, int]]:
        """All of them in the order in which a planner goes through them, and where each is."""
        order = sorted(self.machines, key=lambda key: (*key[:2], self.numbers[key]))
        return [self.machines[key] for key in order], {key: at for at, key in enumerate(order)}

    def shape(self, shape: LayoutDemand) -> int:
        """Where the shape is, which does not say on which volumes it lies."""
        runs = cite(shape.calibration_match.calibration)
        return self.shapes.put(
            {
                "phases": [self._phase(each) for each in shape.phases],
                "figures": sorted(shape.advertised_classes),
                "evidence": shape.evidence,
                "own_curve": shape.measured_curve is not None
                and shape.curve is shape.measured_curve,
                "calibrated": runs and to_builtins(runs),
                "said": describe(runs),
                "notes": list(shape.calibration_match.notes),
            }
        )

    def _phase(self, phase: PhaseDemand) -> dict[str, Any]:
        return {
            "name": phase.name,
            "fixed": phase.fixed_seconds,
            "terms": [self._term(each) for each in phase.terms],
        }

    def _term(self, term: DemandTerm) -> dict[str, Any]:
        return {
            "thing": term.resource_class,
            "share": term.credit_share,
            "most": term.max_per_node,
            "parts": [self._part(each) for each in term.parts],
        }

    def _part(self, part: DemandPart) -> dict[str, Any]:
        return {
            "resource": part.resource,
            "per_byte": part.per_byte,
            "law": _place(self.laws, part.capacity),
            "curve": None if part.curve is None else _place(self.curves, part.curve),
            "advertised": part.advertised,
            "kept": part.remote_only,
            "sources": self.texts.put(part.sources),
        }


def _place(some: list[Any], one: Any) -> int:
    """Where a thing is among others, of which it becomes one."""
    for at, each in enumerate(some):
        if each is one or each == one:
            return at
    some.append(one)
    return len(some) - 1


def _offered(
    job: Job, catalogs: Sequence[Catalog], known: ProfileIndex, purchase: Purchase, tables: _Tables
) -> dict[str, Any]:
    question = PlanRequest(job=job, size=1, purchase=purchase)
    offered = options_for(question, catalogs, known)
    return {
        "groups": [_group(each, tables) for each in offered.groups],
        "excluded": _excluded(offered, tables),
        "notes": plan_notes(question, [], []),
    }


def _group(group: OfferGroup, tables: _Tables) -> dict[str, Any]:
    volumes = group.demand.volumes
    catalog = tables.catalogs[group.catalog.name]
    kinds = [each.name for each in group.catalog.volume_kinds]
    return {
        "catalog": catalog,
        "layout": group.demand.layout,
        "own_disks": group.demand.own_disks,
        "kind": None if volumes is None else kinds.index(volumes.kind.name),
        "count": 0 if volumes is None else volumes.count,
        "shape": tables.shape(group.demand),
        "machines": [tables.machine(each) for each in group.machines],
    }


def _excluded(offered: LayoutOptions, tables: _Tables) -> list[list[Any]]:
    """Of offers that some layout cannot be planned with the first reason: reason, catalog, types.

    Which of them another layout can be planned with, the page knows.
    """
    first: dict[tuple[int, str], str] = {}
    for group in offered.unmeasured:
        for machine in group.machines:
            of = tables.catalogs[group.catalog.name], machine.offer.type
            first.setdefault(of, "what its disks carry was not measured")
    for refused in offered.refused:
        first.setdefault((tables.catalogs[refused.catalog], refused.offer.type), refused.why)
    found: dict[tuple[str, int], list[str]] = {}
    for (catalog, offer), why in first.items():
        found.setdefault((why, catalog), []).append(offer)
    return [[why, catalog, types] for (why, catalog), types in found.items()]


def _job(job: Job) -> dict[str, Any]:
    """What a page needs of a job beside its shapes."""
    kept = {
        where: sum(room.per_byte for room in job.room if room.where == where)
        for where in ("local", "volume", "memory")
    }
    return {
        "kept": kept,
        "requests": [to_builtins(each) for each in job.requests],
        "taken_out": job.taken_out_per_byte,
        "seen_bytes": job.seen_bytes,
    }


def _catalog(catalog: Catalog) -> dict[str, Any]:
    return {
        "name": catalog.name,
        "provider": catalog.provider,
        "region": catalog.region,
        "date": catalog.date,
        "billing": _billing(catalog.billing),
        "kinds": [_kind(each) for each in catalog.volume_kinds],
        "store": catalog.object_store and dataclasses.asdict(catalog.object_store),
        "offers": len(catalog.offers),
        "notes": _notes(catalog),
    }


def _notes(catalog: Catalog) -> list[str]:
    """What is to be minded of every plan with offers of this catalog."""
    nothing = PlanRequest(job=Job(name="", phases=[], room=[]), size=1)
    return plan_notes(nothing, [catalog], [])


def _billing(billing: Billing) -> dict[str, Any]:
    return dataclasses.asdict(billing)


def _kind(kind: VolumeKind) -> dict[str, Any]:
    return {
        "name": kind.name,
        "usd": kind.usd_per_gib_month,
        "most": kind.most_bytes,
        "least": kind.least_bytes,
        "largest": kind.largest_operation_bytes,
        "operations": _grant(kind.operations),
        "throughput": _grant(kind.throughput),
        "price_source": kind.price_source,
        "limit_source": kind.limit_source,
    }


def _grant(grant: Grant) -> dict[str, Any]:
    return {name: value for name, value in dataclasses.asdict(grant).items() if value is not None}


def _machine(bought: Bought, tables: _Tables) -> dict[str, Any]:
    one = next(iter(bought.values()))
    offer, price = one.offer, one.offer.on_demand
    extra = offer.volume_link.extra
    return {
        "catalog": tables.catalogs[one.catalog.name],
        "type": offer.type,
        "placement": one.placement,
        "link_usd": one.link_usd_per_hour,
        "link_source": tables.texts.put(extra.source) if extra else None,
        "local_bytes": offer.local_bytes,
        "memory_bytes": offer.memory_bytes,
        "figures": {thing: _bucket(each) for thing, each in one.buckets.items()},
        "source": tables.texts.put(offer.spec_source),
        "caution": price.caution if price else None,
        "peak_only": offer.network.baseline_bytes_per_second is None,
        "prices": {
            purchase: [*_prices(each), tables.texts.put(_price_source(each))]
            for purchase, each in bought.items()
        },
    }


def _prices(machine: Machine) -> tuple[float, float, float]:
    return machine.usd_per_hour, *machine.usd_range


def _price_source(machine: Machine) -> str:
    offer = machine.offer
    price = offer.on_demand if machine.purchase == "on-demand" else offer.spot
    assert price is not None
    return f"{price.source}, {price.date}"


def _bucket(bucket: TokenBucket) -> list[float]:
    """What lasts, the burst and the credit."""
    return [float(each) for each in (bucket.baseline, bucket.burst, bucket.credit)]


def _law(law: CapacityDistribution) -> dict[str, Any]:
    return to_builtins(law)


def _curve(curve: ScalingCurve) -> dict[str, Any]:
    return dataclasses.asdict(curve) | {"interval": curve.exponent_interval}
