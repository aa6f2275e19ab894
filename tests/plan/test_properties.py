"""Properties of every plan: more data never costs less, a faster disk is never slower, a looser
deadline never costs more; and units survive being written and read."""

from __future__ import annotations

import json
import math
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.data.copies import replace
from support.data.offers import SIZED, STEADY, STORE, catalog, distribution, offer, profile
from tonnage.base.records.job import Job
from tonnage.base.records.location import LOCATIONS
from tonnage.base.records.plan import Plan
from tonnage.base.records.profile import CapacityDistribution
from tonnage.catalog import Catalog
from tonnage.cli.options.types import parse_duration, parse_size, parse_usd
from tonnage.model.jobs.mapreduce import mapreduce_job
from tonnage.model.profiles.repository import ProfileIndex, index_profiles
from tonnage.plan.candidates import CLOSE
from tonnage.plan.planner import PlanRequest, plan
from tonnage.plan.resources.block_volumes import BlockVolumes
from tonnage.plan.search import Limits

ROUNDING = 1 + 1e-5
"""The search is in single precision."""
SHARES = [
    distribution("network", 0.8, 0.1, 3),
    distribution("volume read", 0.95, 0.1, 3),
    distribution("volume write", 0.9, 0.1, 3),
]
TB = 10**12

rates = st.floats(1e7, 1e10)
sizes = st.integers(10**9, 10**15)
jobs = st.builds(
    partial(mapreduce_job, map_share=0.7, reduce_share=1.5),
    st.just("none"),
    read_from=st.sampled_from(LOCATIONS),
    written_to=st.sampled_from(LOCATIONS),
) | st.builds(
    partial(mapreduce_job, "replicated", map_share=0.7, reduce_share=1.5),
    read_from=st.sampled_from(LOCATIONS),
)


@st.composite
def worlds(draw: st.DrawFn) -> tuple[Catalog, dict[str, list[CapacityDistribution]]]:
    """A few offers, some of them measured."""
    offers, laws = [], {}
    for at in range(draw(st.integers(1, 4))):
        name = f"m{at}"
        disks = draw(st.sampled_from([0, 10**11, 10**13]))
        offers.append(
            offer(
                name,
                draw(st.floats(0.01, 50)),
                local_bytes=disks,
                network=draw(rates),
                link=draw(st.none() | rates),
            )
        )
        if disks and draw(st.booleans()):
            laws[name] = [distribution("local both", draw(rates), draw(st.floats(0, 0.5)))]
    return catalog(offers, store=STORE), laws


def made(
    world: Catalog, laws: dict[str, list[CapacityDistribution]]
) -> tuple[list[Catalog], ProfileIndex]:
    return [world], index_profiles([profile(laws, shares=SHARES)])


def planned(
    world: tuple[Catalog, dict[str, list[CapacityDistribution]]],
    size: int,
    job: Job,
    **limits: float,
) -> Plan:
    question = PlanRequest(
        job=job,
        size=size,
        limits=Limits(max_nodes=50, **limits),  # type: ignore[arg-type]
    )
    return plan(question, *made(*world))


def least_usd(made: Plan) -> float:
    """Of candidates that are about as cheap, one with fewer nodes comes first."""
    return min(each.cost_usd.median for each in made.candidates)


@given(worlds(), sizes, st.floats(1, 100), jobs)
@settings(max_examples=60, deadline=None)
def test_more_data_never_costs_less(
    world: tuple[Catalog, dict[str, list[CapacityDistribution]]],
    size: int,
    more: float,
    job: Job,
) -> None:
    less, much = (planned(world, each, job) for each in (size, int(size * more)))
    if much.candidates:
        assert less.candidates
        assert least_usd(less) <= least_usd(much) * ROUNDING


@given(worlds(), sizes, st.floats(1, 20), st.floats(10, 1e6), jobs)
@settings(max_examples=60, deadline=None)
def test_a_looser_deadline_never_costs_more(
    world: tuple[Catalog, dict[str, list[CapacityDistribution]]],
    size: int,
    looser: float,
    deadline: float,
    job: Job,
) -> None:
    tight = planned(world, size, job, deadline_seconds=deadline)
    loose = planned(world, size, job, deadline_seconds=deadline * looser)
    if tight.candidates:
        assert least_usd(loose) <= least_usd(tight) * ROUNDING
        assert all(
            each.seconds.median <= deadline * ROUNDING
            and each.capacity.needed_bytes <= each.capacity.have_bytes
            for each in tight.candidates
        )
    if tight.sure:
        assert loose.sure
        assert loose.sure.cost_usd.median <= tight.sure.cost_usd.median * ROUNDING
        assert tight.sure.deadline_probability and tight.sure.deadline_probability >= 0.95


