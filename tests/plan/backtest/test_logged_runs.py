"""`tonnage backtest DIR`: runs planned from the event logs of others of the same job."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from support.cli.command import Tonnage
from support.data.applications import GB, application, stage
from support.data.offers import catalog, distribution, offer, profile
from support.stores.disk import ROOT
from tonnage.base.records.application import Application
from tonnage.catalog import CatalogError
from tonnage.model.profiles.repository import index_profiles
from tonnage.plan.backtest.logged_runs import judge_logged_runs, plan_from, read_logged_runs
from tonnage.plan.resources.machines import ALONE

LOG = ROOT / "tests" / "support" / "recorded" / "spark" / "spark-4.0-sort.lz4"
RATES = (2e9, 1e9)
WORLD = catalog([offer("m", 1.0, disk_rates=RATES), offer("dear", 3.0, disk_rates=RATES)])
KNOWN = index_profiles(
    [profile({}, shares=[distribution(f"local {way}", 1.0) for way in ("read", "write")])]
)


def scaled(seconds: float) -> Application:
    """Even work of so many seconds on the four slots of the log's executors."""
    return application(stage(0, 0, seconds, 400, read_bytes={"files": GB}), seconds=seconds)


def table(directory: Path, *rows: str) -> Path:
    lines = ["log,provider,machine_type,nodes", *rows]
    (directory / "runs.csv").write_text("\n".join(lines) + "\n")
    return directory


def test_runs_are_planned_from_each_other(tmp_path: Path) -> None:
    """Two nodes of eight vCPUs took 100 s with four slots, so that four need half of it."""
    logs = {"two": scaled(100.0), "four": scaled(50.0), "dear": scaled(100.0)}
    directory = table(tmp_path, "two,aws,m,2", "four,aws,m,4", "dear,aws,dear,2")
    runs = read_logged_runs(directory, [WORLD], lambda path: logs[path.name])
    assert [run.paid for run in runs] == pytest.approx([200 / 3600, 200 / 3600, 600 / 3600])
    tested = judge_logged_runs(runs, KNOWN, None)
    assert [len(each.errors) for each in tested] == [2, 2, 2]
    assert [each.regret for each in tested] == [0, 0, 0]
    # Machines have more vCPUs than the log's executors had slots, and other runs use them. The
    # threads of the slots had a core each.
    assert [plan_from(runs[0], other, KNOWN, None).seconds.median for other in runs[1:]] == [
        pytest.approx(100 * 4 * ALONE / 32, rel=0.05),
        pytest.approx(100 * 4 * ALONE / 16, rel=0.05),
    ]
    assert {*tested[0].baselines} == {"cores x speed", "a + b/n", "Ernest"}


def test_tables_are_refused_with_their_row(tmp_path: Path) -> None:
    def read(*rows: str) -> str:
        with pytest.raises(CatalogError) as refused:
            read_logged_runs(table(tmp_path, *rows), [WORLD], lambda path: scaled(100.0))
        return str(refused.value)

    assert "no catalog has q of aws" in read("one,aws,q,2")
    assert "a number of machines" in read("one,aws,m,0")
    (tmp_path / "runs.csv").write_text("log,nodes\none,2\n")
    with pytest.raises(CatalogError, match="missing column machine_type"):
        read_logged_runs(tmp_path, [WORLD], lambda path: scaled(100.0))


def test_the_command_prints_what_it_prints_of_tables(tonnage: Tonnage, tmp_path: Path) -> None:
    for name in ("a.lz4", "b.lz4"):
        shutil.copy(LOG, tmp_path / name)
    table(tmp_path, "a.lz4,aws,m5.large,1", "b.lz4,aws,m5.xlarge,1")
    said = tonnage.run("backtest", tmp_path, "--from", "local", "--json", check=True).stdout
    found = json.loads(said)
    assert found["jobs"][0]["job"] == "sort" and found["overall"]["cells"] == 2
    assert "hidden runs predicted" in tonnage.run("backtest", tmp_path, check=True).stdout
    for arguments, words in (
        (("--train", "1"), "--train is for a table of runs"),
        (("--from", "tape"), "--from tape"),
    ):
        done = tonnage.run("backtest", tmp_path, *arguments)
        assert done.returncode == 2 and words in done.stderr
    (tmp_path / "b.lz4").unlink()
    done = tonnage.run("backtest", tmp_path)
    assert done.returncode == 2 and "b.lz4" in done.stderr and done.stderr.count("\n") == 1
