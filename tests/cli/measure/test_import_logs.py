"""`tonnage import` of Spark's event logs: a summary and a record, from files and object stores."""

import json
from pathlib import Path

import pyarrow as pa
import pytest

from support.cli.command import Tonnage
from support.stores.disk import ROOT
from support.stores.s3 import BUCKET, Bucket
from tonnage.base.records.application import Application
from tonnage.measure.importers.spark.log_files import lines

RECORDED = ROOT / "tests" / "support" / "recorded"
SORT = RECORDED / "spark" / "spark-4.0-sort.lz4"
FAILING = RECORDED / "spark" / "spark-4.0-failing.gz"
CACHED = RECORDED / "spark" / "spark-3.0-cached.zstd"
FIO = RECORDED / "importers" / "fio" / "randread-4k-qd32-iouring.jsonplus.json"


def refusal(tonnage: Tonnage, *arguments: str | Path) -> str:
    done = tonnage.run("import", *arguments)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1), done.stderr
    return done.stderr


def test_a_log_is_summed_up(tonnage: Tonnage) -> None:
    first, executors, *stages = tonnage.run("import", SORT, check=True).stdout.splitlines()
    assert first.startswith("sort (Spark 4.0.5): 21 s, 3 stages, 9 tasks, 5.23 core seconds")
    assert executors.startswith("executors: 2 with 1 core and 127 MiB for data on 1 machine; ")
    assert len(stages) == 3
    assert stages[1].startswith("stage 1 (Scan parquet > Exchange): 3.4 s, 2 tasks (2.92 s median")
    assert "7.92 MB read from files, 8.31 MB written to a shuffle, 2.65 core seconds" in stages[1]


def test_what_failed_is_in_the_summary(tonnage: Tonnage) -> None:
    printed = tonnage.run("import", FAILING, check=True).stdout
    assert "not finished" in printed and "1 failed job and 4 failed tasks: " in printed
    assert "Python workers" in printed


def test_the_record_is_written_where_it_was_named(tonnage: Tonnage, disk: Path) -> None:
    tonnage.run("import", SORT, "--output", disk / "job.json", check=True)
    tonnage.run("import", SORT, CACHED, "--output", disk / "jobs", check=True)
    record = Application.read(disk / "job.json")
    names = {path.name for path in (disk / "jobs").iterdir()}
    assert f"{record.id}.json" in names and len(names) == 2
    assert Application.read(disk / "jobs" / f"{record.id}.json") == record
    printed = tonnage.run("import", SORT, "--json", check=True).stdout
    assert Application.from_json(json.loads(printed)) == record


def test_logs_and_measurements_are_imported_together(tonnage: Tonnage, disk: Path) -> None:
    done = tonnage.run("import", FIO, SORT, "--output", disk / "out", "--json", check=True)
    printed = json.loads(done.stdout)
    assert [each["name"] for each in printed["applications"]] == ["sort"]
    assert printed["measurements"][0]["source"]["tool"] == "fio"
    assert len([*(disk / "out").iterdir()]) == 2
    assert "need a directory" in refusal(tonnage, FIO, SORT, "--output", disk / "out.json")


def test_nothing_is_written_if_a_log_cannot_be_read(tonnage: Tonnage, disk: Path) -> None:
    (disk / "log").write_bytes(b'{"Event":"SparkListenerLogStart"}\n')
    error = refusal(tonnage, SORT, disk / "log", "--output", disk / "out")
    assert f"{disk / 'log'}: expected an event log in which a task has ended" in error
    assert not (disk / "out").exists()


def test_no_log_is_replaced_by_its_record(tonnage: Tonnage, disk: Path) -> None:
    (disk / "log.json").write_bytes(SORT.read_bytes())
    assert "would replace" in refusal(tonnage, disk / "log.json", "--output", disk / "log.json")
    assert (disk / "log.json").read_bytes() == SORT.read_bytes()


def test_the_same_application_twice_is_refused(tonnage: Tonnage, disk: Path) -> None:
    (disk / "again").write_bytes(SORT.read_bytes())
    assert "same application" in refusal(tonnage, SORT, disk / "again", "--output", disk / "out")


def test_a_name_from_a_log_leaves_no_directory(tonnage: Tonnage, disk: Path) -> None:
    with SORT.open("rb") as file:
        text = b"\n".join(lines(file))
    (disk / "log").write_bytes(text.replace(b'"App ID":"', b'"App ID":"../../x'))
    tonnage.run("import", disk / "log", "--output", disk / "out", check=True)
    (only,) = (disk / "out").iterdir()
    assert only.name.startswith("______x")


@pytest.mark.parametrize("content", [b"", b"nothing", b"\x28\xb5\x2f\xfd"])
def test_foreign_files_are_refused_in_a_line(tonnage: Tonnage, disk: Path, content: bytes) -> None:
    (disk / "file").write_bytes(content)
    assert f"{disk / 'file'}: expected " in refusal(tonnage, disk / "file")
    assert str(disk) in refusal(tonnage, disk)


def test_logs_in_an_object_store(tonnage: Tonnage, s3: Bucket) -> None:
    with SORT.open("rb") as file:
        content = [*lines(file)]
    for number, part in enumerate((content[:20], content[20:]), start=1):
        s3.put(
            f"logs/eventlog_v2_a/events_{number}_a.zstd",
            pa.compress(b"\n".join(part), "zstd", asbytes=True),
        )
    s3.put("logs/eventlog_v2_a/appstatus_a", b"")
    s3.put("logs/one.lz4", SORT.read_bytes())
    expected = tonnage.run("import", SORT, check=True).stdout
    where = ("--endpoint-url", s3.endpoint)
    for key in ("logs/one.lz4", "logs/eventlog_v2_a", "logs/eventlog_v2_a/"):
        assert tonnage.run("import", f"s3://{BUCKET}/{key}", *where, check=True).stdout == expected
    error = refusal(tonnage, f"s3://{BUCKET}/logs/", *where)
    assert "expected the parts of one rolling event log" in error
    error = refusal(tonnage, f"s3://{BUCKET}/missing", *where)
    assert f"s3://{BUCKET}/missing" in error


def test_a_log_is_named_where_an_imported_one_is_wanted(tonnage: Tonnage, disk: Path) -> None:
    rolling, table = disk / "rolling log", disk / "runs.csv"
    rolling.mkdir()
    (rolling / "events_1_application_1").write_bytes(b"")
    table.write_text("job,machine_type,nodes,seconds\nnightly,m5.large,2,21\n")
    for command in (
        ("plan", SORT, "--now", "2 x m5.large"),
        ("plan", rolling),
        ("plan", SORT, "--next"),
        ("explore", SORT, "--output", disk / "explore.html"),
        ("report", SORT, "--output", disk / "report.html"),
        ("report", rolling, "--output", disk / "report.html"),
        ("import", table, "--demands", SORT),
    ):
        done = tonnage.run(*command)
        assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
        assert "is an event log of Spark; first tonnage import" in done.stderr
    assert f"{SORT} --output job.json" in done.stderr
    for command in (("plan", table), ("plan", table, "--next"), ("report", table)):
        done = tonnage.run(*command)
        assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
        assert "is a table of past runs, for tonnage plan; first tonnage import" in done.stderr
    assert "tells times alone" in refusal(tonnage, table, "--demands", table)
