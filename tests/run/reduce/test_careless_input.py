"""Careless reductions and inputs: the job ends, and tells what was wrong."""

from __future__ import annotations

import datetime
import json
import os
import pickle
import re
import threading
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tonnage
from support.cli.command import Tonnage
from support.cluster.checksums import COLUMNS, Checksum, Rows, put, rows_of
from support.cluster.machines import Machines
from support.cluster.reducers import asked
from support.data.copies import replace
from support.data.reductions import record
from support.stores.s3 import BUCKET, Bucket
from tonnage import Reduction
from tonnage.api.testing import check_reduction
from tonnage.base import core
from tonnage.cli.output.reduction import reduction_lines
from tonnage.run.formats import chunk_format
from tonnage.run.reduce.builtin.kmeans import KMeans
from tonnage.run.reduce.builtin.pagerank import PageRank, node_bytes
from tonnage.run.reduce.builtin.scatter import Scatter
from tonnage.run.reduce.cluster.driver import reduce_on_cluster
from tonnage.run.reduce.cluster.inputs import _merge_indexes
from tonnage.run.reduce.cluster.messages import ChunksFound
from tonnage.run.reduce.index import build_index, from_bytes, to_bytes
from tonnage.run.reduce.result_json import as_json
from tonnage.run.storage.object_store import ObjectStoreOptions
from tonnage.run.storage.sources import InputFile, Sources
from tonnage.run.two_pass.job_dir import FatalJobError
from tonnage.run.two_pass.splits import object_id

pytestmark = pytest.mark.slow

ROWS = 4096
SECONDS = 60
"""Who has not ended then hangs."""


def ended(work: Callable[[], Any]) -> BaseException | None:
    """What a call raised, which is to end."""
    found: list[BaseException] = []

    def do() -> None:
        try:
            work()
        except BaseException as why:
            found.append(why)

    thread = threading.Thread(target=do, daemon=True)
    thread.start()
    thread.join(SECONDS)
    assert not thread.is_alive(), "it hangs"
    return found[0] if found else None


def laid(directory: Path, count: int = ROWS) -> Path:
    """Rows in a file."""
    rows = np.arange(float(count * COLUMNS)).reshape(-1, COLUMNS)
    rows.tofile(directory / "rows")
    return directory / "rows"


class FailsOnce(Checksum):
    """Fails at one chunk, while others wait for the next."""

    def local(self, rows: Rows, into: dict[str, int]) -> dict[str, int]:
        if rows[0, 0] == 0:
            raise ValueError("that one")
        return super().local(rows, into)


class Keeps(Reduction[list[Any]]):
    """Keeps views of rows."""

    def begin(self, known: Any) -> list[Any]:
        return []

    def local(self, rows: npt.NDArray[Any], into: list[Any]) -> list[Any]:
        return [*into, rows[:1]]

    def merge(self, one: list[Any], other: list[Any]) -> list[Any]:
        return one + other

    def finish(self, whole: list[Any], known: Any) -> float:
        return float(sum(each.sum() for each in whole))


