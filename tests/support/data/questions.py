"""Random questions to the planner: over parts of all shipped catalogs, with all its terms."""

from __future__ import annotations

import dataclasses
import math
import random
from collections.abc import Callable
from functools import cache, partial
from typing import Any

from support.data.copies import replace
from tonnage.base.core.sockets import DESCRIPTORS
from tonnage.base.records.job import Job
from tonnage.base.records.location import LOCATIONS
from tonnage.base.records.plan import Plan
from tonnage.catalog import OFFER_KINDS, Catalog, Offer, catalog_names, load_catalog
from tonnage.catalog.own_prices import OwnPrice, OwnPrices
from tonnage.model.jobs.core_throughput import core_throughput
from tonnage.model.jobs.mapreduce import mapreduce_job, sort_job
from tonnage.model.jobs.reduce import reduce_job
from tonnage.model.profiles.repository import ProfileIndex, index_profiles, read_profiles
from tonnage.plan.planner import PlanRequest, plan
from tonnage.plan.resources.startup import Startup, default_startup, fixed_startup
from tonnage.plan.search import Limits

OFFERS, KINDS = 12, 2
"""Offers, and kinds of volumes, of each catalog, so that a plan takes little time."""
MANY_VCPUS = 300
"""A catalog's offers with so many are few: one of them is among those of a question."""
MOST_NODES = 2_000
"""More than can be connected."""


@dataclasses.dataclass(frozen=True)
class Question:
    request: PlanRequest
    catalogs: list[Catalog]
    known: ProfileIndex

    def plan(self, **changes: Any) -> Plan:
        """The plan of the request, with other fields of it or of its limits."""
        limits = {each.name for each in dataclasses.fields(Limits)} & changes.keys()
        of_limits = {name: changes.pop(name) for name in limits}
        request = replace(self.request, limits=replace(self.request.limits, **of_limits))
        return plan(replace(request, **changes), self.catalogs, self.known)

    def with_offers(self, changed: Any) -> Question:
        """The same question over offers that a function changed."""
        catalogs = [
            replace(each, offers=tuple(map(changed, each.offers))) for each in self.catalogs
        ]
        return replace(self, catalogs=catalogs)


def random_question(dice: random.Random) -> Question:
    kinds = tuple(kind for kind in OFFER_KINDS if dice.random() < 0.3)
    request = PlanRequest(
        job=random_job(dice),
        size=round(10 ** dice.uniform(9, 15)),
        limits=Limits(
            max_nodes=round(MOST_NODES ** dice.uniform(0.2, 1)),
            deadline_seconds=dice.choice([math.inf, 10 ** dice.uniform(2.5, 5)]),
            objective=dice.choice(["cost", "cost", "time"]),
            billing_unit=dice.choice(["seconds", "seconds", "hours"]),
        ),
        network=dice.choice(["scaled", "scaled", "baseline", "infinite"]),
        purchase=dice.choice(["on-demand", "spot"]),
        arch=dice.choice([None, None, "x86_64", "arm64"]),
        include=frozenset(kinds),
        startup=random_startup(dice),
        memory=True,
        quota_vcpus=dice.choice([None, None, round(10 ** dice.uniform(0.5, 4))]),
        descriptors=DESCRIPTORS * dice.choice([1, 1, 2]),
        own_prices=random_prices(dice),
        public_addresses=dice.random() < 0.5,
    )
    return Question(request, random_catalogs(dice), random_profiles(dice))


def random_job(dice: random.Random) -> Job:
    before, after = dice.choices(LOCATIONS, [2, 1, 1], k=2)
    mapreduce = random_mapreduce(dice)
    jobs = [
        sort_job(read_from=before, written_to=after),
        sort_job("replicated", read_from=before),
        mapreduce(read_from=before, written_to=after),
        mapreduce("replicated", read_from=before),
        random_reduction(dice),
    ]
    return replace(dice.choice(jobs), taken_out_per_byte=dice.choice([0.0, 0.0, 0.2, 1.0]))


def random_mapreduce(dice: random.Random) -> Callable[..., Job]:
    """What makes a MapReduce of random shares."""
    return partial(
        mapreduce_job, map_share=10 ** dice.uniform(-2, 1), reduce_share=10 ** dice.uniform(-2, 1)
    )


def random_reduction(dice: random.Random) -> Job:
    return reduce_job(
        dice.randint(1, 20),
        chunk_bytes=dice.choice([1, 8, 64]) << 20,
        local_share=dice.choice([0.0, 0.4]),
        cpu_seconds_per_byte=dice.choice([None, 3e-9]),
    )


def random_startup(dice: random.Random) -> Startup:
    return dice.choice([default_startup(), fixed_startup(0.0), fixed_startup(42.0)])


def random_catalogs(dice: random.Random) -> list[Catalog]:
    """Parts of some shipped catalogs, one of which has object storage.

    Without any the command refuses jobs on it.
    """
    whole = dice.sample([*map(_catalog, catalog_names())], dice.randint(1, 3))
    if not any(each.object_store for each in whole):
        whole.append(_catalog("aws-us-east-1-2026"))
    return [
        replace(
            each,
            offers=random_offers(each, dice),
            volume_kinds=tuple(dice.sample(each.volume_kinds, min(KINDS, len(each.volume_kinds)))),
        )
        for each in whole
    ]


def random_offers(catalog: Catalog, dice: random.Random) -> tuple[Offer, ...]:
    some = dice.sample(catalog.offers, min(OFFERS, len(catalog.offers)))
    large = [each for each in catalog.offers if (each.vcpus or 0) >= MANY_VCPUS]
    if large and not any(each in large for each in some):
        some[0] = dice.choice(large)
    return tuple(some)


def random_prices(dice: random.Random) -> OwnPrices:
    """A discount, and perhaps the price of a machine type."""
    own = OwnPrice(
        provider="aws",
        machine_type=dice.choice(_catalog("aws-us-east-1-2026").offers).type,
        region=dice.choice([None, "us-east-1"]),
        usd_per_hour=round(10 ** dice.uniform(-2, 1), 4),
        source="made up",
    )
    return OwnPrices(
        discount_percent=dice.choice([0.0, 12.5, 60.0]), prices=dice.choice([(), (own,)])
    )


def random_profiles(dice: random.Random) -> ProfileIndex:
    return _profiles(dice.choice(["themis-2014", "themis-2014 skyrise"]), dice.random() < 0.8)


@cache
def _profiles(names: str, with_cores: bool) -> ProfileIndex:
    known = index_profiles([each for name in names.split() for each in read_profiles(name)])
    if not with_cores:
        return known
    shares = dataclasses.replace(known.shares, engine=core_throughput())
    return dataclasses.replace(known, shares=shares)


_catalog = cache(load_catalog)
