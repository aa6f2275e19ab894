"""Tonnage and Hadoop's TeraSort: each accepts the other's output, and the checksums agree."""

import hashlib
import json
from pathlib import Path

import pytest

from support.cli.command import Tonnage
from support.hadoop import tools as hadoop

RECORDS = 50_000

pytestmark = [pytest.mark.slow, pytest.mark.hadoop]


@pytest.mark.real
def test_hadoop_accepts_our_output(disk: Path, tonnage: Tonnage) -> None:
    (disk / "in").mkdir(exist_ok=True)
    tonnage.run("gensort", str(RECORDS), disk / "in" / "part-0", check=True)
    done = tonnage.run(
        *("run", "sort", disk / "in", "--output", disk / "out", "--scratch", disk, "--json"),
        check=True,
    )
    checksum = hadoop.terachecksum(disk / "in")
    assert json.loads(done.stdout)["checksum"] == checksum
    assert hadoop.teravalidate(disk / "out") == hadoop.Validation(True, checksum, [])


def test_we_accept_hadoops_output(disk: Path, tonnage: Tonnage) -> None:
    hadoop.teragen(RECORDS, disk / "in")
    hadoop.terasort(disk / "in", disk / "out", reducers=3)
    found = json.loads(tonnage.run("valsort", disk / "out", "--json", check=True).stdout)
    assert found["records"] == RECORDS
    assert found["unordered"] == 0
    assert found["checksum"] == hadoop.terachecksum(disk / "in")

    unsorted = tonnage.run("valsort", disk / "in", "--json")
    assert unsorted.returncode == 1
    assert json.loads(unsorted.stdout)["checksum"] == found["checksum"]


def test_both_sort_the_same_input_alike(disk: Path, tonnage: Tonnage) -> None:
    hadoop.teragen(RECORDS, disk / "in")
    hadoop.terasort(disk / "in", disk / "theirs", reducers=2)
    tonnage.run(
        *("run", "sort", disk / "in", "--output", disk / "ours", "--scratch", disk), check=True
    )
    # Keys of random records differ, so there is one right answer.
    assert _whole(disk / "ours") == _whole(disk / "theirs")


@pytest.mark.parametrize("start", [0, 1_000_000_007, (1 << 64) - 500])
def test_gensort_makes_hadoops_records(disk: Path, tonnage: Tonnage, start: int) -> None:
    for ascii_records in (True, False):
        hadoop.gensort(1000, disk / "theirs", ascii=ascii_records, start=start)
        kind = ["--ascii"] if ascii_records else []
        tonnage.run(*("gensort", "1000", disk / "ours", "--start", str(start), *kind), check=True)
        ours, theirs = (disk / "ours").read_bytes(), (disk / "theirs").read_bytes()
        if ascii_records:
            assert ours == theirs
        else:
            # Hadoop's binary payload is its own; the keys are the sort benchmark's.
            assert _keys(ours) == _keys(theirs)
            assert ours != theirs
        (disk / "theirs").unlink()


def _keys(records: bytes) -> list[bytes]:
    return [records[at : at + 10] for at in range(0, len(records), 100)]


def _whole(directory: Path) -> str:
    parts = sorted(directory.glob("part-*"))
    return hashlib.sha256(b"".join(part.read_bytes() for part in parts)).hexdigest()