class Writes(Checksum):
    """Changes a file that is read."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._path = path

    def local(self, rows: Rows, into: dict[str, int]) -> dict[str, int]:
        os.utime(self._path, ns=(1, 1))
        return super().local(rows, into)


class Fails(Checksum):
    """Fails in one of its functions."""

    def __init__(self, where: str) -> None:
        super().__init__()
        self._where = where

    def merge(self, one: dict[str, int], other: dict[str, int]) -> dict[str, int]:
        if self._where == "merge":
            raise ValueError("not these two")
        return super().merge(one, other)

    def until(self, result: Any, known: Any, rounds: int) -> bool:
        if self._where == "until":
            raise ValueError("who knows")
        return super().until(result, known, rounds)

    def summary(self, result: Any) -> Any:
        if self._where == "summary":
            raise ValueError("no words")
        return super().summary(result)


@pytest.mark.parametrize("workers", [1, 8])
def test_one_that_fails_ends_those_that_wait(disk: Path, workers: int) -> None:
    row = 8 * COLUMNS
    why = ended(
        lambda: tonnage.reduce(
            FailsOnce(),
            laid(disk),
            dtype=f"{COLUMNS}f8",
            workers=workers,
            chunk_bytes=ROWS // 8 * row,
            memory=3 * (ROWS // 8 * row + 8192),
        )
    )
    assert isinstance(why, core.RunError) and "ValueError: that one" in why.args[0]


def test_rows_that_are_kept_end_it_when_memory_does(disk: Path) -> None:
    path, row = laid(disk), 8 * COLUMNS

    def of(memory: int) -> Callable[[], Any]:
        more: dict[str, Any] = {"dtype": f"{COLUMNS}f8", "workers": 2, "memory": memory}
        return lambda: tonnage.reduce(Keeps(), path, chunk_bytes=64 * row, **more)

    why = ended(of(1 << 16))
    assert (
        isinstance(why, core.RunError) and "copy the rows that it needs to keep" in why.args[0]
    ), why
    assert ended(of(1 << 22)) is None
    with pytest.raises(AssertionError, match="depends on the order"):
        check_reduction(Keeps(), np.fromfile(path).reshape(-1, COLUMNS))


def test_a_file_that_is_changed_meanwhile_is_named(disk: Path) -> None:
    path = laid(disk)
    with pytest.raises(core.RunError, match=r"rows was changed while it was read"):
        tonnage.reduce(Writes(path), path, dtype=f"{COLUMNS}f8")


@pytest.mark.parametrize("where", ["merge", "until", "summary"])
def test_what_fails_after_all_rows_is_told(
    disk: Path, tmp_path: Path, s3: Bucket, where: str
) -> None:
    with pytest.raises(core.RunError, match=f"{where} failed for .*ValueError"):
        tonnage.reduce(Fails(where), laid(disk), dtype=f"{COLUMNS}f8", workers=2)
    put(s3)
    job = asked(Fails(where), [f"s3://{BUCKET}/in/"], s3)
    why = ended(lambda: reduce_on_cluster(Machines("a", "b", "c"), tmp_path / "job", job))
    assert isinstance(why, FatalJobError) and f"{where} failed for" in why.args[0], why


def test_what_was_begun_otherwise_is_not_gone_on_with(tmp_path: Path, s3: Bucket) -> None:
    put(s3)
    for rounds in (1, 2):
        job = asked(Checksum(rounds), [f"s3://{BUCKET}/in/"], s3)
        if rounds == 1:
            reduce_on_cluster(Machines("a"), tmp_path / "job", job)
        else:
            with pytest.raises(core.UsageError, match=r"not .*; use the original value to resume"):
                reduce_on_cluster(Machines("a"), tmp_path / "job", job)


def test_files_that_are_named_twice_are_refused(tonnage: Tonnage, disk: Path) -> None:
    path = laid(disk)
    (disk / "again").symlink_to(path)
    for more in (path, disk / "again"):
        said = tonnage.run(
            "run", "reduce", "pca", disk, more, "--dtype", "3f8", "--components", "1"
        )
        assert said.returncode == 2 and "pass it only once" in said.stderr, said.stderr


def test_a_file_by_a_path_that_is_not_the_shortest_has_an_index(
    tonnage: Tonnage, disk: Path
) -> None:
    laid(disk)
    for name in ("./rows", "rows", f"{disk}//rows"):
        tonnage.run("index", name, "--dtype", "3f8", cwd=disk, check=True)
    assert [each.name for each in disk.glob("_*")] == ["_rows.index"]


def test_indexes_of_several_inputs_count_together(tonnage: Tonnage, disk: Path) -> None:
    for name in "ab":
        (disk / name).mkdir()
        laid(disk / name)
        index = ("index", disk / name, "--chunk-size", str(8 * COLUMNS * 512), "--dtype", "3f8")
        tonnage.run(*index, check=True)
    run = ("run", "reduce", "pca", disk / "a", disk / "b", "--components", "1", "--json")
    told = json.loads(tonnage.run(*run, check=True).stdout)
    assert told["chunks"] == 2 * ROWS // 512


def test_row_groups_without_rows_are_no_chunks(tonnage: Tonnage, disk: Path) -> None:
    table = pa.table({"x": [1.0, 2.0], "y": [True, False]})
    pq.write_table(table, disk / "a.parquet")
    for number, dictionary in enumerate([True, False]):
        pq.write_table(table[:0], disk / f"b{number}.parquet", use_dictionary=dictionary)
    run = ("run", "reduce", "histogram", disk, "--columns", "x", "--json")
    told = json.loads(tonnage.run(*run, check=True).stdout)
    assert told["result"][0]["rows"] == 2


def test_results_that_are_no_numbers_are_json(tonnage: Tonnage, disk: Path) -> None:
    np.array([[np.nan, 1.0], [np.inf, 2.0]]).tofile(disk / "rows")
    said = tonnage.run("run", "reduce", "histogram", disk, "--dtype", "2f8", "--json", check=True)

    def refuse(name: str) -> None:
        raise AssertionError(f"{name} is no JSON")

    first, second = json.loads(said.stdout, parse_constant=refuse)["result"]
    assert (first["least"], first["most"], first["missing"]) == (None, None, 2)
    assert (second["least"], second["most"]) == (1.0, 2.0)


def test_a_node_that_asks_for_more_memory_than_there_is(tonnage: Tonnage, disk: Path) -> None:
    np.array([[0, 1], [1, 50_000_000]], np.int32).tofile(disk / "edges")
    run = ("run", "reduce", "pagerank", disk / "edges", "--dtype", "2i4", "--workers", "2")
    said = tonnage.run(*run, "--memory", "64MiB")
    assert (said.returncode, said.stdout) == (1, "")
    most = -(-50_000_001 * node_bytes(2) // (1 << 20))
    assert "the largest node number is 50000000, so the arrays" in said.stderr
    assert f"use {2 * most}MiB of memory" in said.stderr and f"{disk}/edges" in said.stderr


@pytest.mark.parametrize("workers", [1, 3])
def test_a_graph_takes_no_more_than_is_counted(workers: int) -> None:
    nodes = 500_000
    edges = np.array([[0, nodes // 2], [nodes // 2, nodes - 1], [nodes - 1, 0]])
    ranks, known = PageRank(tolerance=0.0), None
    tracemalloc.start()
    try:
        for _ in range(3):
            wholes = [ranks.begin(known) for _ in range(workers)]
            for edge in edges:
                wholes = [ranks.local(edge[None], whole) for whole in wholes]
            whole = wholes.pop()
            while wholes:
                whole = ranks.merge(whole, wholes.pop())
            known = ranks.finish(whole, known)
            del whole
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert known.ranks.sum() == pytest.approx(1)
    assert nodes * 25 < most < nodes * node_bytes(workers) + (1 << 20)


def test_what_all_workers_have_is_not_sent_along() -> None:
    ranks = PageRank()
    edges = np.array([[0, 9_999], [9_999, 0]])
    known = ranks.finish(ranks.local(edges, ranks.begin(None)), None)
    one, other = (ranks.local(edges, ranks.begin(known)) for _ in range(2))
    assert one.share is other.share
    sent = pickle.dumps(other)
    assert other.rank.nbytes < len(sent) < other.rank.nbytes + 1000
    assert len(pickle.dumps(known)) < 17 * len(known.ranks) + 1000
    whole = ranks.merge(one, pickle.loads(sent))
    np.testing.assert_array_equal(ranks.finish(whole, known).ranks[[0, 9_999]], [0.925, 0.925])


class Replaces(Checksum):
    """Writes another file than the one that it is reducing, at once."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._path = path

    def local(self, rows: Rows, into: dict[str, int]) -> dict[str, int]:
        if not into["rows"]:
            (-rows_of(1, 2 * ROWS)).tofile(self._path)
        return super().local(rows, into)


