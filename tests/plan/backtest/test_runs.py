"""A table of made-up runs, some of which are hidden and predicted."""

import json
from pathlib import Path

import pytest

from support.cli.command import Tonnage

CORES = {"m4.xlarge": 4, "c4.2xlarge": 8, "r4.xlarge": 4}
NODES = (4, 6, 8, 12, 16)


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """Two jobs that shrink with cores, of two sizes."""
    rows = ["job,machine_type,nodes,seconds,data_label,data_bytes"]
    for label, size in (("small", 1), ("large", 2)):
        rows += [
            f"count,{kind},{nodes},{30 + 2e4 * size / cores / nodes:.1f},{label},{size}000000000"
            for kind, cores in CORES.items()
            for nodes in NODES
        ]
    path = tmp_path / "runs.csv"
    path.write_text("\n".join(rows) + "\n")
    return path


def test_hidden_runs_are_predicted_with_intervals_and_regret(tonnage: Tonnage, runs: Path) -> None:
    found = json.loads(tonnage.run("backtest", runs, "--train", "2", "--json", check=True).stdout)
    assert {each["job"] for each in found["jobs"]} == {"count_small", "count_large"}
    overall = found["overall"]
    assert overall["cells"] == 20 * 2 * (3 * len(NODES) - 2)
    assert overall["median_error"] < 0.15 and overall["coverage"] > 0.85
    assert overall["baselines"].keys() == {"cores x speed", "a + b/n", "Ernest"}
    for each in [*found["jobs"], overall]:
        assert 0 <= each["regret_median"] <= each["regret_p90"]
        assert each["median_error"] <= each["p90_error"]


def test_training_sets_name_the_known_runs(tonnage: Tonnage, runs: Path, tmp_path: Path) -> None:
    sets = tmp_path / "sets.csv"
    sets.write_text(
        "job,strategy,draw,rank,machine_type,nodes\n"
        "count_small,mid,1,1,m4.xlarge,12\n"
        "count_small,mid,1,2,c4.2xlarge,6\n"
        "count_large,random,1,1,m4.xlarge,4\n"
        "another,random,1,1,m4.xlarge,4\n"
    )
    line = tonnage.run("backtest", runs, "--training-sets", sets, "--json", check=True).stdout
    found = json.loads(line)["train"]
    assert {len(each["jobs"]) for each in found.values()} == {2}
    only = ("--strategies", "mid", "--train", "1")
    line = tonnage.run(
        "backtest", runs, "--training-sets", sets, *only, "--json", check=True
    ).stdout
    assert [each["job"] for each in json.loads(line)["jobs"]] == ["count_small"]
    sets.write_text("job,strategy,draw,rank,machine_type,nodes\ncount_small,mid,1,1,m4.xlarge,99\n")
    wrong = tonnage.run("backtest", runs, "--training-sets", sets)
    assert wrong.returncode == 2
    assert "row 2, machine_type: the table has no such run" in wrong.stderr


@pytest.mark.parametrize(
    ("row", "why"),
    [
        ("count,m4.huge,4,100", "no catalog has m4.huge of aws"),
        ("count,m4.xlarge,4,100", "no job has two finished runs"),
    ],
)
def test_what_cannot_be_predicted_says_why(
    tonnage: Tonnage, tmp_path: Path, row: str, why: str
) -> None:
    path = tmp_path / "runs.csv"
    path.write_text(f"job,machine_type,nodes,seconds\n{row}\n")
    wrong = tonnage.run("backtest", path)
    assert wrong.returncode == 2 and why in wrong.stderr


def test_options_of_tables_are_not_for_records(tonnage: Tonnage) -> None:
    for flag, value in (("--train", "2"), ("--strategies", "mid")):
        wrong = tonnage.run("backtest", "records", flag, value)
        assert wrong.returncode == 2
        assert f"{flag} is for a table of runs; remove it" in wrong.stderr


def test_strategies_are_of_training_sets(tonnage: Tonnage, runs: Path, tmp_path: Path) -> None:
    wrong = tonnage.run("backtest", runs, "--strategies", "mid")
    assert wrong.returncode == 2 and "specify their file with --training-sets" in wrong.stderr
    sets = tmp_path / "sets.csv"
    sets.write_text("job,strategy,draw,rank,machine_type,nodes\ncount_small,mid,1,1,m4.xlarge,4\n")
    wrong = tonnage.run("backtest", runs, "--training-sets", sets, "--strategies", "other")
    assert wrong.returncode == 2 and "no training set of other" in wrong.stderr


def test_chosen_runs_lead_to_a_cheaper_cluster(tonnage: Tonnage, tmp_path: Path) -> None:
    """A working set of 100 GB takes three times as long where it does not fit into memory."""
    memory = {"m4.xlarge": 16, "c4.2xlarge": 15, "r4.xlarge": 30.5}
    rows = ["job,machine_type,nodes,seconds"] + [
        f"count,{kind},{nodes},{(2e4 if nodes * memory[kind] > 100 else 6e4) / cores / nodes:.1f}"
        for kind, cores in CORES.items()
        for nodes in (2, *NODES)
    ]
    path, sets = tmp_path / "runs.csv", tmp_path / "sets.csv"
    path.write_text("\n".join(rows) + "\n")
    sets.write_text(
        "job,strategy,draw,rank,machine_type,nodes\n"
        "count,small,1,1,c4.2xlarge,2\ncount,small,2,1,m4.xlarge,4\n"
    )
    command = ("backtest", path, "--training-sets", sets, "--next")
    found = json.loads(tonnage.run(*command, "--json", check=True).stdout)["next"]
    assert [each["job"] for each in found["jobs"]] == ["count"]
    mean = found["overall"]["regret_mean"]
    assert list(mean) == ["1", "2", "3", "4", "5"]
    assert mean["5"] < 0.05
    lines = tonnage.run(*command, "--train", "1", "3", check=True).stdout
    assert "1 run" in lines and "3 runs" in lines and "5 runs" not in lines
    refused = tonnage.run("backtest", "records", "--next")
    assert refused.returncode == 2 and "--next is for a table of runs" in refused.stderr
