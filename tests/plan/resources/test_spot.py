"""Spot machines that are taken back: how often, and what their work takes that is done again."""

from __future__ import annotations

import math

import numpy as np
import pytest

from support.data.copies import replace
from support.data.offers import STEADY, catalog, distribution, offer, profile
from tonnage.base.records.job import Demand, Job, JobPhase, SpaceDemand
from tonnage.base.records.plan import INTERRUPTIONS, Candidate
from tonnage.catalog import Spot, load_catalog
from tonnage.model.profiles.repository import index_profiles
from tonnage.plan.cost_model import interruption_work
from tonnage.plan.planner import PlanRequest, plan
from tonnage.plan.resources.machines import Purchase
from tonnage.plan.resources.spot import MONTH_SECONDS, interruptions_per_second
from tonnage.plan.search import Limits

OFTEN = Spot(
    low_usd_per_hour=0.2,
    typical_usd_per_hour=0.3,
    high_usd_per_hour=0.6,
    date=None,
    source="made up",
    interrupted=">20%",
)
KNOWN = index_profiles(
    [profile({}, shares=[distribution(f"volume {way}", 1.0, 0.0) for way in ("read", "write")])]
)
READ = Job(
    name="read",
    phases=[
        JobPhase(
            name="read",
            demands=[Demand(resource="volume read", per_byte=1.0, source="made up")],
        )
    ],
    room=[SpaceDemand(where="volume", what="input", per_byte=1.0)],
)
LONG = 10**15
"""Bytes that take weeks, so that interruptions matter."""


def best(spot: Spot, nodes: int, purchase: Purchase = "spot") -> Candidate:
    limits = Limits(min_nodes=nodes, max_nodes=nodes)
    world = catalog([offer("m", link=1e9, spot=spot)], [STEADY])
    return plan(PlanRequest(READ, LONG, limits, purchase=purchase), [world], KNOWN).candidates[0]


@pytest.mark.parametrize(
    ("told", "share"),
    [("<5%", 0.05), ("5-10%", 0.10), ("15-20%", 0.20), (">20%", 0.20), (None, None), ("?", None)],
)
def test_a_class_counts_by_its_upper_end(told: str | None, share: float | None) -> None:
    rate = interruptions_per_second(replace(OFTEN, interrupted=told))
    if share is None:
        assert rate is None
    else:
        assert rate and math.exp(-rate * MONTH_SECONDS) == pytest.approx(1 - share)


def test_each_shipped_class_is_known() -> None:
    spots = [each.spot for each in load_catalog("aws-us-east-1-2026").offers if each.spot]
    assert len(spots) == 881
    for spot in spots:
        assert (interruptions_per_second(spot) is None) is (spot.interrupted is None)


def test_a_job_takes_as_much_longer_as_without_the_lost_node() -> None:
    """Four nodes lose one in ten times: each time the job takes a third longer."""
    work, nodes = np.array([4 * 900.0]), np.array([4.0])
    more = interruption_work(work, nodes, np.array([0.1 / work[0]]))
    assert more / nodes == pytest.approx(0.1 * 900 / 3)
    # A single node begins anew, after half of the job.
    alone = interruption_work(np.array([900.0]), np.array([1.0]), np.array([0.1 / 900]))
    assert alone == pytest.approx(0.1 * 900 / 2)


@pytest.mark.parametrize("nodes", [2, 9])
def test_interruptions_take_time_and_money(nodes: int) -> None:
    without, made = best(replace(OFTEN, interrupted=None), nodes), best(OFTEN, nodes)
    rate = interruptions_per_second(OFTEN) or 0.0
    took = without.seconds.median
    more = rate * nodes * took * took / (nodes - 1)
    assert made.seconds.median == pytest.approx(took + more) and more > 0.01 * took
    assert made.cost_usd.median == pytest.approx(without.cost_usd.median * (1 + more / took))
    assert made.seconds.high > without.seconds.high and made.seconds.low > without.seconds.low
    (phase,) = [each for each in made.phases if each.name == INTERRUPTIONS]
    assert phase.seconds == pytest.approx(more) and phase not in made.job_phases
    assert sum(each.seconds for each in made.phases) == pytest.approx(made.seconds.median)
    assert any("took back >20% of such spot machines" in note for note in made.notes)
    assert any("is unknown, and not included" in note for note in without.notes)
    on_demand = best(OFTEN, nodes, "on-demand")
    assert on_demand.seconds == without.seconds and INTERRUPTIONS not in {
        each.name for each in on_demand.phases
    }


def test_the_search_counts_them() -> None:
    """Of two alike, the machine that is taken back less often is the better one."""
    world = catalog(
        [offer("often", spot=OFTEN), offer("rarely", spot=replace(OFTEN, interrupted="<5%"))],
        [STEADY],
    )
    made = plan(PlanRequest(READ, LONG, Limits(max_nodes=20), purchase="spot"), [world], KNOWN)
    assert made.candidates[0].offer == "rarely"
    assert {each.offer for each in made.pareto} == {"rarely"}
