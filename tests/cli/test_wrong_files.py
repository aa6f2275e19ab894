"""An error in a file is one line of the command, which names the file and the place."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from support.cli.command import Tonnage
from support.stores.disk import ROOT

RECORDED = ROOT / "tests" / "support" / "recorded" / "artifacts"
DEMAND = ("phases", 0, "demands", 0)
MODE = ("offers", 0, "laws", 0, "modes", 0)
CANDIDATE = ("candidates", 0)
JOB = ("plan", "FILE", "--data", "1TB")
PROFILE = ("plan", "sort", "--data", "1TB", "--profile", "FILE")
LAUNCH = ("launch", "FILE", "--lifetime", "9h", "--dry-run")


def changed(kind: str, place: tuple[str | int, ...], value: object, file: Path) -> Path:
    """A recorded file with another value at one place."""
    document = json.loads((RECORDED / f"{kind}-1.json").read_bytes())
    inner: Any = document
    for step in place[:-1]:
        inner = inner[step]
    inner[place[-1]] = value
    file.write_text(json.dumps(document))
    return file


def refused(tonnage: Tonnage, command: tuple[str, ...], file: Path) -> str:
    done = tonnage.run(*(str(file) if each == "FILE" else each for each in command))
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1), done.stderr
    return done.stderr


@pytest.mark.parametrize(
    ("kind", "command", "place", "value", "expected"),
    [
        ("job", JOB, (*DEMAND, "per_byte"), "two", 'expected number >= 0, got "two"'),
        ("job", JOB, (*DEMAND, "per_byte"), -1, "expected number >= 0, got -1"),
        ("job", JOB, (*DEMAND, "per_byte"), 1e13, "expected number <= 1e+12, got 10000000000000.0"),
        ("job", JOB, (*DEMAND, "resource"), "gpu", 'or "volume write", got "gpu"'),
        ("job", JOB, ("phases",), [], "expected at least 1 entry, got 0"),
        ("job", JOB, ("phases", 1, "name"), "pass 1", "expected a name that no other phase has"),
        ("job", JOB, ("phases", 0, "name"), "start-up", "expected another name, as plans have"),
        ("job", JOB, ("phases", 0, "name"), "interruptions", "expected another name, as plans"),
        ("job", JOB, (*DEMAND, "per_byte"), 1e-300, "expected 0, or at least 1e-18"),
        ("job", JOB, (*DEMAND, "shuffled"), True, "expected false, as"),
        ("profile", PROFILE, (*MODE, "median"), "fast", 'expected number >= 1e-12, got "fast"'),
        ("profile", PROFILE, (*MODE, "instances"), 10**15, "expected int <= 1000000, got"),
        ("profile", PROFILE, ("offers", 0, "placement"), "no", 'expected true or false, got "no"'),
        (
            *("profile", PROFILE, ("offers", 0, "scaling", "points", 1, 0), 2),
            "expected each size once, got 2 again",
        ),
        ("plan", LAUNCH, (*CANDIDATE, "nodes"), "many", 'expected int >= 1, got "many"'),
        ("plan", LAUNCH, (*CANDIDATE, "nodes"), -1, "expected int >= 1, got -1"),
        ("plan", LAUNCH, (*CANDIDATE, "nodes"), 1.5, "expected int >= 1, got 1.5"),
        ("plan", LAUNCH, (*CANDIDATE, "nodes"), 10**6, "expected int <= 100000, got 1000000"),
        ("plan", LAUNCH, ("settings", "include"), 7, "expected an array, got 7"),
        ("plan", LAUNCH, ("settings", "quota_vcpus"), "x", 'got "x"'),
        ("plan", LAUNCH, ("bytes",), "1TB", 'expected int >= 0, got "1TB"'),
    ],
)
def test_a_wrong_value_is_named(
    kind: str,
    command: tuple[str, ...],
    place: tuple[str | int, ...],
    value: object,
    expected: str,
    tonnage: Tonnage,
    tmp_path: Path,
) -> None:
    file = changed(kind, place, value, tmp_path / "given.json")
    text = "$" + "".join(f"[{each}]" if isinstance(each, int) else f".{each}" for each in place)
    assert f"{file}: {text}: " in (said := refused(tonnage, command, file))
    assert expected in said


def test_a_job_that_demands_nothing_is_named(tonnage: Tonnage, tmp_path: Path) -> None:
    file = changed("job", ("phases",), [{"name": "idle", "demands": []}], tmp_path / "job.json")
    assert f"{file}: $.phases: none demands anything" in refused(tonnage, JOB, file)


def test_an_offer_that_its_catalog_lacks_is_named(tonnage: Tonnage, tmp_path: Path) -> None:
    file = changed("plan", (*CANDIDATE, "offer"), "m9.none", tmp_path / "plan.json")
    document = json.loads(file.read_bytes())
    document["candidates"][0]["catalog"] = "aws-us-east-1-2026"
    file.write_text(json.dumps(document))
    assert "has no offer m9.none; plan again" in refused(tonnage, LAUNCH, file)


@pytest.mark.parametrize(
    ("column", "value", "expected"),
    [
        ("length", 400, "no chunk has its last 400 bytes"),
        ("offset", -8, "is not within its 800 bytes"),
        ("length", 1600, "is not within its 800 bytes"),
        ("bytes", -1, "expected a name and a size >= 0, got -1"),
    ],
)
def test_an_index_that_is_not_of_its_file_is_refused(
    column: str, value: int, expected: str, tonnage: Tonnage, tmp_path: Path
) -> None:
    data = tmp_path / "in"
    data.mkdir()
    (data / "rows").write_bytes(bytes(800))
    tonnage.run("index", str(data), "--dtype", "f8", check=True)
    (place,) = data.glob("*.index")
    table = pq.read_table(place)
    at = table.column_names.index(column)
    wrong = table.set_column(at, table.schema.field(at), [[value]])
    run = ("run", "reduce", "histogram", str(data))
    pq.write_table(wrong, place)
    assert f"{place}: the file was changed after it was written" in refused(tonnage, run, data)
    metadata = {name: each for name, each in table.schema.metadata.items() if b"digest" not in name}
    pq.write_table(wrong.replace_schema_metadata(metadata), place)
    assert expected in (said := refused(tonnage, run, data)) and str(place) in said
