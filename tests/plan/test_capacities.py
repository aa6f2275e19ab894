"""What plans rest on: the slowest of N, a network's fall, laws of measured nodes, profiles."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.data.copies import replace
from support.data.offers import distribution, profile
from support.data.reductions import record
from tonnage.base.records.profile import Mode, NetworkScaling
from tonnage.model.jobs.mapreduce import mapreduce_job, sort_job
from tonnage.model.jobs.reduce import job_from_reduction, reduce_job
from tonnage.model.profiles import fit
from tonnage.model.profiles.network_scaling import scaling_curve
from tonnage.model.profiles.repository import ProfileError, index_profiles, read_profiles
from tonnage.model.slowest_node import ClusterDraws
from tonnage.model.token_bucket import TokenBucket
from tonnage.plan.capacity_samples import CapacitySamples


def test_slowest_of_one_kind_is_the_order_statistic() -> None:
    """With a spread that is well known: the median of the least of N is F^-1(1 - 2^(-1/N))."""
    from scipy.stats import norm  # type: ignore[import-untyped]

    of = distribution("network", 1e9, 0.1, instances=100_000)
    nodes = np.array([1, 10, 100, 1_000])
    drawn = np.median(ClusterDraws().slowest(of, nodes), axis=0)
    expected = 1e9 * np.exp(0.1 * norm.ppf(1 - 0.5 ** (1 / nodes)))
    assert drawn == pytest.approx(expected, rel=0.005)


def test_slowest_of_two_kinds_is_of_the_slow_one_as_soon_as_there_is_one() -> None:
    of = distribution(
        "volume read", 300e6, 0.01, 9_500, more=[Mode(median=1e8, spread=0.01, instances=500)]
    )
    slow = ClusterDraws().slowest(of, [1, 14, 200]) < 150e6
    shares = slow.mean(axis=0)
    # 5 % of nodes are slow: of N, 1 - 0.95^N have one at least.
    assert shares == pytest.approx([0.05, 1 - 0.95**14, 1 - 0.95**200], abs=0.03)


def test_more_nodes_are_never_faster_in_any_fleet() -> None:
    of = distribution("x", 3e8, 0.2, 290, 0.1, more=[Mode(median=1e8, spread=0.2, instances=10)])
    drawn = ClusterDraws().slowest(of, np.arange(1, 300))
    assert np.all(np.diff(drawn, axis=1) <= 1e-6 * drawn[:, 1:])


def test_laws_that_differ_in_speed_alone_have_the_same_factors() -> None:
    rates = CapacitySamples(50)
    one, two = (rates.medians(distribution("x", median, 0.1)) for median in (1e8, 2e8))
    assert two == pytest.approx(2 * one)


def test_curve_joins_points_and_goes_on_as_a_power() -> None:
    points = [(size, 2.0 * size**-0.25) for size in (16, 32, 64, 128)]
    found = scaling_curve(NetworkScaling(points=points, source="made up"))
    assert found.exponent == pytest.approx(0.25)
    shares = found.share(np.array([16, 128, 1_024]))
    assert shares == pytest.approx([1.0, points[-1][1], 2.0 * 1_024**-0.25])
    assert found.warning(128) is None
    assert "at most 128" in (found.warning(129) or "")


def test_curve_that_does_not_fall_is_not_made_to() -> None:
    found = scaling_curve(NetworkScaling(points=[(2, 1.0), (8, 1.1)], source="made up"))
    assert found.share(np.array([1_000]))[0] == pytest.approx(1.1)
    with pytest.raises(ValueError):
        scaling_curve(NetworkScaling(points=[], source="made up"))


@given(
    st.floats(1, 1e3),
    st.floats(1, 10),
    st.floats(0, 1e6),
    st.floats(1, 1e6),
    st.integers(1, 50),
)
@settings(max_examples=200, deadline=None)
def test_a_bucket_carries_as_if_poured_drop_by_drop(
    lasting: float, faster: float, credit: float, each: float, nodes: int
) -> None:
    """Against a simulation: the burst while there is credit, then what lasts."""
    bucket = TokenBucket(*map(np.asarray, (lasting, lasting * faster, credit)))
    said = (
        float(bucket.node_seconds(np.asarray(each * nodes), np.asarray(float(nodes)), 1.0)) / nodes
    )
    left, moved, took = credit, 0.0, 0.0
    if faster > 1 and credit:
        took = min(left / (lasting * faster - lasting), each / (lasting * faster))
        moved = took * lasting * faster
    took += max(each - moved, 0.0) / lasting
    assert said == pytest.approx(took, rel=1e-9)


def test_credits_are_shared_by_phases() -> None:
    """Two halves of the work with half of the credit each take as long as the whole with all."""
    bucket = TokenBucket(*map(np.asarray, (100.0, 300.0, 5_000.0)))
    whole, one = np.asarray(40_000.0), np.asarray(1.0)
    halves = [float(bucket.node_seconds(whole / 2, one, 0.5)) for _ in range(2)]
    assert sum(halves) == pytest.approx(float(bucket.node_seconds(whole, one, 1.0)))


def test_a_law_finds_the_slow_kind_of_node() -> None:
    generator = np.random.default_rng(1)
    rates = 3e8 * np.exp(0.06 * generator.standard_normal(100))
    rates[:5] /= 3
    found = fit.fit_distribution(
        "volume read", [list(rates)], evidence="measured", source="simulated"
    )
    assert [mode.instances for mode in found.modes] == [95, 5]
    assert found.modes[0].median == pytest.approx(3e8, rel=0.03)
    assert found.modes[1].median == pytest.approx(1e8, rel=0.1)
    assert found.modes[1].spread == found.modes[0].spread == pytest.approx(0.06, rel=0.2)


def test_a_law_of_one_kind_has_one_mode() -> None:
    ones = 0
    for seed in range(50):
        rates = 3e8 * np.exp(0.1 * np.random.default_rng(seed).standard_normal(30))
        found = fit.fit_distribution("x", [list(rates)], evidence="measured", source="simulated")
        ones += len(found.modes) == 1
        assert found.fleet_spread == 0
    assert ones >= 48


def test_a_law_knows_what_fleets_have_in_common() -> None:
    generator = np.random.default_rng(2)
    clusters = [
        list(3e8 * np.exp(0.2 * common + 0.05 * generator.standard_normal(20)))
        for common in generator.standard_normal(30)
    ]
    found = fit.fit_distribution("x", clusters, evidence="measured", source="simulated")
    assert found.fleets == 30
    assert found.fleet_spread == pytest.approx(0.2, rel=0.3)
    assert found.modes[0].spread == pytest.approx(0.05, rel=0.1)


def test_a_law_of_one_node_admits_that_it_knows_no_spread() -> None:
    (mode,) = fit.fit_distribution("x", [[1e9]], evidence="measured", source="made up").modes
    assert mode.spread == 0.25
    for wrong in ([], [[]], [[0.0]], [[math.inf]]):
        with pytest.raises(ValueError):
            fit.fit_distribution("x", wrong, evidence="measured", source="made up")


def test_profiles_are_joined_by_offer() -> None:
    local, network = distribution("local both", 1e9), distribution("network", 2e9)
    found = index_profiles([profile({"m": [local]}), profile({"m": [network]})])
    assert found.offers["aws", "m"][False].distributions == {
        "local both": local,
        "network": network,
    }


def test_profiles_that_cannot_be_are_refused(tmp_path: Path) -> None:
    for wrong in (distribution("network", -1.0), distribution("network", 1e9, instances=0)):
        with pytest.raises(ProfileError, match="network"):
            index_profiles([profile({"m": [wrong]})])
    with pytest.raises(ProfileError, match="contains no profiles"):
        read_profiles(str(tmp_path))


def test_rows_are_the_equations() -> None:
    job = mapreduce_job("replicated", map_share=0.5, reduce_share=0.2)
    rows = [{each.resource: each.per_byte for each in phase.demands} for phase in job.phases]
    assert rows == [
        {"local read": 1.0, "network": 0.5, "local write": 0.5, "cpu partition": 1.0},
        {"local read": 0.5, "cpu sort": 0.5, "local write": 0.1},
        # Its functions write their own files, which are copied then.
        {"local read": 0.1, "network": 0.1, "cpu copy": 0.1, "local write": 0.1},
    ]
    sort = sort_job("replicated").phases[1]
    assert {each.resource: each.per_byte for each in sort.demands} == {
        **{"local read": 1.0, "cpu sort": 1.0, "network": 1.0, "cpu copy": 1.0},
        "local write": 2.0,
    }
    assert sum(room.per_byte for room in job.room) == pytest.approx(1 + 0.5 + 0.2)
    with pytest.raises(ValueError):
        mapreduce_job(map_share=0)


def test_a_reduction_asks_for_every_chunk_in_every_pass() -> None:
    job = reduce_job(3, chunk_bytes=1_000)
    assert len(job.phases) == 3
    assert job.requests[0].per_byte * 1_000_000 == pytest.approx(3_000)
    worked = reduce_job(2, cpu_seconds_per_byte=3e-9)
    assert [phase.demands[-1].per_byte for phase in worked.phases] == [3e-9, 3e-9]
    with pytest.raises(ValueError):
        reduce_job(0)


def test_what_a_reduction_has_on_disks_is_not_asked_of_a_store() -> None:
    partly, local = reduce_job(2, chunk_bytes=1_000, local_share=0.75), reduce_job(local_share=1.0)
    (phase, _) = partly.phases
    assert {each.resource: each.per_byte for each in phase.demands} == {
        "object get": 0.25,
        "local read": 0.75,
    }
    assert {each.where: each.per_byte for each in partly.room} == {"object": 0.25, "local": 0.75}
    assert partly.requests[0].per_byte * 1_000_000 == pytest.approx(2 * 250)
    assert [each.resource for each in local.phases[0].demands] == ["local read"]
    assert local.requests == [] and [each.where for each in local.room] == ["local"]
    with pytest.raises(ValueError):
        reduce_job(local_share=1.1)


def test_a_reduction_is_planned_where_its_input_was() -> None:
    ran = record(["in"], 4000, 1.0, None, None)
    asked = {"requests": 3, "retries": 0, "hedged": 0, "errors": {}}
    shares = [
        job_from_reduction(replace(ran, object_bytes=of_objects, requests=requests)).settings[
            "local_share"
        ]
        for of_objects, requests in [
            (0, {}),
            (1000, asked),
            (4000, asked),
            (None, {}),
            (None, asked),
        ]
    ]
    assert shares == [1.0, 0.75, 0.0, 1.0, 0.0]  # The last two are of older records.
