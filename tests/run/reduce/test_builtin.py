"""Built-in reductions give the same results as NumPy over all rows, in any order."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.csv as pcsv
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as some

from support.cli.command import Tonnage
from support.stores.s3 import BUCKET, Bucket
from tonnage import Reduction, reduce
from tonnage.api.testing import check_reduction
from tonnage.base import core
from tonnage.run.formats import dtype_text, parse_dtype
from tonnage.run.reduce.builtin.histogram import Histograms
from tonnage.run.reduce.builtin.kmeans import KMeans, first_centres
from tonnage.run.reduce.builtin.pagerank import PageRank, PageRanks, RankSums
from tonnage.run.reduce.builtin.pca import PCA
from tonnage.run.reduce.builtin.regression import Regression

Points = npt.NDArray[np.float64]


def points(seed: int, rows: int = 3000, columns: int = 4) -> Points:
    """Rows whose columns vary together, far from zero."""
    draw = np.random.default_rng(seed)
    mixed = draw.normal(size=(columns, columns)) * np.arange(1, columns + 1)
    return draw.normal(size=(rows, columns)) @ mixed + 1e4


def files_of(room: Path, rows: Points, how: str) -> Path:
    """A directory with three files of rows."""
    place = room / how
    place.mkdir()
    for number, part in enumerate(np.array_split(rows, 3)):
        if how == "rows":
            part.tofile(place / f"{number}")
        elif how == "npy":
            np.save(place / f"{number}.npy", part)
        else:
            table = pa.table({f"c{each}": part[:, each] for each in range(part.shape[1])})
            if how == "parquet":
                pq.write_table(table, place / f"{number}.parquet", row_group_size=300)
            elif how == "arrow":
                with pa.ipc.new_file(place / f"{number}.arrow", table.schema) as out:
                    out.write_table(table, max_chunksize=150)
            elif how == "csv":
                pcsv.write_csv(table, place / f"{number}.csv")
            else:
                lines = (json.dumps(row) for row in table.to_pylist())
                (place / f"{number}.jsonl").write_text("\n".join(lines))
    return place


@pytest.mark.parametrize("how", ["rows", "npy", "parquet", "arrow", "csv", "json"])
def test_principal_components_are_those_of_the_covariance(disk: Path, how: str) -> None:
    rows = points(1)
    place = files_of(disk, rows, how)
    dtype = "4f8" if how == "rows" else None
    done = reduce(PCA(2), place, chunk_bytes=5000, dtype=dtype, workers=3)
    variances, vectors = np.linalg.eigh(np.cov(rows.T))
    found = done.result
    assert (found.rows, done.record.rows) == (3000, 3000)
    assert done.record.chunks > 3
    np.testing.assert_allclose(found.mean, rows.mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(found.variances, variances[::-1][:2], rtol=1e-9)
    for component, vector in zip(found.components, vectors.T[::-1], strict=False):
        np.testing.assert_allclose(abs(component @ vector), 1, rtol=1e-9)
    np.testing.assert_allclose(found.share, found.variances / variances.sum(), rtol=1e-9)


def test_a_regression_is_that_of_least_squares(disk: Path) -> None:
    rows = points(2)
    rows[:, 2] = 3 * rows[:, 0] - rows[:, 3] + 7 + np.random.default_rng(3).normal(size=len(rows))
    found = reduce(Regression(2), files_of(disk, rows, "npy")).result
    wanted = np.column_stack([rows[:, [0, 1, 3]], np.ones(len(rows))])
    expected, left, *_ = np.linalg.lstsq(wanted, rows[:, 2], None)
    np.testing.assert_allclose(found.coefficients, expected[:3], rtol=1e-6)
    assert found.intercept == pytest.approx(expected[3], rel=1e-4)
    spread = ((rows[:, 2] - rows[:, 2].mean()) ** 2).sum()
    assert found.explained == pytest.approx(1 - left[0] / spread, rel=1e-9)


def ranked(edges: npt.NDArray[np.int64], damping: float = 0.85) -> Points:
    """Ranks as the solution of their equations; of a number that is no node 0."""
    count = int(edges.max()) + 1
    there = np.zeros(count, bool)
    there[edges.ravel()] = True
    out = np.bincount(edges[:, 0], minlength=count)
    step = np.zeros((count, count))
    np.add.at(step, (edges[:, 1], edges[:, 0]), 1 / out[edges[:, 0]])
    step[:, (out == 0) & there] = (there / there.sum())[:, None]
    ranks = np.linalg.solve(np.eye(count) - damping * step, (1 - damping) * there / there.sum())
    return ranks


@pytest.mark.parametrize("dtype", ["2i4", "2u8", "i8,i8"])
def test_page_rank_solves_its_equations(disk: Path, dtype: str) -> None:
    draw = np.random.default_rng(5)
    edges = (200 * draw.random((4000, 2)) ** 2).astype(np.int64)
    edges = edges[(edges[:, 0] % 7 != 0) & (edges != 13).all(axis=1)]  # Some point nowhere.
    typed = np.empty(len(edges), parse_dtype(dtype))
    if typed.dtype.names:
        typed["f0"], typed["f1"] = edges.T
    else:
        typed = edges.astype(typed.dtype.base)
    typed.tofile(disk / "edges")
    done = reduce(PageRank(tolerance=1e-12), disk / "edges", dtype=dtype, chunk_bytes=4096)
    found: PageRanks = done.result
    np.testing.assert_allclose(found.ranks, ranked(edges), rtol=1e-8, atol=1e-14)
    assert found.ranks.sum() == pytest.approx(1)
    told = done.record.result
    assert told["edges"] == len(edges) and told["nodes"] == len(np.unique(edges))
    assert told["first"][0][0] == int(found.ranks.argmax())
    assert done.record.rounds == found.rounds + 1


@given(
    some.lists(some.tuples(some.integers(0, 60), some.integers(0, 60)), max_size=200),
    some.sampled_from(["2u1", "2i4", "2u4", "2i8", ">i4,>i4", "i8,i8", "i4,i8", "3i4", "i8,f4,i8"]),
    some.integers(0, 200),
)
def test_edges_come_to_what_numpy_says(edges: list[tuple[int, int]], dtype: str, half: int) -> None:
    pairs = np.array(edges, np.int64).reshape(-1, 2)
    typed, columns = np.zeros(len(pairs), parse_dtype(dtype)), None
    if names := typed.dtype.names:
        columns = [names[0], names[-1]]
        typed[names[0]], typed[names[-1]] = pairs.T
    else:
        typed[:, :2] = pairs
    reduction, known = PageRank(columns=columns), None
    share = np.random.default_rng(1).random(61)
    for into, wanted in (
        (reduction.begin(known), {"out": np.bincount(pairs[:, 0]), "into": pairs[:, 1]}),
        (
            RankSums(share, np.zeros(61)),
            {"rank": np.bincount(pairs[:, 1], share[pairs[:, 0]], minlength=61)},
        ),
    ):
        found = reduction.local(typed[half:], reduction.local(typed[:half], into))
        for name, each in wanted.items():
            has = getattr(found, name)
            if name == "into":
                assert {*np.flatnonzero(has)} == {*each}
            else:
                np.testing.assert_allclose(has[: len(each)], each, rtol=1e-12)
                assert not has[len(each) :].any()


@pytest.mark.parametrize(
    ("edges", "said"),
    [
        ([[0, 1], [2, -3]], r"row 1 of this chunk is \[2, -3\]: nodes must be numbers from 0"),
        (
            [[0, 1], [1 << 31, 0]],
            r"row 1 of this chunk is \[2147483648, 0\]: nodes must be numbers from 0",
        ),
        ([[0.5, 1.0]], "an edge must be two whole numbers"),
        (
            [[1, 7]],
            r"row 0 of this chunk is \[1, 7\]: one of these nodes was absent from the "
            r"first round",
        ),
    ],
)
def test_what_is_no_edge_is_told(edges: list[list[float]], said: str) -> None:
    reduction, rows = PageRank(), np.array(edges)
    known = reduction.finish(reduction.local(np.array([[0, 1]]), reduction.begin(None)), None)
    with pytest.raises(ValueError, match=said):
        reduction.local(rows, reduction.begin(known if "first round" in said else None))


def test_parts_of_a_graph_that_are_apart_have_their_own_ranks(disk: Path) -> None:
    edges = np.array([[0, 1], [1, 0], [5, 6], [6, 5], [9, 5]])
    edges.tofile(disk / "edges")
    found = reduce(PageRank(tolerance=1e-13), disk / "edges", dtype="2i8").result
    np.testing.assert_allclose(found.ranks, ranked(edges), atol=1e-12)
    assert found.ranks[[2, 3, 4, 7, 8]].sum() == 0


@given(
    some.lists(
        some.floats(allow_nan=True, allow_infinity=True, width=64), min_size=1, max_size=200
    ),
    some.sampled_from([0.001, 0.01, 0.1]),
)
def test_quantiles_are_off_by_the_precision_at_most(values: list[float], precision: float) -> None:
    reduction = Histograms(precision)
    rows = np.array(values)[:, None]
    (found,) = reduction.finish(reduction.local(rows, reduction.begin(None)), None)
    there = np.sort(rows[np.isfinite(rows)])
    assert (found.rows, found.missing) == (len(values), len(values) - len(there))
    for share in (0.0, 0.25, 0.5, 0.99, 1.0) if len(there) else ():
        exact = there[int(share * (len(there) - 1))]
        assert found.quantile(share) == pytest.approx(exact, rel=1.0001 * precision, abs=5e-320)


def test_none_depends_on_the_order() -> None:
    rows = points(7, 400)
    check_reduction(PCA(3), rows, rtol=1e-7)
    check_reduction(Regression(), rows, rtol=1e-6)
    check_reduction(Histograms(), rows)
    check_reduction(KMeans(rows[:5].copy(), 1), rows)
    edges = np.random.default_rng(1).integers(0, 50, (400, 2))
    known = check_reduction(PageRank(), edges)
    check_reduction(PageRank(), edges, known=known)


class Last(Reduction[list[float]]):
    """The rows that came last: of which nobody knows which they are."""

    def begin(self, known: Any) -> list[float]:
        return []

    def local(self, rows: Any, into: list[float]) -> list[float]:
        return rows[-1:, 0].tolist() or into

    def merge(self, one: list[float], other: list[float]) -> list[float]:
        return other or one


def test_one_that_does_is_found() -> None:
    with pytest.raises(AssertionError, match=r"depends on the order .*the result\[0\] is"):
        check_reduction(Last(), points(1, 100))


class Both(Last):
    """That, next to a number that is infinite."""

    def finish(self, whole: list[float], known: Any) -> Any:
        return np.array([*whole, np.inf])


def test_one_that_does_is_found_beside_what_is_infinite() -> None:
    with pytest.raises(AssertionError, match=r"depends on the order .*the result is"):
        check_reduction(Both(), points(1, 100))


def test_centres_are_drawn_of_points_that_differ() -> None:
    rows = np.repeat(points(3, 6, 2), 20, axis=0)
    found = first_centres(rows, 6, seed=4)
    assert len(np.unique(found, axis=0)) == 6
    with pytest.raises(
        core.UsageError, match="k: 7 is too large: the sample has only 6 distinct points"
    ):
        first_centres(rows, 7)


def test_the_best_of_several_drawings_finds_all_groups(tonnage: Tonnage, disk: Path) -> None:
    draw = np.random.default_rng(3)
    groups = draw.uniform(-100, 100, (12, 2))
    rows = np.repeat(groups, 200, axis=0) + draw.normal(size=(2400, 2))
    draw.shuffle(rows)
    rows.tofile(disk / "rows")
    run = ("run", "reduce", "kmeans", disk / "rows", "--dtype", "2f8", "--k", "12")
    run += ("--iterations", "20", "--seed")

    def inertia(seed: int, *more: str) -> float:
        told = json.loads(tonnage.run(*run, str(seed), *more, "--json", check=True).stdout)
        found: float = told["result"]["inertia"]
        return found

    least = ((rows[:, None] - groups) ** 2).sum(axis=2).min(axis=1).sum()
    sole = {seed: _alone(rows, seed) for seed in range(10)}
    bad = max(sole, key=sole.__getitem__)
    assert sole[bad] > 1.5 * least  # Two groups have one centre.
    assert inertia(bad) == pytest.approx(sole[bad], rel=0.2)
    assert inertia(bad, "--restarts", "10") < 1.01 * least
    said = tonnage.run(*run, str(bad), check=True).stdout
    assert "to try ten sets, use --restarts 10" in said
    assert "looks for them" not in tonnage.run(*run, "0", "--restarts", "2", check=True).stdout


def _alone(rows: Points, seed: int) -> float:
    """The inertia that one drawing comes to."""
    means, known = KMeans(first_centres(rows, 12, seed), 20), None
    for _ in range(20):
        known = means.finish(means.local(rows, means.begin(known)), known)
    assert known is not None
    return known.inertia


@pytest.mark.parametrize(
    "text", ["8f8", "f4", "i8,i8", "<i4,>f8", "(2, 3)f8", "3u1,f8", "?", "a:(2, 3)f8,b c:u1"]
)
def test_types_of_rows_are_written_as_they_are_read(text: str) -> None:
    found = parse_dtype(text)
    assert parse_dtype(dtype_text(found)) == found


def test_the_command_indexes_and_reduces(tonnage: Tonnage, disk: Path, s3: Bucket) -> None:
    rows = points(4, 6000, 3)
    for number, part in enumerate(np.array_split(rows, 4)):
        s3.put(f"in/{number}", part.tobytes())
    folder, at = f"s3://{BUCKET}/in/", ("--endpoint-url", s3.endpoint)
    made = tonnage.run("index", folder, "--dtype", "3f8", "--chunk-size", "10kB", *at, "--json")
    told = json.loads(made.stdout)
    assert (told["files"], told["known"], told["rows"]) == (4, 0, 6000)
    assert told["chunks"] == 4 * -(-1500 * 24 // 9984)
    # The index says what rows are; of four objects one is another one now.
    s3.put("in/3", rows[:500].tobytes())
    again = json.loads(tonnage.run("index", folder, *at, "--json").stdout)
    assert (again["known"], again["rows"]) == (3, 5000)
    run = ("run", "reduce", "kmeans", folder, "--k", "3", "--iterations", "4", *at)
    record = json.loads(tonnage.run(*run, "--json", check=True).stdout)
    assert (record["rows"], record["chunks"]) == (5000, again["chunks"])
    assert sum(record["result"]["rows"]) == 5000 and len(record["result"]["centres"]) == 3
    assert sum(each["chunks"] for each in record["workers"]) == record["rounds"] * record["chunks"]
    assert {"chunk_bytes", "threads", "why"} <= {*record["tuning"]}
    assert record["requests"]["requests"] >= record["chunks"]
    assert "4 rounds" in tonnage.run(*run, check=True).stdout
    for more, said in (
        (("kmeans", folder), "add --k"),
        (("pca", folder, "--k", "3"), "--k applies only to kmeans, not to pca"),
        (
            ("pca", folder, "--components", "9"),
            "--components: 9 components requested, but rows have only 3 columns",
        ),
        (("nothing", folder), "nothing is not valid; use kmeans, pca"),
        (("pca", f"s3://{BUCKET}/none/", "--components", "1"), "no object has this name"),
        (("pagerank", folder), "an edge must be two whole numbers"),
    ):
        refused = tonnage.run("run", "reduce", *more, *at)
        assert refused.returncode in (1, 2) and said in refused.stderr, refused.stderr


def test_ones_own_reduction_is_named(tonnage: Tonnage, disk: Path) -> None:
    rows = points(6, 1000, 2)
    np.save(disk / "rows.npy", rows)
    (disk / "own.py").write_text(
        "import numpy as np\n"
        "from tonnage import Reduction\n\n\n"
        "class Mean(Reduction):\n"
        "    def begin(self, known):\n"
        "        return {'sum': np.zeros(2), 'rows': 0}\n\n"
        "    def local(self, rows, into):\n"
        "        into['sum'] += rows.sum(axis=0)\n"
        "        into['rows'] += len(rows)\n"
        "        return into\n\n"
        "    def merge(self, one, other):\n"
        "        return {name: one[name] + other[name] for name in one}\n\n"
        "    def finish(self, whole, known):\n"
        "        return whole['sum'] / whole['rows']\n"
    )
    run = ("run", "reduce", "own.py:Mean", "rows.npy")
    done = tonnage.run(*run, "--json", cwd=disk, check=True)
    np.testing.assert_allclose(json.loads(done.stdout)["result"], rows.mean(axis=0), rtol=1e-12)
    said = tonnage.run(*run, cwd=disk, check=True).stderr.splitlines()
    # What takes over two seconds, as on a busy machine, shows how far it is.
    assert [line for line in said if not line.startswith("reducing")] == []


@pytest.mark.parametrize(
    ("content", "name", "said"),
    [
        (b"\x93NUMPY\x01\x00", "a.npy", "is not a valid npy file"),
        (b"no parquet", "a.parquet", "is not a valid parquet file"),
        (bytes(25), "a", "1 extra bytes at offset 24"),
    ],
)
def test_what_is_none_of_its_format_is_refused(
    disk: Path, content: bytes, name: str, said: str
) -> None:
    (disk / name).write_bytes(content)
    dtype = "3f8" if name == "a" else None
    with pytest.raises(core.UsageError, match=said):
        reduce(PCA(1), disk / name, dtype=dtype)
