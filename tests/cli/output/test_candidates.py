"""The candidates of a plan on the terminal: nothing of them is cut, however narrow it is."""

import re

import pytest
from msgspec import structs

from support.data.runs import plan_of
from support.stores.disk import ROOT
from tonnage.base.records.plan import (
    NO_CORES,
    WITHOUT_CORES,
    Explanation,
    MeasurementProposal,
    Range,
)
from tonnage.catalog import newest_catalogs
from tonnage.cli.output.candidates import COLUMNS, MEETS, NO_SLOWER, candidate_lines, usd
from tonnage.cli.output.plan import explanation_lines, print_plan, print_survey
from tonnage.plan.layouts import VOLUME_COUNTS

RECORDED = ROOT / "tests" / "support" / "recorded" / "artifacts"
(CANDIDATE,) = plan_of().candidates


def test_no_line_of_a_candidate_is_longer_than_80_characters() -> None:
    longest = max((each.type for every in newest_catalogs() for each in every.offers), key=len)
    kind = max((kind.name for every in newest_catalogs() for kind in every.volume_kinds), key=len)
    candidate = structs.replace(
        CANDIDATE,
        offer=longest,
        layout=f"local + {VOLUME_COUNTS[-1]} x {kind}",
        nodes=10_000,
        seconds=Range(low=86_400.0 * 11, median=86_400.0 * 22, high=86_400.0 * 33),
        cost_usd=Range(low=1_111_111.11, median=2_222_222.22, high=3_333_333.33),
        deadline_probability=1.0,
    )
    lines = [*candidate_lines([(1_000, candidate)])]
    assert longest in lines[0] and kind in lines[0]
    assert "$2,222,222 [$1,111,111..$3,333,333]" in lines[1]
    assert lines[-1].endswith("100 %")
    assert max(map(len, lines)) <= COLUMNS, lines


def test_dollars_have_cents_where_they_matter() -> None:
    cost = Range(low=1.25, median=2.5, high=3.75)
    _, second = candidate_lines([(1, structs.replace(CANDIDATE, cost_usd=cost))])
    assert "$2.50 [$1.25..$3.75]" in second


def test_dollars_below_a_cent_have_two_significant_digits() -> None:
    amounts = (0.0, 1e-9, 0.00342, -0.00342, 0.00996, 0.0123)
    shown = ["$0.00", "$0.00", "$0.0034", "$-0.0034", "$0.01", "$0.01"]
    assert [usd(each) for each in amounts] == shown


@pytest.mark.parametrize("notes", [[], [NO_CORES]])
def test_a_probability_stands_where_every_demand_is_known(
    capsys: pytest.CaptureFixture[str], notes: list[str]
) -> None:
    plan = plan_of()
    in_time = structs.replace(CANDIDATE, deadline_probability=1.0)
    settings = plan.settings | {"deadline_seconds": 3600.0}
    print_plan(
        structs.replace(plan, candidates=[in_time], sure=in_time, settings=settings, notes=notes),
        every=False,
    )
    printed = capsys.readouterr().out
    assert (MEETS in printed) == ("95 % probability" in printed) == (not notes)


@pytest.mark.parametrize("no_slower", [False, True])
def test_the_deadline_is_called_one_where_it_was_given(
    capsys: pytest.CaptureFixture[str], no_slower: bool
) -> None:
    in_time = structs.replace(CANDIDATE, deadline_probability=1.0)
    settings = plan_of().settings | {"deadline_seconds": 3600.0}
    made = structs.replace(plan_of(), candidates=[in_time], sure=in_time, settings=settings)
    print_plan(made, every=False, no_slower=no_slower)
    printed = capsys.readouterr().out
    assert ("To be no slower with 95 % probability" in printed) == no_slower
    assert (NO_SLOWER in printed.splitlines()[0]) == ("deadline" not in printed) == no_slower


def test_an_interval_without_the_cores_is_a_lower_bound(capsys: pytest.CaptureFixture[str]) -> None:
    candidate = structs.replace(
        CANDIDATE,
        seconds=Range(low=1140.0, median=1500.0, high=1860.0),
        cost_usd=Range(low=6.9, median=8.4, high=9.3),
    )
    made = structs.replace(plan_of(), candidates=[candidate], notes=[])
    print_plan(made, every=False)
    assert "25 min [19 min..31 min]" in (known := capsys.readouterr().out)
    assert "$8.40 [$6.90..$9.30]" in known and WITHOUT_CORES not in known

    print_plan(structs.replace(made, notes=[NO_CORES]), every=False)
    unknown = capsys.readouterr().out
    lines = " ".join(candidate_lines([(1, candidate)], demands_known=False))
    for text in (unknown, lines):
        assert "at least 19 min" in text and "at least $6.90" in text
        assert not any(end in text for end in ("..", "25 min", "31 min", "$8.40", "$9.30"))
    assert f"Cost of {candidate.offer}, {WITHOUT_CORES}: " in unknown


@pytest.mark.parametrize("resource", ["network", "cpu"])
def test_an_explanation_without_the_cores_has_a_lower_bound(resource: str) -> None:
    explanation = Explanation.read(RECORDED / "explanation-1.json")
    candidate = structs.replace(explanation.candidate, calibrated=None)
    (term, *_) = explanation.terms
    terms = [structs.replace(term, resource=resource)]
    said = explanation_lines(structs.replace(explanation, candidate=candidate, terms=terms))
    (line,) = (each for each in said if usd(candidate.cost_usd.low) in each)
    assert line.startswith("  at least ") == (NO_CORES in line) == (resource != "cpu")
    assert (usd(candidate.cost_usd.high) in line) == (resource == "cpu")


@pytest.mark.parametrize("columns", [80, 200])
def test_a_survey_fits_the_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, columns: int
) -> None:
    proposal = MeasurementProposal(
        provider="aws",
        offer="Standard_" + "x" * 23,
        layout="local + 16 x hyperdisk-balanced",
        nodes=250,
        resource="local both",
        least_bytes_per_second=1e9,
        share_of_known=0.5,
        rule="the share of known families",
        usd_to_measure=12.5,
    )
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", str(columns))
    print_survey(structs.replace(plan_of(), survey=[proposal]), None, as_json=False)
    printed = re.sub(r"\x1b\[[0-9;]*m", "", capsys.readouterr().out)
    table, _, _ = printed.partition("Cost of ")
    assert proposal.offer in table and proposal.layout in table and "$12.50" in table
    assert max(map(len, table.splitlines())) <= columns
    assert ("250 x " in table) == (columns == 80)