def test_a_file_that_is_changed_before_it_is_read_is_named(disk: Path) -> None:
    for name in "ab":
        rows_of(0, ROWS).tofile(disk / name)
    kind = {"dtype": f"{COLUMNS}f8", "assignment": "sequential", "workers": 1, "chunk_bytes": 4096}
    with pytest.raises(core.RunError, match=r"b was changed while it was read"):
        tonnage.reduce(Replaces(disk / "b"), [disk / "a", disk / "b"], memory=16384, **kind)


def test_a_file_that_two_inputs_of_a_fleet_have_is_refused(tmp_path: Path) -> None:
    for name in "xy":
        (tmp_path / name).mkdir()
    rows_of(0, ROWS).tofile(tmp_path / "x" / "rows")
    (tmp_path / "y" / "same").symlink_to(tmp_path / "x" / "rows")
    job = asked(Checksum(), [str(tmp_path / "x"), str(tmp_path / "y")])
    with pytest.raises(core.UsageError, match="pass it only once"):
        reduce_on_cluster(Machines("a"), tmp_path / "job", job)


def test_an_index_is_true_however_its_directory_is_named(tonnage: Tonnage, disk: Path) -> None:
    (disk / "d").mkdir()
    laid(disk / "d")
    made = ("index", "d", "--dtype", "3f8", "--chunk-size", str(8 * COLUMNS * 512))
    tonnage.run(*made, cwd=disk, check=True)
    for name in ("d", "./d/", str(disk / "d"), "../" + disk.name + "/d"):
        run = ("run", "reduce", "pca", name, "--components", "1", "--json")
        told = json.loads(tonnage.run(*run, cwd=disk, check=True).stdout)
        assert told["chunks"] == ROWS // 512, name
    (disk / "d").rename(disk / "e")
    again = ("index", "e", "--dtype", "3f8", "--json")
    assert json.loads(tonnage.run(*again, cwd=disk, check=True).stdout)["known"] == 1


