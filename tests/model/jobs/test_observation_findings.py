"""What to change first about an observed run: what limited it, and the most that it could save."""

from typing import Any

import pytest

from support.data.copies import replace
from support.stores.disk import ROOT
from tonnage.base.records import Observation
from tonnage.base.records.observation import ObservedPhase
from tonnage.model.jobs.observation_findings import observation_findings

RECORDED = Observation.read(
    ROOT / "tests" / "support" / "recorded" / "artifacts" / "observation-1.json"
)


def phase(name: str, seconds: float, bottleneck: str, **shares: float) -> ObservedPhase:
    named = {key.replace("_", " "): share for key, share in shares.items()}
    return replace(
        RECORDED.phases[0],
        name=name,
        seconds=seconds,
        bottleneck=bottleneck,
        shares=named,
        why="as counted",
    )


def observed(*phases: ObservedPhase, **changes: Any) -> Observation:
    seconds = sum(each.seconds for each in phases)
    return replace(RECORDED, phases=[*phases], seconds=seconds, **changes)


def test_the_resource_used_next_bounds_what_a_faster_one_saves() -> None:
    first, second = observation_findings(
        observed(
            phase("one", 10.0, "cpu", cpu=0.9, one_core=0.95, vda=0.25, waits_for_a_core=3.0),
            phase("two", 40.0, "disk: read", cpu=0.5, one_core=0.4, vda=0.9, waits_for_IO=1.0),
            phase("three", 4.0, "disk: read", cpu=0.0, vda=0.9),
        )
    )
    # Disks: 40 s x half, as the cores were next, and 4 s; other disks do not bound it.
    assert first.name == "The disk, reading" and first.seconds == pytest.approx(24.0)
    assert "two and three, 44 s together" in first.fact and "faster disks" in first.change
    # All cores and one core are the same resource, and waiting for one is no resource.
    assert second.name == "The CPU" and second.seconds == pytest.approx(7.5)


def test_one_thread_could_use_all_cores_and_no_more() -> None:
    (only,) = observation_findings(observed(phase("one", 10.0, "one core", cpu=0.5, one_core=1.0)))
    assert only.name == "One core" and only.seconds == pytest.approx(5.0)


def test_waits_are_bounded_by_what_was_used_most() -> None:
    (only,) = observation_findings(observed(phase("one", 10.0, "none: waits", cpu=0.4, vda=0.3)))
    assert only.name == "Waits" and only.seconds == pytest.approx(6.0)


def test_what_saves_next_to_nothing_is_left_out() -> None:
    phases = (
        phase("one", 100.0, "cpu", cpu=1.0, vda=0.99),
        phase("two", 1.0, "network", network=1.0),
    )
    assert observation_findings(observed(*phases)) == []
    assert observation_findings(observed(phase("one", 0.0, "cpu", cpu=1.0))) == []


def test_a_recorded_observation_has_findings_in_order() -> None:
    findings = observation_findings(RECORDED)
    saved = [each.seconds for each in findings]
    assert saved == sorted(saved, reverse=True) and 0 < sum(saved) < RECORDED.seconds
