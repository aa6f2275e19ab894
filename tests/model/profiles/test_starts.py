"""Starts of finished launches: read into profiles, and planned with."""

from pathlib import Path

import pytest

from support.data.copies import replace
from support.data.offers import catalog, distribution, offer, profile
from support.stores.disk import ROOT
from tonnage.base.records.launch import Launch
from tonnage.base.records.profile import Profile
from tonnage.model.jobs.mapreduce import sort_job
from tonnage.model.profiles.build import build_profile
from tonnage.model.profiles.repository import index_profiles, read_profiles
from tonnage.model.profiles.starts import provider_starts
from tonnage.plan.planner import PlanRequest, plan
from tonnage.plan.resources.startup import default_startup
from tonnage.plan.search import Limits


def launch(number: int = 1, ready_at: str | None = "2026-01-01T00:03:00+00:00") -> Launch:
    path = ROOT / "tests" / "support" / "recorded" / "artifacts" / "launch-1.json"
    earlier = Launch.read(path)
    return replace(earlier, name=f"tonnage-sort-{number}", ready_at=ready_at)


def test_launches_that_got_ready_are_a_distribution_of_their_provider() -> None:
    launches = [launch(1), launch(2, "2026-01-01T00:04:00+00:00"), launch(3, None)]
    (start,), (unused,) = provider_starts(launches)
    assert start.provider == "aws"
    (mode,) = start.law.modes
    assert 1 / mode.median == pytest.approx(210) and mode.instances == 2
    assert 0 < mode.spread < 0.3 and start.law.of_fleet
    assert "tonnage-sort-1, tonnage-sort-2" in start.law.source
    assert "2 starts of 2 nodes" in start.law.spread_source
    assert unused.measurements == ["tonnage-sort-3"]


@pytest.mark.parametrize("ready_at", ["yesterday", "2026-01-01T00:03:00", "2025-12-31T00:00:00Z"])
def test_a_time_that_cannot_be_is_not_used(ready_at: str) -> None:
    assert provider_starts([launch(1, ready_at)])[0] == []


def test_a_directory_with_records_of_launches_is_a_profile(tmp_path: Path) -> None:
    launch(1).write(tmp_path / "launch.json")
    (found,) = read_profiles(str(tmp_path))
    assert found.launches == ["tonnage-sort-1"] and found.starts[0].provider == "aws"
    # A profile that was built from them is not joined by them.
    found.write(tmp_path / "mine.json")
    assert [each.starts for each in read_profiles(str(tmp_path))] == [found.starts]
    assert Profile.read(tmp_path / "mine.json") == found


def test_a_plan_counts_them_in_place_of_what_others_measured() -> None:
    disks = profile({"m": [distribution("local both", 1e9, 0.0, 1_000_000)]})
    own = build_profile([], {}, name="own", made_at="2026-01-01T00:00:00Z", launches=[launch()])
    known = index_profiles([disks, own])
    assert known.starts["aws"].source == "launches tonnage-sort-1"
    request = PlanRequest(
        job=sort_job(),
        size=10**12,
        limits=Limits(min_nodes=4, max_nodes=4),
        network="infinite",
        startup=default_startup(known.starts),
    )
    (found,) = plan(request, [catalog([offer("m")], ())], known).candidates
    assert found.phases[0].seconds == pytest.approx(180)
    assert {*default_startup(known.starts)} == {*default_startup()}
