"""Columns of every type come through both passes, on one machine and on a cluster."""

import decimal
import json
import math
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from support.cluster.sorters import SortMachines
from support.mapreduce import asked, done, failed, listed, on_fleet, tables
from tonnage import Input, MapReduce, sums
from tonnage.base import core
from tonnage.run.two_pass.driver import run_two_pass

SUMS = MapReduce(key="k", combine=sums("v", key="k"), reduce=sums("v", key="k"))
WIDENED: dict[str, tuple[pa.DataType, list[Any], list[Any]]] = {
    "int32": (pa.int32(), [1, 2, 3], [3, 3]),
    "uint8": (pa.uint8(), [200, 100, 7], [300, 7]),
    "bool": (pa.bool_(), [True, True, False], [2, 0]),
    "float32": (pa.float32(), [0.5, 0.25, 3.0], [0.75, 3.0]),
    "decimal": (
        pa.decimal128(10, 2),
        [decimal.Decimal(each) for each in ("99999999.99", "0.01", "3.00")],
        [decimal.Decimal("100000000.00"), decimal.Decimal("3.00")],
    ),
}


def table(disk: Path, **columns: pa.Array) -> Path:
    path = disk / "in.parquet"
    pq.write_table(pa.table(columns), path)
    return path


@pytest.mark.parametrize("name", WIDENED)
def test_a_combine_may_widen_a_type(disk: Path, name: str) -> None:
    kind, values, expected = WIDENED[name]
    source = table(disk, k=pa.array([1, 1, 2]), v=pa.array(values, kind))
    _, found = done(disk, SUMS, source)
    assert dict(zip(*found.to_pydict().values(), strict=True)) == {1: expected[0], 2: expected[1]}


def test_a_combine_may_widen_a_type_of_a_partition_that_is_divided(disk: Path) -> None:
    count = 1_500_000
    source = table(disk, k=pa.array(range(count)), v=pa.array([1] * count, pa.int32()))
    job = MapReduce(key="k", combine=SUMS.combine, reduce=SUMS.reduce, partitions=1)
    record, found = done(disk, job, source)
    assert record.repartitioned_bytes
    assert found.num_rows == count and found.column("v").to_pylist() == [1] * count


def test_a_combine_whose_types_change_is_named(disk: Path) -> None:
    def combine(rows: pa.RecordBatch) -> pa.RecordBatch:
        kind = pa.int64() if rows.column("v")[0].as_py() < 2 else pa.string()
        return rows.set_column(1, "v", rows.column("v").cast(kind))

    sources = [disk / name for name in ("a.parquet", "b.parquet")]
    for number, path in enumerate(sources, 1):
        pq.write_table(pa.table({"k": pa.array(range(300_000)), "v": [number] * 300_000}), path)
    why = failed(disk, MapReduce(key="k", combine=combine), sources, core.RunError)
    assert "combine returned columns of different types" in why and "cast them in combine" in why


@pytest.mark.parametrize(
    ("kind", "one", "other"),
    [
        (pa.int64(), 2**63 - 1, 1),
        (pa.int64(), -(2**63), -1),
        (pa.uint64(), 2**64 - 1, 1),
        (pa.decimal128(38, 0), decimal.Decimal(9 * 10**37), decimal.Decimal(10**37)),
    ],
)
def test_a_sum_that_does_not_fit_is_an_error(
    disk: Path, kind: pa.DataType, one: Any, other: Any
) -> None:
    source = table(disk, k=pa.array([1, 1]), v=pa.array([one, other], kind))
    why = failed(disk, SUMS, source, core.RunError)
    assert "a sum of v does not fit" in why and "in map" in why


def test_a_sum_of_large_values_that_fits_is_exact(disk: Path) -> None:
    source = table(disk, k=pa.array([1, 1, 1]), v=pa.array([2**63 - 1, -(2**62), None]))
    _, found = done(disk, SUMS, source)
    assert found.to_pylist() == [{"k": 1, "v": 2**62 - 1}]
    assert found.schema.field("v").type == pa.int64()


def numbers_of(column: pa.ChunkedArray) -> list[int | None]:
    """Moments as Arrow stores them."""
    plain: Any = column.combine_chunks()
    plain = plain.view(pa.int64() if plain.type.bit_width == 64 else pa.int32())
    numbers: list[int | None] = plain.to_pylist()
    return numbers


