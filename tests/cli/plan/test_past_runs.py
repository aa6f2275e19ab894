"""`tonnage import RUNS.csv` and `tonnage plan RUNS.json`, as a user types them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from msgspec import structs

from support.cli.command import Tonnage
from tonnage.base.records.application import Application
from tonnage.base.records.past_run import PastRuns
from tonnage.base.records.plan import Plan

TABLE = """job,machine_type,nodes,seconds,data_bytes
nightly,r5.4xlarge,20,28800,
hourly,m5.xlarge,8,900,100000000000
hourly,m5.xlarge,8,1700,200000000000
"""

SPARK = Path(__file__).parents[2] / "support" / "recorded" / "spark"


@pytest.fixture
def table(tmp_path: Path) -> Path:
    file = tmp_path / "runs.csv"
    file.write_text(TABLE)
    return file


def refusal(tonnage: Tonnage, *arguments: str | Path) -> str:
    done = tonnage.run(*arguments)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
    return done.stderr


def test_a_line_of_a_spreadsheet_becomes_a_plan(tonnage: Tonnage, table: Path) -> None:
    record = table.with_name("runs.json")
    said = tonnage.run("import", table, "--job", "nightly", "--output", record, check=True).stdout
    assert "nightly: 1 run, 1 finished" in said and "it took 8.0 h\n" in said
    assert PastRuns.read(record).runs[0].nodes == 20
    command = ("plan", record, "--provider", "aws", "--now", "20 x r5.4xlarge")
    made = Plan.from_json(json.loads(tonnage.run(*command, "--json", check=True).stdout))
    assert made.current is not None and made.current.seen_seconds == 28_800
    text = tonnage.run(*command, "--per-month", "30", check=True).stdout
    assert "Today: 20 x r5.4xlarge" in text and "30 runs" in text
    assert "Bottlenecks" not in text and "What limits it" not in text


def test_the_next_run_is_proposed(tonnage: Tonnage, table: Path) -> None:
    record = table.with_name("runs.json")
    said = tonnage.run("import", table, "--job", "hourly", "--output", record, check=True).stdout
    assert "they took 15 min to 28 min" in said
    assert len(PastRuns.read(record).runs) == 2
    command = ("plan", record, "--provider", "aws", "--next")
    found = json.loads(tonnage.run(*command, "--json", check=True).stdout)["next"]
    assert found and found[0].keys() >= {"machine_type", "nodes", "seconds", "usd", "gain"}
    first, *_ = tonnage.run(*command, check=True).stdout.splitlines()
    assert first.startswith("1. ") and first.endswith(" % less than the one chosen now")


def test_mistakes_are_refused_in_one_line(tonnage: Tonnage, table: Path) -> None:
    record = table.with_name("runs.json")
    assert "choose one with --job" in refusal(tonnage, "import", table)
    assert "did you mean nightly" in refusal(tonnage, "import", table, "--job", "nightli")
    assert "past runs" in refusal(tonnage, "import", table, "--job", "nightly", "--data", "1TB")
    tonnage.run("import", table, "--job", "nightly", "--output", record, check=True)
    for arguments, words in (
        (("--from", "objects"), "--from does not apply"),
        (("--explain", "m5.large"), "--explain does not apply"),
        (("--startup", "10m"), "--startup does not apply"),
        (("--next", "--now", "2 x m5.large"), "--now does not apply"),
        (("--data", "1TB"), "do not state how much data"),
        (("--arch", "arm64", "--provider", "lab"), "lab"),
    ):
        assert words in refusal(tonnage, "plan", record, *arguments)
    assert "--next is for" in refusal(tonnage, "plan", "sort", "--data", "1TB", "--next")


def test_an_event_log_tells_what_one_of_the_runs_took(tonnage: Tonnage, table: Path) -> None:
    log, record = table.with_name("log.json"), table.with_name("runs.json")
    tonnage.run("import", SPARK / "spark-4.0-cached.zstd", "--output", log, check=True)
    seconds = Application.read(log).seconds
    table.write_text(f"job,machine_type,nodes,seconds\nnightly,m5.large,2,{seconds + 2:.0f}\n")
    command = ("import", table, "--demands", log, "--output", record)
    assert "core hours" in tonnage.run(*command, check=True).stdout
    past = PastRuns.read(record)
    assert past.demands is not None and past.demands.disk_bytes > 1e6
    assert past.cached_bytes and past.cached_bytes > 1e6
    planned = tonnage.run("plan", record, "--provider", "aws", check=True).stdout
    assert "times alone do not tell" not in planned.lower()
    table.write_text("job,machine_type,nodes,seconds\nnightly,m5.large,2,3600\n")
    assert "none of nightly did" in refusal(tonnage, *command)
    assert "--demands" in refusal(tonnage, "import", table, "--demands", table)
    unended = structs.replace(Application.read(log), ended=False)
    unended.write(table.with_name("unended.json"))
    others = ("import", table, "--demands")
    assert "has not ended" in refusal(tonnage, *others, table.with_name("unended.json"))
    assert "no such file" in refusal(tonnage, *others, table.parent)
    assert "--demands is for" in refusal(tonnage, "import", log, "--demands", log)


def test_runs_on_one_provider_are_planned_on_another(tonnage: Tonnage, table: Path) -> None:
    record = table.with_name("runs.json")
    tonnage.run("import", table, "--job", "nightly", "--output", record, check=True)
    command = ("plan", record, "--provider", "gcp", "--now", "20 x r5.4xlarge", "--json")
    made = Plan.from_json(json.loads(tonnage.run(*command, check=True).stdout))
    assert made.current is not None and made.current.candidate.provider == "aws"
    assert {each.provider for each in made.candidates} == {"gcp"}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("job;machine_type;nodes;seconds\na;m5.large;2;90\n", "missing column"),
        ("Job,Machine_type,nodes,seconds\na,m5.large,2,90\n", "missing column job"),
        ("job,machine_type,nodes,seconds\na,m5.large,2\n", "row 2"),
        ("job,machine_type,nodes,seconds\na,m5.large,2,0.0000001\n", "row 2"),
        (
            "job,machine_type,nodes,seconds\na,m5.large,2,8 h\n",
            "seconds: '8 h' is not a number; use",
        ),
        ("cluster,time\n2 x m5.large,90\n", "needs columns job, machine_type, nodes and seconds"),
        ("job,machine_type,nodes,seconds,k\na,m5.large,2,90,nan\n", "leave it blank"),
    ],
)
def test_what_is_wrong_with_a_table_is_named(
    tonnage: Tonnage, tmp_path: Path, text: str, words: str
) -> None:
    file = tmp_path / "runs.csv"
    file.write_text(text)
    assert words in refusal(tonnage, "import", file, "--output", tmp_path / "runs.json")
    assert words in refusal(tonnage, "import", file)