def test_what_an_index_says_is_not_said_otherwise(tonnage: Tonnage, disk: Path) -> None:
    laid(disk)
    place = disk / "_rows.index"
    tonnage.run("index", disk / "rows", "--dtype", "3f8", check=True)
    run = ("run", "reduce", "pca", disk / "rows", "--components", "1", "--json")
    for flags in (
        ("--dtype", "f8"),
        ("--dtype", "3f4"),
        ("--chunk-size", "1MiB", "--dtype", "f8"),
    ):
        said = tonnage.run(*run, *flags)
        assert (said.returncode, said.stdout) == (2, "")
        assert f"{place} was made for rows 3<f8, not rows" in said.stderr, said.stderr
        assert "or index again with them" in said.stderr
    # The same type, or chunks of another size alone, are no contradiction.
    for flags in (("--dtype", "3f8"), ("--chunk-size", str(8 * COLUMNS * 512))):
        told = json.loads(tonnage.run(*run, *flags, check=True).stdout)
        assert told["rows"] == ROWS and told["settings"]["format"]["dtype"] == "3<f8"
    assert told["chunks"] >= ROWS // 512
    tonnage.run("index", disk / "rows", "--dtype", "f8", check=True)
    assert json.loads(tonnage.run(*run, check=True).stdout)["rows"] == COLUMNS * ROWS
    # An index of what was there before says nothing.
    laid(disk, ROWS // 2)
    told = json.loads(tonnage.run(*run, "--dtype", "3f8", check=True).stdout)
    assert told["rows"] == ROWS // 2


def test_objects_without_an_etag_are_cut_anew() -> None:
    sources, kind = Sources(ObjectStoreOptions(), 1), chunk_format("rows", "f8")
    known, unknown = InputFile("s3://b/known", 80, '"1"'), InputFile("s3://b/unknown", 80)
    files = [known, unknown]
    index = build_index(files, kind, 40, sources)
    again = build_index(files, kind, 80, sources, from_bytes(to_bytes(index), "it"))
    assert again.known == 1
    assert [(files[each.file], each.bytes) for each in again.chunks] == [
        (known, 40),
        (known, 40),
        (unknown, 80),
    ]


def test_machines_make_no_etag_up() -> None:
    known, unknown = InputFile("s3://b/known", 80, '"1"'), InputFile("s3://b/unknown", 80)
    index = build_index(
        [known, unknown], chunk_format("rows", "f8"), 40, Sources(ObjectStoreOptions(), 1)
    )
    files = [object_id(each.name, each.bytes, each.version) for each in (known, unknown)]
    found = _merge_indexes({"a": ChunksFound(to_bytes(index), files, [], 1)})
    assert {each.name: each.version for each in found.index.files} == {
        known.name: '"1"',
        unknown.name: None,
    }


def test_memory_that_holds_no_two_row_groups(tonnage: Tonnage, disk: Path) -> None:
    draw = np.random.default_rng(1).normal(size=500_000)
    pq.write_table(pa.table({"x": draw}), disk / "a.parquet", compression="none")
    run = ("run", "reduce", "histogram", disk / "a.parquet", "--memory")
    said = tonnage.run(*run, "4MiB")
    assert said.returncode == 2 and "are not enough for two chunks of" in said.stderr
    assert "--chunk-size" not in said.stderr
    found = re.search(r"use (\d+MiB), or write files with smaller row groups", said.stderr)
    assert found, said.stderr
    tonnage.run(*run, found[1], check=True)


def test_the_record_tells_where_the_store_was(tonnage: Tonnage, disk: Path) -> None:
    run = ("run", "reduce", "histogram", laid(disk), "--dtype", "3f8", "--json")
    said = tonnage.run(*run, env={"AWS_ENDPOINT_URL": "http://127.0.0.1:9"}, check=True)
    assert json.loads(said.stdout)["settings"]["endpoint"] == "http://127.0.0.1:9"


def test_rows_that_nobody_counted_are_not_none_rows() -> None:
    made = record([], 100, 1.0, None, None)
    assert reduction_lines(replace(made, rows=None))[0].startswith("an unknown number of rows, ")
    assert reduction_lines(replace(made, rows=7))[0].startswith("7 rows, ")


def test_results_of_any_kind_are_json() -> None:
    day = np.datetime64("2026-01-02T03:04:05.000000001")
    odd = {
        "days": np.array([day, "NaT"], "M8[ns]"),
        "day": day,
        "date": datetime.date(2026, 1, 2),
        "complex": np.array([1 + 2j]),
        "bytes": np.array([b"x"]),
        "fields": np.array([(1, np.nan)], [("a", "i4"), ("b", "f8")]),
        "objects": np.array([None, {"a": np.inf}], object),
    }
    told = json.loads(json.dumps(as_json(odd), allow_nan=False))
    assert told["days"] == ["2026-01-02T03:04:05.000000001", "NaT"]
    assert (told["day"], told["date"]) == ("2026-01-02T03:04:05.000000001", "2026-01-02")
    assert (told["complex"], told["fields"]) == (["(1+2j)"], [[1, None]])
    assert told["objects"] == [None, {"a": None}]


class Averages(Reduction[dict[str, Any]]):
    """A mean of columns, of rows that are an array."""

    def begin(self, known: Any) -> dict[str, Any]:
        return {"sum": 0.0, "rows": 0}

    def local(self, rows: Any, into: dict[str, Any]) -> dict[str, Any]:
        return {"sum": into["sum"] + rows.sum(axis=0), "rows": into["rows"] + len(rows)}

    def merge(self, one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
        return {name: one[name] + other[name] for name in one}


class Silent(Averages):
    """Changes the object, and forgets to give it back."""

    def local(self, rows: Any, into: dict[str, Any]) -> Any:
        into["rows"] += len(rows)


class SilentMerge(Averages):
    """The same of two objects."""

    def merge(self, one: dict[str, Any], other: dict[str, Any]) -> Any:
        one["rows"] += other["rows"]


def test_the_line_of_ones_own_code_is_told(disk: Path) -> None:
    (disk / "a.csv").write_text("x,y\n1,2\n3,4\n")
    line = next(place for place, each in source() if "rows.sum(axis=0)" in each)
    with pytest.raises(tonnage.RunError) as raised:
        tonnage.reduce(Averages(), disk / "a.csv")
    said = str(raised.value)
    assert said.startswith(f"local failed for {disk}/a.csv, 8 bytes at offset 4: AttributeError")
    assert "tonnage.as_points makes numbers of them" in said
    assert f'(line {line} of {__file__}: return {{"sum"' in said
    pq.write_table(pa.table({"x": [1.0], "y": [None]}), disk / "b.parquet")
    with pytest.raises(tonnage.UsageError, match="columns: column y is not numeric") as raised:
        tonnage.reduce(Scatter(), disk / "b.parquet")
    assert "(line" not in str(raised.value)  # It is Tonnage's own.


def test_local_and_merge_that_give_nothing_are_named(disk: Path) -> None:
    rows = laid(disk)
    above = next(place for place, each in source() if each.startswith("class Silent("))
    line = above + 3
    with pytest.raises(
        tonnage.RunError, match=rf"Silent.local \(line {line} of .*\) returned None"
    ):
        tonnage.reduce(Silent(), rows, dtype="3f8")
    with pytest.raises(
        tonnage.RunError, match=r"SilentMerge.merge \(line .*\) returned None; return"
    ):
        tonnage.reduce(SilentMerge(), rows, dtype="3f8", workers=2)


def source() -> list[tuple[int, str]]:
    """The lines of this file, by their numbers."""
    return [*enumerate(Path(__file__).read_text().splitlines(), 1)]


def test_errors_are_what_the_package_exports(tmp_path: Path) -> None:
    with pytest.raises(tonnage.UsageError, match="does not exist") as refused:
        tonnage.reduce(Scatter(), tmp_path / "nothing")
    for why in (refused.value, tonnage.RunError("what", "stage", "file", 7)):
        again = pickle.loads(pickle.dumps(why))
        assert (type(again), again.args, str(again)) == (type(why), why.args, why.args[0])
    assert repr(tonnage.RunError) == "<class 'tonnage.RunError'>"


LARGE = [("kmeans", "--k", "3"), ("kmeans", "--k", "1"), ("pca", "--components", "1")]
LARGE += [("regression",)]


@pytest.mark.parametrize("job", LARGE)
@pytest.mark.parametrize("size", [1e155, 1e300])
def test_values_whose_squares_are_no_numbers(
    tonnage: Tonnage, disk: Path, job: tuple[str, ...], size: float
) -> None:
    (size * np.random.default_rng(1).normal(size=(1000, 2))).tofile(disk / "rows")
    said = tonnage.run("run", "reduce", *job, disk / "rows", "--dtype", "2f8")
    assert said.returncode in (1, 2) and said.stdout == ""
    assert "Traceback" not in said.stderr and "Warning" not in said.stderr, said.stderr
    assert "64-bit floats" in said.stderr and "scale" in said.stderr


def test_sums_of_points_that_are_no_numbers() -> None:
    rows = np.full((4, 1), 1e308)
    means = KMeans(rows[:1], 1)
    with pytest.raises(ValueError, match="too many rows, or too large values"):
        means.local(rows, means.begin(None))
    one, other = (means.local(rows[:1], means.begin(None)) for _ in range(2))
    with pytest.raises(ValueError, match="too many rows, or too large values"):
        means.merge(one, other)
    columns = Scatter()
    parts = [columns.local(np.full((2, 1), sign * 1e200), None) for sign in (-1, 1)]
    with pytest.raises(ValueError, match="squared deviations overflow 64-bit floats"):
        columns.merge(*parts)


def test_sums_that_are_larger_than_numbers_are_told() -> None:
    with pytest.raises(ValueError, match="sums overflow 64-bit floats"):
        Scatter().local(np.full((4, 2), 1e308), None)


def test_an_index_of_lines_of_which_nothing_has_changed_is_read_again(
    tonnage: Tonnage, disk: Path
) -> None:
    """There is nothing to cut then, by nobody."""
    (disk / "rows.json").write_text('{"a": 1, "b": 2}\n' * 50)
    index = ["index", disk / "rows.json", "--json"]
    first, again = (json.loads(tonnage.run(*index, check=True).stdout) for _ in range(2))
    assert (first["known"], again["known"]) == (0, 1)
    (disk / "rows.json").write_text('{"b": 2, "a": 1}\n' * 60)  # Keys may come in another order.
    anew = json.loads(tonnage.run(*index, check=True).stdout)
    assert anew["known"] == 0 and anew["rows"] in (60, None)


def test_files_of_0_bytes_are_passed_over(tonnage: Tonnage, disk: Path) -> None:
    pq.write_table(pa.table({"x": [1.0, 2.0]}), disk / "a.parquet")
    for name in ("b.parquet", "no-suffix"):
        (disk / name).touch()
    for command in (("index",), ("run", "reduce", "histogram")):
        done = tonnage.run(*command, disk)
        assert done.returncode == 0, done.stderr


def test_an_index_is_not_data_of_others(tonnage: Tonnage, disk: Path) -> None:
    pq.write_table(pa.table({"x": [1.0, 2.0]}), disk / "a.parquet")
    for place in (disk, disk / "a.parquet"):
        assert tonnage.run("index", place).returncode == 0
    assert [path.name for path in disk.glob("*.parquet")] == ["a.parquet"]
    assert sorted(path.name for path in disk.glob("_*")) == ["_a.parquet.index", "_tonnage.index"]
