"""Write the tables from which the page plans.

Which offers can have which layout, what it demands of them, and their capacities do not depend on
the number of bytes. So `layout_options` is called for one byte, for each location of the data and
way to buy, and the result is written as tables without repetition. The page is left with
arithmetic.
"""

import dataclasses
import datetime
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from tonnage.base import formatting
from tonnage.base.records.base import to_builtins
from tonnage.base.records.job import Job
from tonnage.base.records.plan import NO_CORES
from tonnage.base.records.profile import CapacityDistribution
from tonnage.catalog import Catalog, Grant, Offer, VolumeKind, disk_rate_source
from tonnage.catalog.own_prices import LIST_PRICES, OwnPrices
from tonnage.catalog.published.core_speeds import family_of
from tonnage.model.profiles.network_scaling import ScalingCurve
from tonnage.model.profiles.repository import ProfileIndex
from tonnage.model.token_bucket import TokenBucket
from tonnage.plan.calibration import cite, describe
from tonnage.plan.demand import DemandPart, DemandTerm, LayoutDemand, PhaseDemand
from tonnage.plan.explain import cite_price
from tonnage.plan.layouts import VOLUME_COUNTS, LayoutOptions, OfferGroup
from tonnage.plan.monte_carlo import INTERVAL_RULE
from tonnage.plan.planner import DISKS_NOT_MEASURED, PlanRequest, options_for, plan_notes
from tonnage.plan.resources.engine_memory import (
    divides_once_more,
    largest_input,
    largest_share,
)
from tonnage.plan.resources.engine_sockets import most_connected
from tonnage.plan.resources.machines import (
    PURCHASES,
    Machine,
    Purchase,
    cores_source,
    network_caution,
    network_source,
)
from tonnage.plan.resources.object_store import requests_of
from tonnage.plan.resources.startup import Startup
from tonnage.plan.search import LARGEST_CLUSTER
from tonnage.report.explorer.draws_for_page import random_draws


@dataclass(frozen=True)
class PageData:
    """The tables as JSON values."""

    values: dict[str, Any]

    @property
    def offers(self) -> int:
        """The number of machines that some request can be planned with."""
        return len(self.values["machines"])


