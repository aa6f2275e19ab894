"""The candidates of a plan on the terminal: nothing of them is cut, however narrow it is."""

import pytest
from msgspec import structs

from support.data.runs import plan_of
from tonnage.base.records.plan import NO_CORES, Range
from tonnage.catalog import newest_catalogs
from tonnage.cli.output.candidates import COLUMNS, MEETS, candidate_lines
from tonnage.cli.output.plan import print_plan
from tonnage.plan.layouts import VOLUME_COUNTS

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