DAY = 86_400
MOMENTS: dict[str, tuple[pa.DataType, list[int], list[str]]] = {
    "ns": (
        pa.timestamp("ns"),
        [1, 2 * 10**9, -1],
        ["1970-01-01T00:00:00.000000001", "1970-01-01T00:00:02", "1969-12-31T23:59:59.999999999"],
    ),
    "zone": (pa.timestamp("us", "Europe/Berlin"), [5], ["1970-01-01T00:00:00.000005Z"]),
    "duration": (pa.duration("ns"), [1, -3_000_000_000], ["PT0.000000001S", "-PT3S"]),
    "time": (pa.time64("ns"), [1, DAY * 10**9 - 1], ["00:00:00.000000001", "23:59:59.999999999"]),
    "date": (pa.date32(), [5_000_000, 0], ["+15659-07-15", "1970-01-01"]),
    "date64": (pa.date64(), [5_000_000 * DAY * 1000], ["+15659-07-15"]),
    "year 10000": (pa.timestamp("s"), [253_402_300_800], ["+10000-01-01T00:00:00"]),
}


@pytest.mark.parametrize("ordered", [False, True])
@pytest.mark.parametrize("name", MOMENTS)
def test_moments_are_keys_and_iso_8601_in_json(disk: Path, name: str, ordered: bool) -> None:
    kind, numbers, texts = MOMENTS[name]
    plain = pa.array([*numbers, None], pa.int64())
    keys = (plain.cast(pa.int32()) if kind.bit_width == 32 else plain).view(kind)
    rows = pa.record_batch({"key": keys, "n": pa.array(range(len(keys)))})
    rows = rows.append_column("many", pa.array([[each, None] for each in keys], pa.list_(kind)))
    with pa.ipc.new_file(disk / "in.arrow", rows.schema) as file:  # Parquet has fewer types.
        file.write_batch(rows)
    job = MapReduce(ordered=ordered, partitions=1)
    _, found = done(disk, job, disk / "in.arrow", format="arrow")
    assert sorted(found["n"].to_pylist()) == [*range(len(keys))]
    if ordered:
        assert numbers_of(found["key"]) == [*sorted(numbers), None]
    shutil.rmtree(disk / "out")
    done(disk, job, disk / "in.arrow", format="json")
    (part,) = (disk / "out").glob("part-*")
    lines = [json.loads(line) for line in part.read_text().splitlines()]
    lines.sort(key=lambda line: line["n"])
    assert [line["key"] for line in lines] == [*texts, None]
    assert [line["many"] for line in lines] == [[text, None] for text in [*texts, None]]


@pytest.mark.slow
@pytest.mark.real
def test_a_combine_may_widen_a_type_on_a_cluster(disk: Path) -> None:
    source = table(disk, k=pa.array([1, 1, 2]), v=pa.array([1, 2, 3], pa.int32()))
    record, found = on_fleet(disk, SUMS, [Input(source)], SortMachines("a", "b"))
    assert sorted(found) == [(1, 3), (2, 3)]
    assert [node.lost for node in record.nodes] == [None, None]


@pytest.mark.slow
@pytest.mark.parametrize("ordered", [False, True])
def test_nanoseconds_are_keys_on_a_cluster(disk: Path, ordered: bool) -> None:
    source = table(disk, key=pa.array([1, 2, 3], pa.timestamp("ns")), n=pa.array([1, 2, 3]))
    asked_for = asked(disk, MapReduce(reduce=sums("n"), ordered=ordered), [Input(source)])
    record = run_two_pass(SortMachines("a", "b"), disk / "job", asked_for)
    assert [node.lost for node in record.nodes] == [None, None]
    found = pa.concat_tables(pq.read_table(each["path"]) for each in listed(disk))
    assert numbers_of(found["key"].sort()) == [1, 2, 3]


def test_half_precision_is_no_key(disk: Path) -> None:
    source = table(disk, k=pa.array([1.0, 2.0], pa.float16()), v=pa.array([1, 2]))
    why = failed(disk, MapReduce(key="k"), source, core.RunError)
    assert "column k has type halffloat, which cannot be sorted" in why


@pytest.mark.parametrize(
    ("column", "format", "why"),
    [
        (pa.array([[1], [2]]), "csv", "column v (list<"),
        (pa.array([{"a": 1}, {"a": 2}]), "csv", "column v (struct<"),
        (pa.array([b"\xff", b"a"]), "csv", "column v (binary) cannot be written as csv"),
        (pa.array([(1, 2, 3), None], pa.month_day_nano_interval()), "parquet", "column v (month"),
    ],
)
def test_a_column_that_a_format_does_not_take_is_named(
    disk: Path, column: pa.Array, format: str, why: str
) -> None:
    batch = pa.record_batch({"key": pa.array([1, 2]), "v": column})
    with pa.ipc.new_file(disk / "in.arrow", batch.schema) as file:
        file.write_batch(batch)
    said = failed(disk, MapReduce(), disk / "in.arrow", core.RunError, format=format)
    assert why in said and "use another output format" in said