def page_data(
    jobs: Mapping[str, Job],
    catalogs: Sequence[Catalog],
    known: ProfileIndex,
    startup: Startup = MappingProxyType({}),
    memory: bool = False,
    descriptors: int | None = None,
    public_addresses: bool = False,
    own_prices: OwnPrices = LIST_PRICES,
    today: datetime.date | None = None,
) -> PageData:
    """Build the tables for a job by the location of its data, ``""`` if there is no choice."""
    one_job = next(iter(jobs.values()))
    tables = _Tables(catalogs, one_job if memory else None)
    variants = {
        name: {
            "job": _job(job),
            "flags": formatting.command(_flags(job)) if name else "",
            **{
                purchase: _offered(
                    PlanRequest(
                        job=job,
                        size=1,
                        purchase=purchase,
                        startup=startup,
                        public_addresses=public_addresses,
                        own_prices=own_prices,
                        today=today,
                    ),
                    catalogs,
                    known,
                    tables,
                )
                for purchase in PURCHASES
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
            "job": one_job.name,
            "variants": variants,
            "catalogs": [_catalog(each, today) for each in catalogs],
            "profiles": list(known.names),
            "notes": list(known.notes),
            "no_cores": NO_CORES,
            "machines": [_machine(each, tables) for each in machines],
            "lists": tables.machine_lists.values,
            "demands": tables.demands.values,
            "laws": [to_builtins(each) for each in tables.laws],
            "curves": [
                dataclasses.asdict(each)
                | {"interval": each.exponent_interval, "assumption": each.assumption}
                for each in tables.curves
            ],
            "texts": tables.texts.values,
            "random_draws": random_draws(tables.laws),
            "commands": {
                name: formatting.command(line)
                for name, line in known.commands.items()
                if any(name in law.source for law in tables.laws)
            },
            "interval_rule": INTERVAL_RULE,
            "largest_cluster": LARGEST_CLUSTER,
            "most_connected": most_connected(one_job, descriptors),
        }
    )


@dataclass
class _DistinctValues:
    values: list[Any] = field(default_factory=list)
    places: dict[str, int] = field(default_factory=dict)

    def put(self, value: Any) -> int:
        """The index of the value, which is added if new."""
        key = json.dumps(value)
        if key not in self.places:
            self.places[key] = len(self.values)
            self.values.append(value)
        return self.places[key]


MachineByPurchase = dict[Purchase, Machine]
Key = tuple[int, int, bool]


class _Tables:
    """Tables that layouts share."""

    def __init__(self, catalogs: Sequence[Catalog], limited: Job | None) -> None:
        self.limited = limited
        """The job whose passes memory limits, wherever its data is; ``None``: memory counts not."""
        self.offers = {
            (at, offer.type): place
            for at, catalog in enumerate(catalogs)
            for place, offer in enumerate(catalog.offers)
        }
        self.catalogs = {catalog.name: at for at, catalog in enumerate(catalogs)}
        self.laws: list[CapacityDistribution] = []
        self.curves: list[ScalingCurve] = []
        self.texts = _DistinctValues()
        self.demands = _DistinctValues()
        self.machine_lists = _DistinctValues()
        self.machines: dict[Key, MachineByPurchase] = {}
        self.numbers: dict[Key, int] = {}

    def machine(self, machine: Machine) -> Key:
        """Add a machine, bought in one way or the other."""
        catalog = self.catalogs[machine.catalog.name]
        key = catalog, self.offers[catalog, machine.offer.type], machine.placement
        self.machines.setdefault(key, {})[machine.purchase] = machine
        self.numbers.setdefault(key, machine.number)
        return key

    def sorted_machines(self) -> tuple[list[MachineByPurchase], dict[Key, int]]:
        """All machines in the planner's order, and the index of each."""
        order = sorted(self.machines, key=lambda key: (*key[:2], self.numbers[key]))
        return [self.machines[key] for key in order], {key: at for at, key in enumerate(order)}

    def demand(self, demand: LayoutDemand) -> int:
        """The index of the demand; its volumes are the group's."""
        runs = cite(demand.calibration_match.calibration)
        return self.demands.put(
            {
                "phases": [self._phase(each) for each in demand.phases],
                "advertised_resources": sorted(demand.advertised_resources),
                "evidence": demand.evidence,
                "spread": demand.spread,
                "uses_measured_curve": demand.measured_curve is not None
                and demand.curve is demand.measured_curve,
                "calibrated": runs and to_builtins(runs),
                "calibration_text": describe(runs),
                "notes": list(demand.calibration_match.notes),
            }
        )

    def _phase(self, phase: PhaseDemand) -> dict[str, Any]:
        return {
            "name": phase.name,
            "fixed_seconds": phase.fixed_seconds,
            "terms": [self._term(each) for each in phase.terms],
        }

    def _term(self, term: DemandTerm) -> dict[str, Any]:
        return {
            "resource_class": term.resource_class,
            "credit_share": term.credit_share,
            "max_per_node": term.max_per_node,
            "tasks": term.tasks,
            "parts": [self._part(each) for each in term.parts],
        }

    def _part(self, part: DemandPart) -> dict[str, Any]:
        return {
            "resource": part.resource,
            "per_byte": part.per_byte,
            "capacity": _index_of(self.laws, part.capacity),
            "curve": None if part.curve is None else _index_of(self.curves, part.curve),
            "advertised": part.advertised,
            "remote_only": part.remote_only,
            "per_node": part.per_node,
            "shared": part.shared,
            "outside": part.outside,
            "in_turn": part.in_turn,
            "sources": self.texts.put(part.sources),
        }


def _index_of(some: list[Any], one: Any) -> int:
    """The index of an item, which is added if new."""
    for at, each in enumerate(some):
        if each is one or each == one:
            return at
    some.append(one)
    return len(some) - 1


def _offered(
    request: PlanRequest, catalogs: Sequence[Catalog], known: ProfileIndex, tables: _Tables
) -> dict[str, Any]:
    offered = options_for(request, catalogs, known)
    return {
        "groups": [_group(each, tables) for each in offered.groups],
        "excluded": _excluded(offered, tables),
        "notes": plan_notes(request, [], []),
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
        "demand": tables.demand(group.demand),
        "third_pass": tables.demand(group.demand.with_third_pass)
        if group.demand.with_third_pass
        else None,
        "machines": [tables.machine(each) for each in group.machines],
    }


def _excluded(offered: LayoutOptions, tables: _Tables) -> list[list[Any]]:
    """Offers with a layout that cannot be planned, by first reason: reason, catalog, types.

    The page knows which of them have another layout.
    """
    first: dict[tuple[int, str], str] = {}
    for group in offered.unmeasured:
        for machine in group.machines:
            of = tables.catalogs[group.catalog.name], machine.offer.type
            first.setdefault(of, DISKS_NOT_MEASURED)
    for refused in offered.refused:
        first.setdefault((tables.catalogs[refused.catalog], refused.offer.type), refused.why)
    found: dict[tuple[str, int], list[str]] = {}
    for (catalog, offer), why in first.items():
        found.setdefault((why, catalog), []).append(offer)
    return [[why, catalog, types] for (why, catalog), types in found.items()]


def _flags(job: Job) -> list[str]:
    """The flags of ``tonnage plan`` that choose the location of the data."""
    copied = ["--durability", job.durability] if job.durability != "none" else []
    return ["--from", job.input_location, *copied]


def _job(job: Job) -> dict[str, Any]:
    """The part of a job that its demands do not hold."""
    kept = {
        where: sum(room.per_byte for room in job.room if room.where == where)
        for where in ("local", "volume", "memory")
    }
    return {
        "kept": kept,
        "requests": [dataclasses.asdict(each) for each in requests_of(job)],
        "taken_out": job.taken_out_per_byte,
        "seen_bytes": job.seen_bytes,
        "divisible": job.divisible,
    }


def _catalog(catalog: Catalog, today: datetime.date | None) -> dict[str, Any]:
    nothing = PlanRequest(job=Job(name="", phases=[], room=[]), size=1, today=today)
    address = catalog.address
    return {
        "name": catalog.name,
        "provider": catalog.provider,
        "region": catalog.region,
        "date": catalog.date,
        "billing": to_builtins(catalog.billing),
        "kinds": [_kind(each) for each in catalog.volume_kinds],
        "store": catalog.object_store and to_builtins(catalog.object_store),
        "address_source": cite_price(address.source, address.date) if address else None,
        "offers": len(catalog.offers),
        "notes": plan_notes(nothing, [catalog], []),
    }


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
    return {name: value for name, value in to_builtins(grant).items() if value is not None}


def _machine(bought: MachineByPurchase, tables: _Tables) -> dict[str, Any]:
    one = next(iter(bought.values()))
    offer = one.offer
    extra, unsure = offer.volume_link.extra, network_caution(offer)
    return {
        "catalog": tables.catalogs[one.catalog.name],
        "type": offer.type,
        "family": family_of(offer.provider, offer.type),
        "placement": one.placement,
        "link_usd": one.link_usd_per_hour,
        "address_usd": one.address_usd_per_hour,
        "link_source": tables.texts.put(extra.source) if extra else None,
        "local_bytes": offer.local_bytes,
        "memory_bytes": offer.memory_bytes,
        "divides_once_more": divides_once_more(offer),
        "most_bytes": _by_layout(largest_input, tables.limited, offer),
        "most_share": _by_layout(largest_share, tables.limited, offer),
        "buckets": {name: _bucket(each) for name, each in one.buckets.items()},
        "possible_burst": one.possible_burst,
        "source": tables.texts.put(offer.spec_source),
        "disks_source": tables.texts.put(disk_rate_source(offer)),
        "cores_source": tables.texts.put(cores_source(offer)),
        "network_source": tables.texts.put(network_source(offer)),
        "network_caution": tables.texts.put(unsure) if unsure else None,
        "prices": {
            purchase: [
                *(each.usd_per_hour, *each.usd_range, tables.texts.put(_price_source(each))),
                [tables.texts.put(caution) for caution in each.purchase_notes],
                each.interruptions_per_second,
            ]
            for purchase, each in bought.items()
        },
    }


def _by_layout(
    most: Callable[[Job, Offer, int], float], job: Job | None, offer: Offer
) -> dict[str, float] | None:
    """A limit of memory with local disks and with so many volumes; ``None``: there is none."""
    if job is None or math.isinf(most(job, offer, 0)):
        return None
    counts = {"local": 0} | {str(count): count for count in VOLUME_COUNTS}
    return {name: most(job, offer, count) for name, count in counts.items()}


def _price_source(machine: Machine) -> str:
    offer = machine.offer
    price = offer.on_demand if machine.purchase == "on-demand" else offer.spot
    assert price is not None
    return cite_price(price.source, price.date)


def _bucket(bucket: TokenBucket) -> list[float]:
    """Baseline, burst and credit."""
    return [float(each) for each in (bucket.baseline, bucket.burst, bucket.credit)]
