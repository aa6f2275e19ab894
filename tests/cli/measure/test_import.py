"""`tonnage import`: results of other tools as measurements, all of them or none."""

import json
from pathlib import Path

from support.cli.command import Tonnage
from support.stores.disk import ROOT
from tonnage.base.records import Measurement

SAMPLES = ROOT / "tests" / "support" / "recorded" / "importers"


FIO = SAMPLES / "fio" / "randread-4k-qd32-iouring.jsonplus.json"
IPERF3 = SAMPLES / "iperf3" / "tcp-1.json"


def test_json_has_what_downstream_reads(tonnage: Tonnage) -> None:
    done = tonnage.run("import", FIO, IPERF3, "--json", check=True)
    found = json.loads(done.stdout)["measurements"]
    assert {reading["source"]["tool"] for reading in found} == {"fio", "iperf3"}
    for reading in found:
        assert {
            *("source", "operation", "block_bytes", "direct", "concurrency"),
            *("bandwidth_bytes_per_second", "operations_per_second", "latency_seconds"),
        } <= set(reading)
        assert {"mean", "p50", "p90", "p99", "p999", "max"} <= set(reading["latency_seconds"])


def test_each_file_is_kept_as_a_measurement(tonnage: Tonnage, disk: Path) -> None:
    done = tonnage.run("import", FIO, "--output", disk / "out", check=True)
    assert done.stdout.startswith("fio")
    (kept,) = (disk / "out").iterdir()
    measurement = Measurement.read(kept)
    assert measurement.kind == "import" and measurement.environment is None
    assert measurement.readings == measurement.imported != []
    assert len(measurement.scorecard) == 6


def test_nothing_is_kept_when_one_file_is_no_result(tonnage: Tonnage, disk: Path) -> None:
    whole = FIO.read_bytes()
    (disk / "cut.json").write_bytes(whole[: len(whole) // 2])
    done = tonnage.run("import", FIO, disk / "cut.json", "--output", disk / "out", "--json")
    assert (done.returncode, done.stdout) == (2, "")
    assert len(done.stderr.splitlines()) == 1
    assert f"{disk / 'cut.json'}: expected" in done.stderr
    assert not (disk / "out").exists()


def test_the_same_file_is_the_same_measurement(tonnage: Tonnage, disk: Path) -> None:
    (disk / "again.json").write_bytes(FIO.read_bytes())
    for out, file in {"first": FIO, "second": disk / "again.json"}.items():
        tonnage.run("import", file, "--output", disk / out, check=True)
    tonnage.run("import", IPERF3, "--output", disk / "other", check=True)
    first, second, other = (
        [path.name for path in (disk / out).iterdir()] for out in ("first", "second", "other")
    )
    assert first == second != other
    said = tonnage.run("report", disk / "first", disk / "second", cwd=disk)
    assert said.returncode == 2 and "pass only one" in said.stderr


def test_how_many_rules_are_kept_is_told_of_each_file(tonnage: Tonnage) -> None:
    lines = tonnage.run("import", FIO, IPERF3, check=True).stdout.splitlines()
    told = [line for line in lines if line.endswith(" of the 6 rules of Cloud Truth.")]
    assert [line.partition(": Meets ")[0] for line in told] == [str(FIO), str(IPERF3)]