@given(rates, st.floats(1, 100), sizes, st.integers(1, 50))
@settings(max_examples=60, deadline=None)
def test_a_faster_disk_is_never_slower(rate: float, faster: float, size: int, nodes: int) -> None:
    world = catalog([offer("m", link=None, local_bytes=10**17)])
    slow, fast = (
        planned(
            (world, {"m": [distribution("local both", each)]}),
            size,
            mapreduce_job(),
            min_nodes=nodes,
        ).candidates
        for each in (rate, rate * faster)
    )
    for before, after in zip(slow, fast, strict=True):
        assert after.seconds.median <= before.seconds.median * ROUNDING
        assert after.seconds.low <= before.seconds.low * ROUNDING
        assert after.cost_usd.median <= before.cost_usd.median * ROUNDING


@given(worlds(), sizes, jobs)
@settings(max_examples=40, deadline=None)
def test_the_best_number_of_nodes_is_the_best(
    world: tuple[Catalog, dict[str, list[CapacityDistribution]]], size: int, job: Job
) -> None:
    """Against a plain loop over every number of nodes and volumes; and so is the front."""
    question = PlanRequest(job=job, size=size, limits=Limits(max_nodes=12), all_sizes=False)
    best = plan(question, *made(*world))
    every = plan(replace(question, all_sizes=True), *made(*world)).candidates
    assert bool(best.candidates) == bool(every)
    if every:
        cheapest = min(each.cost_usd.median for each in every)
        assert least_usd(best) == pytest.approx(cheapest, rel=1e-5)
        assert best.candidates[0].cost_usd.median <= cheapest * CLOSE * ROUNDING
        close = [each for each in best.candidates if each.cost_usd.median <= cheapest * CLOSE]
        assert best.candidates[0].nodes <= min((each.nodes for each in close), default=math.inf)
    for point in best.pareto:
        assert not any(
            each.cost_usd.median < point.cost_usd * (1 - 1e-6)
            and each.seconds.median < point.seconds * (1 - 1e-6)
            for each in every
        )
    for each in every:
        assert any(
            point.cost_usd <= each.cost_usd.median * (1 + 1e-6)
            and point.seconds <= each.seconds.median * (1 + 1e-6)
            for point in best.pareto
        )


@given(worlds(), sizes, jobs, st.none() | st.floats(10, 1e6))
@settings(max_examples=30, deadline=None)
def test_a_plan_survives_json(
    world: tuple[Catalog, dict[str, list[CapacityDistribution]]],
    size: int,
    job: Job,
    deadline: float | None,
) -> None:
    told = planned(world, size, job, deadline_seconds=deadline or math.inf)
    said = json.dumps(told.to_json(), allow_nan=False)
    assert Plan.from_json(json.loads(said)) == told


@given(st.integers(1, 9_000), st.sampled_from(["GB", "TB", "GiB", "PB"]))
def test_sizes_survive_units(number: int, unit: str) -> None:
    factors = {"GB": 10**9, "TB": 10**12, "PB": 10**15, "GiB": 2**30}
    if number * factors[unit] < 2**63:
        assert parse_size(f"{number}{unit}") == number * factors[unit]
        assert parse_size(str(number * factors[unit])) == number * factors[unit]


@given(st.integers(1, 10_000))
def test_times_and_money_survive_units(number: int) -> None:
    assert parse_duration(f"{number}min") == 60 * number == parse_duration(f"{60 * number}s")
    assert parse_usd(f"{number}USD") == parse_usd(f"{number}.00") == number


@given(st.integers(10**9, 10**15), st.integers(1, 8), st.integers(1, 1_000))
def test_volumes_are_as_the_catalog_has_them(kept: int, count: int, nodes: int) -> None:
    for kind in (STEADY, SIZED):
        volumes = BlockVolumes(kind, count, kept, 730)
        cluster = np.array([float(nodes)])
        each = kept / nodes / count
        rate = kind.bytes_per_second(each)
        bought = float(volumes.gib_each(cluster)[0]) * 2**30
        assert rate is not None and kind.usd_per_gib_month is not None
        usd = kind.usd_per_gib_month * bought / 2**30 / 730
        assert bought >= 1.02 * each
        assert float(volumes.bucket(cluster).baseline[0]) == pytest.approx(count * rate)
        assert float(volumes.usd_per_hour(cluster)[0]) == pytest.approx(count * usd)
