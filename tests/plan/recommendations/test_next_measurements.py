"""What to measure next: nothing that would need more than disks of its kind are known to give."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from support.data.copies import replace
from support.data.offers import catalog, offer
from tonnage.base.records.base import RecordError
from tonnage.base.records.plan import MeasurementProposal, Plan
from tonnage.catalog import Catalog, Disks, Offer, load_catalog, newest_catalogs
from tonnage.model.jobs.mapreduce import sort_job
from tonnage.model.profiles.repository import ProfileIndex, index_profiles, read_profiles
from tonnage.plan.planner import PlanRequest, plan
from tonnage.plan.search import Limits

TB = 10**12
FASTEST_BUS = 15.75e9
LOCAL_SORT = sort_job("none", read_from="local", written_to="local")
PUBLISHED: ProfileIndex = index_profiles(read_profiles("themis-2014"))
DISK_RATES = {
    "slow.large": (1e9, 0.4e9),
    "middle.large": (1.2e9, 0.8e9),
    "middle.small": (1.2e9, 0.8e9),
    "fast.large": (3e9, 2e9),
}


def survey(catalogs: list[Catalog], size: int = TB, **limits: float) -> list[MeasurementProposal]:
    request = PlanRequest(
        job=LOCAL_SORT, size=size, network="infinite", limits=Limits(max_nodes=100, **limits)
    )
    return plan(request, catalogs, PUBLISHED).survey


def known() -> list[Offer]:
    """Offers whose disks' rates are known, from three families."""
    return [offer(name, 1.0, disk_rates=rates) for name, rates in DISK_RATES.items()]


def with_disks(one: Offer, **changes: object) -> Offer:
    (disks,) = one.disks or ()
    return replace(one, disks=(replace(disks, **changes),))


def test_the_share_is_that_of_known_families() -> None:
    # The slower way of a sort's disks counts: 0.4, 0.8 and 2 GB/s by family.
    offers = [*known(), offer("new.large", 0.5)]
    (row,) = survey([catalog(offers)])
    assert row.offer == "new.large"
    reached = [rate for rate in (0.4e9, 0.8e9, 2e9) if rate >= row.least_bytes_per_second]
    assert row.share_of_known == len(reached) / 3
    assert "share of families" in row.rule


def test_a_rate_beyond_the_fastest_known_disks_is_not_worth_measuring() -> None:
    # At three times the price it would need three times the fastest disks.
    assert survey([catalog([*known(), offer("new.large", 0.9)])])
    assert not survey([catalog([*known(), offer("new.large", 3.0)])])
    # With nothing known of its kind of disks only their bus is a limit.
    hdd = with_disks(offer("new.large", 3.0), kind="nvme")
    (row,) = survey([catalog([*known(), hdd])])
    assert row.share_of_known is None and 2e9 < row.least_bytes_per_second < FASTEST_BUS
    assert not survey([catalog([*known(), with_disks(hdd, kind="hdd")])])


def test_a_disk_of_an_unknown_number_is_bounded_by_the_cores() -> None:
    unknown = with_disks(offer("new.large", 3.0), count=None)
    assert not survey([catalog([*known(), unknown])])
    assert survey([catalog([*known(), replace(unknown, vcpus=64)])])


@pytest.mark.parametrize("size", [TB // 10, TB, 20 * TB])
@pytest.mark.parametrize("deadline", [1800.0, float("inf")])
def test_shipped_offers_are_measured_only_for_what_others_give(size: int, deadline: float) -> None:
    catalogs = [*newest_catalogs(), load_catalog("aws-us-east-1-2014")]
    offers = {(each.provider, each.type): each for one in catalogs for each in one.offers}
    for row in survey(catalogs, size, deadline_seconds=deadline):
        own = offers[row.provider, row.offer]
        kinds = {each.kind for each in own.disks or ()}
        same = [
            each.read_bytes_per_second / (other.vcpus or 1)
            for other in offers.values()
            for each in other.disks or ()
            if each.kind in kinds and each.read_bytes_per_second and other.provider == row.provider
        ]
        assert not same or row.least_bytes_per_second <= max(same) * (own.vcpus or 1)
        disks: list[Disks] = list(own.disks or ())
        if all(each.count for each in disks):
            bus = sum((each.count or 0) * FASTEST_BUS for each in disks)
            assert row.least_bytes_per_second <= bus


def test_plans_with_a_chance_are_still_read(tmp_path: Path) -> None:
    request = PlanRequest(job=LOCAL_SORT, size=TB, network="infinite", limits=Limits(max_nodes=100))
    made = plan(request, [catalog([*known(), offer("new.large", 0.5)])], PUBLISHED).to_json()
    assert "chance" not in made["survey"][0]
    old = made | {
        "survey": [
            {key: value for key, value in row.items() if key != "share_of_known"} | {"chance": 0.5}
            for row in made["survey"]
        ]
    }
    (tmp_path / "plan.json").write_text(json.dumps(old))
    (row,) = Plan.read(tmp_path / "plan.json").survey
    assert (row.chance, row.share_of_known) == (0.5, None)
    old["survey"][0]["chance"] = 2
    with pytest.raises(RecordError, match=r"survey\[0\]\.chance"):
        Plan.from_json(old)
