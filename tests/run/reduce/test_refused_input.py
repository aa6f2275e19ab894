"""Unusable input is named, nothing is written, and the exit code tells it."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from support.cli.command import Tonnage
from support.stores.s3 import BUCKET, Bucket
from tonnage import Reduction
from tonnage.api.testing import check_reduction

pytestmark = pytest.mark.slow

KMEANS = ("run", "reduce", "kmeans", "--k", "3")
PAGERANK = ("run", "reduce", "pagerank", "--tolerance", "1e-13", "--json")


def refused(tonnage: Tonnage, room: Path, code: int, *args: Any, **more: Any) -> str:
    """What the command says, when it ends with this code and leaves all as it was."""
    before = {path: path.read_bytes() for path in room.rglob("*") if path.is_file()}
    done = tonnage.run(*args, **more)
    assert (done.returncode, done.stdout) == (code, ""), done.stderr
    assert {path: path.read_bytes() for path in room.rglob("*") if path.is_file()} == before
    assert "Traceback" not in done.stderr
    return done.stderr


@pytest.mark.parametrize("command", [("index",), KMEANS])
def test_rows_that_do_not_divide_a_file(
    tonnage: Tonnage, disk: Path, command: tuple[str, ...]
) -> None:
    np.zeros((10, 3)).tofile(disk / "a")
    (disk / "b").write_bytes(bytes(100))
    said = refused(tonnage, disk, 2, *command, disk, "--dtype", "3f8")
    assert f"{disk}/b" in said and "4 extra bytes at offset 96" in said


@pytest.mark.parametrize("command", [("index",), KMEANS])
def test_a_file_of_another_schema(tonnage: Tonnage, disk: Path, command: tuple[str, ...]) -> None:
    pq.write_table(pa.table({"x": [1.0, 2.0], "y": [3.0, 4.0]}), disk / "a.parquet")
    pq.write_table(pa.table({"x": [1.0, 2.0], "z": ["3", "4"]}), disk / "b.parquet")
    said = refused(tonnage, disk, 2, *command, disk)
    assert f"{disk}/b.parquet" in said
    assert "x: double, z: string" in said and "x: double, y: double" in said


def test_columns_without_numbers_and_columns_that_do_not_exist(
    tonnage: Tonnage, disk: Path
) -> None:
    pq.write_table(pa.table({"x": [1.0, 2.0], "z": ["3", "4"]}), disk / "b.parquet")
    run = ("run", "reduce", "histogram", disk)
    said = refused(tonnage, disk, 2, *run)
    assert f"{disk}/b.parquet" in said and "--columns: column z is not numeric" in said
    said = refused(tonnage, disk, 2, *run, "--columns", "x,w")
    assert "--columns: there is no column w; the columns are x, z" in said
    assert "rows" in tonnage.run(*run, "--columns", "x", check=True).stdout


@pytest.mark.parametrize("command", [("index",), KMEANS])
def test_a_folder_of_nothing(tonnage: Tonnage, s3: Bucket, command: tuple[str, ...]) -> None:
    url = f"s3://{BUCKET}/nothing-here/"
    done = tonnage.run(*command, url, "--dtype", "3f8", "--endpoint-url", s3.endpoint)
    assert (
        done.returncode == 2
        and url[:-1] in done.stderr
        and "no object has this name" in done.stderr
    )
    assert not s3.content("nothing-here")


@pytest.mark.parametrize("command", [("index",), KMEANS])
def test_files_of_nothing(tonnage: Tonnage, disk: Path, command: tuple[str, ...]) -> None:
    (disk / "a").touch()
    if command == KMEANS:
        said = refused(tonnage, disk, 2, *command, disk, "--dtype", "3f8")
        assert "the inputs contain no rows" in said
    else:
        told = tonnage.run(*command, disk, "--dtype", "3f8", "--json", check=True)
        assert json.loads(told.stdout)["rows"] == 0


@pytest.mark.parametrize("command", [("index",), KMEANS])
def test_no_permission(tonnage: Tonnage, s3: Bucket, command: tuple[str, ...]) -> None:
    s3.put("closed/a", bytes(240))
    done = tonnage.run(
        *command,
        f"s3://{BUCKET}/closed/",
        "--dtype",
        "3f8",
        "--endpoint-url",
        s3.endpoint,
        env={"AWS_SECRET_ACCESS_KEY": "another secret"},
    )
    assert done.returncode == 2 and done.stdout == "" and "Traceback" not in done.stderr
    assert BUCKET in done.stderr and "AWS_ACCESS_KEY_ID" in done.stderr, done.stderr
    assert [*s3.content("closed")] == ["a"]


@pytest.mark.parametrize("place", [0, 7, 2999])
def test_a_point_that_is_none(tonnage: Tonnage, disk: Path, place: int) -> None:
    """Wherever it is: those that first centres are drawn of are no others."""
    rows = np.random.default_rng(1).normal(size=(3000, 3))
    rows[place, 1] = np.nan
    np.save(disk / "a.npy", rows)
    said = refused(tonnage, disk, 1, *KMEANS, disk, "--chunk-size", "24kB")
    first = place // 1000 * 1000
    assert f"{disk}/a.npy, 24000 bytes at offset {128 + 24 * first}" in said
    assert f"row {place - first} of this chunk, " in said and "is not finite" in said


def test_a_line_that_is_none_of_the_columns(tonnage: Tonnage, disk: Path) -> None:
    (disk / "a.csv").write_text("x,y\n" + "1,2\n" * 400_000 + "1,two\n" + "3,4\n")
    said = refused(tonnage, disk, 1, "run", "reduce", "histogram", disk, "--chunk-size", "100kB")
    assert f"{disk}/a.csv" in said and "two" in said and "use Parquet" in said


@pytest.mark.parametrize("job", [("index",), ("run", "reduce", "histogram"), KMEANS])
@pytest.mark.parametrize("broken", ['{"x":', '{"x": 3'])
def test_json_whose_last_line_is_broken(
    tonnage: Tonnage, disk: Path, job: tuple[str, ...], broken: str
) -> None:
    (disk / "a.jsonl").write_text('{"x": 1}\n{"x": 2}\n' + broken)
    said = refused(tonnage, disk, 2, *job, disk / "a.jsonl")
    assert f"{disk}/a.jsonl is not a valid json file" in said and "line 3 of the file" in said


def test_json_that_is_broken_far_from_its_beginning(tonnage: Tonnage, disk: Path) -> None:
    (disk / "a.jsonl").write_text('{"x": 1}\n' * 200_000 + '{"x":')
    for job in (("histogram",), ("kmeans", "--k", "1")):
        run = ("run", "reduce", *job, disk / "a.jsonl", "--chunk-size", "100kB")
        said = refused(tonnage, disk, 1, *run)
        assert f"rows failed for {disk}/a.jsonl, " in said and "JSON parse error" in said


def test_columns_of_rows_without_names(tonnage: Tonnage, disk: Path) -> None:
    np.zeros((4, 2)).tofile(disk / "rows")
    run = ("run", "reduce", "histogram", disk, "--columns", "x", "--dtype")
    said = refused(tonnage, disk, 2, *run, "2f8")
    assert "--columns: the rows' columns have no names" in said
    tonnage.run(*run, "x:f8,y:f8", check=True)


def test_columns_that_first_centres_cannot_be_drawn_of(tonnage: Tonnage, disk: Path) -> None:
    pq.write_table(pa.table({"x": [1.0, 2.0], "z": ["3", "4"]}), disk / "b.parquet")
    said = refused(tonnage, disk, 2, *KMEANS, disk)
    assert "--columns: column z is not numeric; select numeric columns" in said


@pytest.mark.parametrize("format", ["csv", "json"])
def test_what_is_no_text_is_not_printed(tonnage: Tonnage, disk: Path, format: str) -> None:
    draw = np.random.default_rng(1)
    (disk / "binary").write_bytes(draw.bytes(100_000))
    run = ("run", "reduce", "histogram", "--input-format", format)
    said = refused(tonnage, disk, 2, *run, disk / "binary")
    assert f"input {disk}/binary" in said and ("not a valid json" in said or "not text" in said)
    # Where only the beginning is text.
    text = {"csv": b"x,y\n" + 300_000 * b"1,2\n", "json": 150_000 * b'{"x": 1}\n'}[format]
    (disk / "half").write_bytes(text + draw.bytes(2000))
    more = refused(tonnage, disk, 1, *run, disk / "half")
    for each in (said, more):
        assert all(line.isprintable() for line in each.splitlines()) and len(each) < 1000


def ranks(tonnage: Tonnage, room: Path, edges: list[list[int]]) -> dict[int, float]:
    """Ranks of nodes, by the command."""
    np.array(edges, np.int32).tofile(room / "edges")
    done = tonnage.run(*PAGERANK, room / "edges", "--dtype", "2i4", check=True)
    told = json.loads(done.stdout)["result"]
    assert told["edges"] == len(edges)
    return dict(told["first"])


def test_a_graph_of_parts_that_are_apart(tonnage: Tonnage, disk: Path) -> None:
    found = ranks(tonnage, disk, [[0, 1], [1, 0], [6, 7], [7, 6]])
    assert found == pytest.approx({0: 0.25, 1: 0.25, 6: 0.25, 7: 0.25})


def test_a_graph_whose_nodes_point_nowhere(tonnage: Tonnage, disk: Path) -> None:
    found = ranks(tonnage, disk, [[0, 1], [0, 2]])
    # What 1 and 2 have goes to all: of 0 it is r = 0.15 / 3 + 0.85 * (1 - r) / 3.
    least = (0.15 + 0.85) / 3 / (1 + 0.85 / 3)
    rest = (1 - least) / 2
    assert found == pytest.approx({0: least, 1: rest, 2: rest})


def test_an_edge_that_is_none(tonnage: Tonnage, disk: Path) -> None:
    np.array([[0, 1], [3, -5]], np.int32).tofile(disk / "edges")
    said = refused(tonnage, disk, 1, *PAGERANK, disk / "edges", "--dtype", "2i4")
    assert f"{disk}/edges" in said and "row 1 of this chunk is [3, -5]" in said
    (disk / "edges").write_bytes(b"")
    said = refused(tonnage, disk, 2, *PAGERANK, disk / "edges", "--dtype", "2i4")
    assert "there are no edges" in said


class Sums(Reduction[dict[str, float]]):
    """Sums of rows, written out."""

    def begin(self, known: Any) -> dict[str, float]:
        return {"sum": 0.0}

    def local(self, rows: Any, into: dict[str, float]) -> dict[str, float]:
        return {"sum": into["sum"] + float(rows.sum())}

    def merge(self, one: dict[str, float], other: dict[str, float]) -> dict[str, float]:
        return {"sum": one["sum"] + other["sum"]}


class Forgets(Sums):
    """Drops what the other has."""

    def merge(self, one: dict[str, float], other: dict[str, float]) -> dict[str, float]:
        return one


class Subtracts(Sums):
    """One less the other: it matters which is which."""

    def merge(self, one: dict[str, float], other: dict[str, float]) -> dict[str, float]:
        return {"sum": one["sum"] - other["sum"]}


class Counts(Sums):
    """Chunks, and not rows."""

    def local(self, rows: Any, into: dict[str, float]) -> dict[str, float]:
        return {"sum": into["sum"] + 1}


def test_a_merge_that_depends_on_the_order_is_found() -> None:
    rows = np.random.default_rng(1).normal(size=(300, 2))
    assert check_reduction(Sums(), rows)["sum"] == pytest.approx(rows.sum())
    for wrong in (Forgets(), Subtracts(), Counts()):
        with pytest.raises(AssertionError, match=r"depends on the order .*the result.sum is"):
            check_reduction(wrong, rows)


class Held:
    """An object that says nothing of when it equals another."""

    def __init__(self) -> None:
        self.sum, self.of = np.zeros(2), SimpleNamespace(rows=np.zeros(1))


class InAnObject(Reduction[Held]):
    """Sums of columns, in an object of a user's class."""

    def begin(self, known: Any) -> Held:
        return Held()

    def local(self, rows: Any, into: Held) -> Held:
        into.sum += rows.sum(axis=0)
        into.of.rows += len(rows)
        return into

    def merge(self, one: Held, other: Held) -> Held:
        one.sum += other.sum
        one.of.rows += other.of.rows
        return one


class Loses(InAnObject):
    """Drops what the other has."""

    def merge(self, one: Held, other: Held) -> Held:
        return one


def test_objects_of_any_class_are_compared_by_what_they_hold() -> None:
    rows = np.random.default_rng(1).normal(size=(300, 2))
    assert check_reduction(InAnObject(), rows).of.rows == 300
    with pytest.raises(AssertionError, match=r"depends on the order .*the result\.(sum|of) is"):
        check_reduction(Loses(), rows)
