"""Why a plan has no candidate: the limits that are missed are named, and no others."""

import pytest
from msgspec import structs

from support.data.runs import plan_of
from tonnage.base.records.job import START_UP
from tonnage.base.records.plan import (
    NO_CORES,
    UNKNOWN,
    WITHOUT_CORES,
    Candidate,
    Plan,
    PlannedPhase,
    Range,
)
from tonnage.cli.output.planning.no_candidate import why_no_candidate

HOUR = 3600.0
(CANDIDATE,) = plan_of().candidates


def plan_without(nearest: Candidate, **settings: object) -> Plan:
    known = plan_of().settings | settings
    return structs.replace(plan_of(), candidates=[], nearest=nearest, settings=known)


def of_past_runs(nodes: int, hours: float, in_time: float) -> Candidate:
    return structs.replace(
        CANDIDATE,
        nodes=nodes,
        seconds=Range(low=hours * HOUR / 2, median=hours * HOUR, high=hours * HOUR * 2),
        phases=[PlannedPhase(name="run", seconds=hours * HOUR, bottleneck=UNKNOWN)],
        deadline_probability=in_time,
    )


def test_the_nearest_plan_says_that_it_is_without_the_cores() -> None:
    made = plan_without(CANDIDATE, deadline_seconds=10.0)
    for notes in ([], [NO_CORES]):
        said = why_no_candidate(structs.replace(made, notes=notes))
        assert said.startswith("no offer meets --deadline with --max-nodes 100; nearest: 4 x n ")
        assert said.endswith(f" {WITHOUT_CORES}") == bool(notes), said


def test_past_runs_have_to_be_in_time_with_a_probability() -> None:
    made = plan_without(of_past_runs(90, 3.6, 0.68), deadline_seconds=5 * HOUR)
    said = why_no_candidate(made)
    assert "no offer meets --deadline (with 75 % probability) with --max-nodes 100; " in said
    assert said.endswith("3.6 h, $0.20, in time with 68 %")


def test_the_runs_limit_how_large_a_cluster_is_planned() -> None:
    made = plan_without(of_past_runs(11, 3.6, 0.0), deadline_seconds=2 * HOUR, most_nodes=2000)
    said = why_no_candidate(made)
    assert "--max-nodes" not in said
    assert said.endswith("; more than 4 times the vCPUs of the runs are not planned")


@pytest.mark.parametrize(
    ("dollars", "words"),
    [
        (None, "is no slower than today's cluster with --max-nodes 100; "),
        (0.1, "is no slower than today's cluster and meets --budget with --max-nodes 100; "),
    ],
)
def test_a_deadline_that_nobody_gave_is_todays_time(dollars: float | None, words: str) -> None:
    made = plan_without(CANDIDATE, deadline_seconds=10.0, budget_usd=dollars)
    assert why_no_candidate(made, no_slower=True).startswith(f"no offer {words}")


@pytest.mark.parametrize(("deadline", "is_said"), [(20.0, True), (40.0, False)])
def test_a_start_that_takes_too_long_alone_is_named(deadline: float, is_said: bool) -> None:
    start = PlannedPhase(name=START_UP, seconds=25.0, bottleneck="start")
    near = structs.replace(CANDIDATE, phases=[start, *CANDIDATE.phases])
    said = why_no_candidate(plan_without(near, deadline_seconds=deadline))
    words = "; the start of its machines alone takes 25 s (--startup 0 for machines that stay up)"
    assert said.endswith(words) == is_said, said