def test_numbers_that_json_lacks_are_null(disk: Path) -> None:
    source = table(disk, key=pa.array([1.5, math.nan, math.inf]))
    done(disk, MapReduce(partitions=1), source, format="json")
    (part,) = (disk / "out").glob("part-*")
    lines = [json.loads(line, parse_constant=pytest.fail) for line in part.open()]
    assert [line["key"] for line in lines] == [1.5, None, None]


@pytest.mark.parametrize("format", ["csv", "json"])
def test_text_of_another_encoding(disk: Path, format: str) -> None:
    text = "key,n\né,1\n" if format == "csv" else '{"key": "é", "n": 1}\n'
    path = disk / f"in.{format}"
    path.write_bytes(text.encode("latin-1"))
    why = failed(disk, MapReduce(), path, core.RunError)
    assert "is not UTF-8" in why and "specify the encoding, as latin-1" in why
    _, found = done(disk, MapReduce(), Input(path, encoding="latin-1"))
    assert found.to_pylist() == [{"key": "é", "n": 1}]


def test_an_encoding_is_refused_where_it_makes_no_sense(disk: Path) -> None:
    (disk / "in.txt").write_text("a\n")
    source = table(disk, key=pa.array([1]))
    for path, encoding, why in (
        (disk / "in.txt", "utf-16", "utf-16 is not an encoding that contains ASCII"),
        (disk / "in.txt", "latin-99", "latin-99 is not an encoding"),
        (source, "latin-1", "is no text"),
    ):
        job, given = MapReduce(key="line"), Input(path, encoding=encoding)
        assert why in failed(disk, job, given, core.UsageError)


@pytest.mark.parametrize("where", ["input", "map", "reduce"])
@pytest.mark.parametrize("format", ["parquet", "arrow", "csv"])
def test_a_result_without_rows_has_columns(disk: Path, where: str, format: str) -> None:
    source = table(disk, key=pa.array([] if where == "input" else [1, 2], pa.int64()))

    def none(rows: pa.RecordBatch) -> pa.RecordBatch:
        return rows.slice(0, 0)

    job = MapReduce(
        map=none if where == "map" else None, reduce=none if where == "reduce" else None
    )
    record, _ = done(disk, job, source, format=format)
    assert record.written_records == 0
    if where == "input":
        return
    (found,) = tables(disk / "out")
    assert found.schema.names == ["key"] and found.num_rows == 0
    if format != "csv":
        assert found.schema.field("key").type == pa.int64()


HIVE = {
    "year=2023/country=fr/a.parquet": [1, 2],
    "year=2024/country=__HIVE_DEFAULT_PARTITION__/a.parquet": [3],
    "year=2024/country=a%20b/b.parquet": [4],
}
HIVE_ROWS = [(1, 2023, "fr"), (2, 2023, "fr"), (3, 2024, None), (4, 2024, "a b")]


def hive_layout(directory: Path) -> Path:
    for name, keys in HIVE.items():
        (directory / name).parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.table({"key": keys}), directory / name)
    (directory / "_SUCCESS").touch()
    return directory


def test_hive_folders_are_columns(disk: Path) -> None:
    source = hive_layout(disk / "in")
    _, found = done(disk, MapReduce(), source)
    assert sorted(tuple(row.values()) for row in found.to_pylist()) == HIVE_ROWS
    assert found.schema.names == ["key", "year", "country"]
    assert found.schema.field("year").type == pa.int64()


@pytest.mark.slow
def test_hive_folders_are_columns_on_a_cluster(disk: Path) -> None:
    source = hive_layout(disk / "in")
    _, found = on_fleet(disk, MapReduce(), [Input(source)], SortMachines("a", "b"))
    assert sorted(found) == HIVE_ROWS


def test_folders_are_read_at_any_depth(disk: Path) -> None:
    (disk / "in" / "more" / "still").mkdir(parents=True)
    for place, folder in enumerate(("", "more", "more/still")):
        pq.write_table(pa.table({"key": [place]}), disk / "in" / folder / "a.parquet")
    _, found = done(disk, MapReduce(), disk / "in")
    assert sorted(found["key"].to_pylist()) == [0, 1, 2]
