"""Aggregates give the same results as NumPy or Python over all rows, in any order."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as some

from tonnage import AggregateReduction, reduce
from tonnage.api.aggregates import (
    Aggregate,
    Concatenation,
    Distinct,
    Hdr,
    Histogram,
    Max,
    Min,
    Sum,
    Top,
)
from tonnage.api.testing import check_reduction

EDGES = [-np.inf, -100, -1, 0, 0.5, 7, 1e6]
PLAIN = some.floats(-1e9, 1e9, width=32)


class Of(AggregateReduction):
    """Rows in one combination, as they are."""

    def __init__(self, combination: Aggregate) -> None:
        self.all = combination

    def local(self, rows: Any, into: Any) -> Any:
        into.all.add(rows)
        return into


def checked(combination: Aggregate, rows: Any) -> Any:
    """What rows come to, whichever way."""
    return check_reduction(Of(combination), rows, tries=6)["all"]


@given(some.lists(some.tuples(PLAIN, PLAIN), min_size=1, max_size=80))
def test_rows_come_to_what_numpy_says(pairs: list[tuple[float, float]]) -> None:
    rows = np.array(pairs)
    np.testing.assert_allclose(checked(Sum(), rows), rows.sum(axis=0), rtol=1e-9, atol=1e-3)
    np.testing.assert_array_equal(checked(Min(), rows), rows.min(axis=0))
    np.testing.assert_array_equal(checked(Max(), rows), rows.max(axis=0))
    np.testing.assert_array_equal(checked(Concatenation(), rows), sorted(pairs))
    np.testing.assert_array_equal(checked(Top(5), rows), sorted(pairs, reverse=True)[:5])
    np.testing.assert_array_equal(checked(Histogram(EDGES), rows), np.histogram(rows, EDGES)[0])
    for edges in (np.linspace(rows.min() - 1, rows.max() + 1, 8), [-np.inf, 0, 3, np.inf]):
        # Columns, rows turned around, numbers of 32 bits, and whole ones lie otherwise in memory.
        for here in (rows, rows[::-1], np.float32(rows), np.stack([rows, -rows], axis=1)[:, 0]):
            counts = Histogram(edges)
            counts.add(here)
            np.testing.assert_array_equal(counts.value, np.histogram(here, edges)[0])
    there, found = np.sort(rows.ravel()), checked(Hdr(0.02), rows)
    for share in (0.0, 0.3, 0.99, 1.0):
        exact = there[int(share * (len(there) - 1))]
        assert found.quantile(share) == pytest.approx(exact, rel=0.020001)
    assert checked(Distinct(), rows[:, 0]) == pytest.approx(len({*rows[:, 0]}), abs=0.5)


@given(some.lists(some.text(max_size=3), max_size=80))
@example(["", "\0"])
def test_texts_come_to_what_python_says(texts: list[str]) -> None:
    rows = pa.record_batch({"text": pa.array(texts, pa.string())})

    class Texts(AggregateReduction):
        last, all, different = Top(3), Concatenation(), Distinct()

        def local(self, rows: Any, into: Any) -> Any:
            for each in vars(into).values():
                each.add(rows["text"])
            return into

    found = check_reduction(Texts(), rows, tries=6)
    assert found["last"].tolist() == sorted(texts, reverse=True)[:3]
    assert found["all"].tolist() == sorted(texts)
    assert found["different"] == pytest.approx(len({*texts}), abs=0.5)


@pytest.mark.parametrize("precision", [0.005, 0.01, 0.05, 0.5])
@pytest.mark.parametrize("count", [300, 200_000])
def test_different_values_are_counted_as_precisely_as_is_asked(
    precision: float, count: int
) -> None:
    draw = np.random.default_rng(11)
    rows = np.concatenate([draw.integers(0, 1 << 63, count)] * 2)
    found = checked(Distinct(precision), draw.permutation(rows))
    assert found == pytest.approx(count, rel=4 * precision)


@pytest.mark.parametrize("kind", ["u1", "i2", "u4", "i8", "u8", "f4", "f8", "?"])
def test_values_of_any_type(kind: str) -> None:
    draw = np.random.default_rng(3)
    rows = draw.integers(0, 2 if kind == "?" else 120, 500).astype(kind)
    if kind == "u8":
        rows += np.uint64(1 << 63)
    plain = [each.item() for each in rows]
    if kind != "u8":
        assert checked(Sum(), rows) == sum(plain)
    assert checked(Max(), rows) == max(plain)
    assert checked(Concatenation(), rows).tolist() == sorted(plain)
    assert checked(Distinct(), rows) == pytest.approx(len({*plain}), abs=0.5)


def test_the_largest_rows_bring_what_is_with_them() -> None:
    rows = np.zeros(1000, [("seconds", "f4"), ("number", "i8")])
    rows["seconds"], rows["number"] = np.arange(1000) % 10, np.arange(1000)
    rows["seconds"][::7] = np.nan
    wanted = [each for each in range(1000) if each % 7 and each % 10 == 9][::-1][:3]
    assert checked(Top(3), rows)["number"].tolist() == wanted
    pairs = np.column_stack([rows["seconds"], rows["number"]])
    assert checked(Top(3), pairs)[:, 1].tolist() == wanted


def test_of_no_rows_there_is_nothing() -> None:
    rows = np.zeros((0, 2))
    assert checked(Sum(), rows) == pytest.approx([0, 0])
    assert checked(Min(), rows) is None and checked(Max(), rows) is None
    assert len(checked(Concatenation(), rows)) == len(checked(Top(2), rows)) == 0
    assert checked(Histogram([0, 1]), rows).tolist() == [0]
    assert checked(Hdr(), rows).rows == 0 and checked(Distinct(), rows[:, 0]) == 0


def test_nothing_holds_on_to_the_rows_that_were_added() -> None:
    rows = np.arange(10.0)
    combinations: list[Aggregate] = [Sum(), Min(), Concatenation(), Top(20), Histogram([0, 99])]
    for each in combinations:
        each.add(rows[None] if isinstance(each, Sum | Min) else rows)
    before = [np.array(each.value) for each in combinations]
    rows += 100
    for each, value in zip(combinations, before, strict=True):
        np.testing.assert_array_equal(each.value, value)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: Top(0), r"Top\(0\): k must be at least 1"),
        (lambda: Histogram([1]), "there must be at least two edges"),
        (lambda: Histogram([1, 1]), "each above the previous one"),
        (lambda: Hdr(0), r"Hdr\(0\): the precision must be between 0 and 1"),
        (lambda: Distinct(0), r"Distinct\(0\): the precision must be at least 0.00072"),
        (lambda: Distinct().add(pa.array([{"a": 1}])), "values are neither numbers nor strings"),
        (
            lambda: Distinct().add(np.zeros((3, 2))),
            "rows have several columns; pass a single column",
        ),
    ],
)
def test_what_is_no_combination_is_told(make: Any, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        make()


class Requests(AggregateReduction):
    """What a log comes to."""

    rows, seconds, slowest, users = Sum(), Hdr(), Top(2), Distinct()

    def local(self, rows: Any, into: Any) -> Any:
        into.rows.add(len(rows))
        into.seconds.add(rows["seconds"])
        into.slowest.add(rows["seconds"])
        into.users.add(rows["user"])
        return into


class More(Requests):
    """The same and more: what is inherited stays."""

    most = Max()

    def local(self, rows: Any, into: Any) -> Any:
        into.most.add(rows["user"])
        return super().local(rows, into)


def test_files_are_reduced_by_local_alone(disk: Path) -> None:
    draw = np.random.default_rng(2)
    rows: npt.NDArray[Any] = np.zeros(5000, "f8,i8").astype([("seconds", "f8"), ("user", "i8")])
    rows["seconds"], rows["user"] = draw.exponential(size=5000), draw.integers(0, 40, 5000)
    np.save(disk / "rows.npy", rows)
    done = reduce(More(), disk / "rows.npy", chunk_bytes=8192, workers=3)
    assert done.result["rows"] == 5000
    assert done.result["most"] == rows["user"].max()
    assert done.result["slowest"].tolist() == np.sort(rows["seconds"])[:-3:-1].tolist()
    assert done.result["users"] == pytest.approx(40, abs=0.5)
    told = json.loads(json.dumps(done.record.to_json()))["result"]
    median = np.sort(rows["seconds"])[2499]
    assert told["seconds"]["quantiles"]["0.5"] == pytest.approx(median, rel=0.01)
    assert Counter(told.keys()) == Counter(["rows", "seconds", "slowest", "users", "most"])


def test_nulls_are_skipped(disk: Path) -> None:
    column = pa.chunked_array([pa.array([1, None]), pa.array([3])])
    for aggregate, expected in ((Sum(), 4), (Min(), 1), (Max(), 3)):
        aggregate.add(column)
        aggregate.add(pa.array([None, None]))
        assert aggregate.value == expected and isinstance(aggregate.value, (int, np.int64))
    (disk / "in.csv").write_text("n,v\n1,1\n2,\n3,3\n")

    class OfColumn(AggregateReduction):
        total, least, most, top = Sum(), Min(), Max(), Top(2)

        def local(self, rows: Any, into: Any) -> Any:
            for each in vars(into).values():
                each.add(rows["v"])
            return into

    found = reduce(OfColumn(), disk / "in.csv", workers=1).result
    assert (found["total"], found["least"], found["most"]) == (4, 1, 3)
    assert found["top"].tolist() == [3, 1]


def test_integers_are_exact() -> None:
    large = 2**63 - 1
    top = Top(2)
    top.add(pa.array([large, None, large - 1, 5]))
    assert top.value.tolist() == [large, large - 1]
    for rows, expected in (
        (np.array([large, 1]), 2**63),
        (np.array([2**64 - 1, 1], np.uint64), 2**64),
        (np.array([-large, -large]), -2 * large),
        (np.array([True, True]), 2),
    ):
        whole, parts = Sum(), Sum()
        whole.add(rows)
        for each in rows:
            other = Sum()
            other.add(each)
            parts.merge(other)
        assert whole.value == parts.value == expected
    columns = Sum()
    columns.add(np.array([[large, 1], [1, 2]]))
    assert columns.value.tolist() == [2**63, 3]
    small = Sum()
    small.add(np.array([[1, 2], [3, 4]], np.int8))
    assert small.value.dtype == np.int64 and small.value.tolist() == [4, 6]
