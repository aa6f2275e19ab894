"""Published sorts, planned as they were run, against what they took."""

import json

import pytest

from support.cli.command import Tonnage
from tonnage.catalog import catalog_names, load_catalog
from tonnage.model.profiles.repository import index_profiles, read_profiles
from tonnage.plan.backtest.predict import Prediction, Skipped, predict
from tonnage.plan.backtest.published_sorts import ENGINES, LAYOUTS, WORKERS, published_sorts

WITHIN = 0.25
PREDICTED = (
    "Themis Indy GraySort",
    "Themis Daytona GraySort",
    "Themis CloudSort",
    "Spark Daytona GraySort",
    "Exoshuffle-CloudSort",
)
FROM_RUNS = ("Hadoop TeraSort on m4.xlarge", "Hadoop TeraSort on c4.large")


@pytest.fixture(scope="module")
def found() -> dict[str, Prediction | Skipped]:
    catalogs = [load_catalog(name) for name in catalog_names()]
    known = index_profiles(
        [each for name in ("themis-2014", "skyrise") for each in read_profiles(name)]
    )
    return {each.name: predict(each, catalogs, known) for each in published_sorts()}


@pytest.mark.parametrize("name", PREDICTED)
def test_a_record_is_predicted_within_a_quarter_and_inside_its_interval(
    found: dict[str, Prediction | Skipped], name: str
) -> None:
    its = found[name]
    assert isinstance(its, Prediction)
    assert abs(its.seconds_error) <= WITHIN and its.inside
    assert its.usd_error is not None and abs(its.usd_error) <= WITHIN and its.usd_inside
    for interval in (its.candidate.seconds, its.candidate.cost_usd):
        assert interval.high <= 2 * interval.low


def test_what_cannot_be_predicted_says_why(found: dict[str, Prediction | Skipped]) -> None:
    skipped = {name: each.why for name, each in found.items() if isinstance(each, Skipped)}
    assert skipped.keys() == found.keys() - {*PREDICTED, *FROM_RUNS}
    assert "no catalog has its machines" in skipped["TritonSort GraySort"]


@pytest.mark.parametrize("name", FROM_RUNS)
def test_hadoops_runs_are_predicted_from_its_others(
    found: dict[str, Prediction | Skipped], name: str
) -> None:
    its = found[name]
    assert isinstance(its, Prediction)
    assert abs(its.seconds_error) <= 0.2 and its.inside
    assert its.candidate.nodes == its.record.nodes and "68 other runs" in its.put_in[0]


def test_no_plan_is_told_a_core_second_or_a_time(
    found: dict[str, Prediction | Skipped],
) -> None:
    for each in found.values():
        if isinstance(each, Prediction) and each.record.name not in FROM_RUNS:
            assert each.put_in[0] == f"cores did not limit it: {ENGINES[each.record.engine].cores}"
            assert not {phase.bottleneck for phase in each.candidate.phases} & {"cpu", "start"}
            layout, workers = LAYOUTS.get(each.record.name), WORKERS.get(each.record.name)
            if layout:
                assert each.candidate.layout == layout.name and layout.source in each.put_in
            assert each.candidate.nodes == (workers.nodes if workers else each.record.nodes)


def test_the_command_prints_both_as_it_says(tonnage: Tonnage) -> None:
    values = json.loads(tonnage.run("backtest", "records", "--json", check=True).stdout)
    assert [each["record"] for each in values["records"]] == [*PREDICTED, *FROM_RUNS]
    for each in values["records"]:
        low, median, high = (each["seconds_predicted"][end] for end in ("low", "median", "high"))
        assert low <= median <= high
        assert each["seconds_error"] == pytest.approx(median / each["seconds_true"] - 1)
        assert each["inside"] == (low <= each["seconds_true"] <= high)
    assert {"record", "why"} == values["skipped"][0].keys()
    lines = tonnage.run("backtest", "records", check=True).stdout.splitlines()
    assert "Exoshuffle-CloudSort (2022): 40 x i4i.4xlarge (local), 100 TB" in lines
    refused = tonnage.run("backtest", "record")
    assert refused.returncode == 2 and "did you mean records?" in refused.stderr
