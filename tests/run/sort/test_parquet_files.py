"""`run sort --by` of Parquet by any writer: its types stay what other readers take them for.

PyArrow and DuckDB read the output, and damage is refused.
"""

from datetime import date, datetime, time
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tonnage
from tonnage.base import core

KEYS = pa.array([3, 1, 2])
IDS = pa.array([bytes([each]) * 16 for each in (3, 1, 2)], pa.binary(16))
LOGICAL: list[tuple[str, pa.Array]] = [
    ("uuid", pa.ExtensionArray.from_storage(pa.uuid(), IDS)),
    ("json", pa.ExtensionArray.from_storage(pa.json_(), pa.array(['{"a":1}', None, "[]"]))),
    ("date", pa.array([date(2020, 1, 1), None, date(1969, 12, 31)], pa.date64())),
    ("half", pa.array([1.5, None, -0.0], pa.float16())),
    ("decimal", pa.array([1, None, 3], pa.decimal256(76, 3))),
]
MOMENTS = [datetime(2020, 1, 1), None, datetime(1900, 1, 1)]
CONVERTED: list[tuple[pa.Array, pa.DataType]] = [
    (pa.array(MOMENTS, pa.timestamp("s", "UTC")), pa.timestamp("ms", "UTC")),
    (pa.array([time(1), None, time(2)], pa.time32("s")), pa.time32("ms")),
    (pa.array([[each] for each in MOMENTS], pa.list_(pa.date64())), pa.list_(pa.date32())),
    (
        pa.array([{"at": each} for each in MOMENTS], pa.struct([("at", pa.timestamp("s"))])),
        pa.struct([("at", pa.timestamp("ms"))]),
    ),
]


def sorted_file(source: Any, directory: Path, **how: Any) -> tuple[Path, pa.Table]:
    """The first file of the output, and all of it."""
    options = {"output": directory / "out", "scratch": directory / "scratch", "memory": "64MiB"}
    result = tonnage.sort(source, "key", **(options | how))
    return Path(result.files[0]), result.reader().read_all()


def test_files_sorted_by_a_field_of_a_struct_say_so(tmp_path: Path) -> None:
    places = [{"city": "b", "at": {"hour": 2}}, {"city": "b", "at": None}, None, {"city": "a"}]
    table = pa.table({"place": places, "place.city": [1, 2, 3, 4]})
    pq.write_table(table.select([0]), tmp_path / "in.parquet")
    how = {"output": tmp_path / "out", "scratch": tmp_path}
    result = tonnage.sort(tmp_path / "in.parquet", "-place.city,place.at.hour", **how)
    expected = [{"city": "b", "at": {"hour": 2}}, {"city": "b", "at": None}]
    assert result.reader().read_all()["place"].to_pylist() == [
        *expected,
        {"city": "a", "at": None},
        None,
    ]
    group = pq.ParquetFile(result.files[0]).metadata.row_group(0)
    columns = [each.column_index for each in group.sorting_columns]
    names = [group.column(column).path_in_schema for column in columns]
    assert names == ["place.city", "place.at.hour"]
    # A column of the whole name goes before a field.
    pq.write_table(table, tmp_path / "both.parquet")
    how["output"] = tmp_path / "both"
    result = tonnage.sort(tmp_path / "both.parquet", "-place.city", columns=["place.city"], **how)
    assert result.reader().read_all()["place.city"].to_pylist() == [4, 3, 2, 1]


@pytest.mark.parametrize("stores_schema", [False, True])
@pytest.mark.parametrize("name, values", LOGICAL)
def test_logical_types_stay(
    name: str, values: pa.Array, stores_schema: bool, tmp_path: Path
) -> None:
    source = tmp_path / "in.parquet"
    pq.write_table(pa.table({"key": KEYS, name: values}), source, store_schema=stores_schema)
    file, got = sorted_file(source, tmp_path)
    expected = pq.read_table(source).sort_by("key")
    assert got.schema.equals(expected.schema)
    assert got.equals(expected)
    columns = [pq.ParquetFile(path).schema.column(1) for path in (source, file)]
    assert str(columns[0].logical_type) == str(columns[1].logical_type)
    described = [
        duckdb.sql(f"describe select * from read_parquet('{path}')").fetchall()
        for path in (source, file)
    ]
    assert described[0] == described[1]


@pytest.mark.parametrize("values, data_type", CONVERTED)
def test_types_that_parquet_lacks_are_not_bare_numbers(
    values: pa.Array, data_type: pa.DataType, tmp_path: Path
) -> None:
    table = pa.table({"key": KEYS, "value": values})
    file, got = sorted_file(table, tmp_path, output_format="parquet")
    order = pa.array([1, 2, 0])
    assert got["value"].to_pylist() == values.take(order).cast(data_type).to_pylist()
    assert pq.read_schema(file).field("value").type == data_type
    assert "INT64" not in str(pq.ParquetFile(file).schema.column(1).logical_type)
    assert str(pq.ParquetFile(file).schema.column(1).logical_type) != "None"


def test_a_day_with_a_time_is_refused(tmp_path: Path) -> None:
    table = pa.table({"key": [1], "day": pa.array([5], pa.date64())})
    with pytest.raises((core.UsageError, core.RunError), match=r'"day": a value of date64\[ms\]'):
        sorted_file(table, tmp_path, output_format="parquet")
    assert not list((tmp_path / "out").glob("part-*"))


def test_pages_that_fail_their_checksum_are_refused(tmp_path: Path) -> None:
    source = tmp_path / "in.parquet"
    table = pa.table({"key": range(20_000)})
    pq.write_table(
        table, source, write_page_checksum=True, compression="none", use_dictionary=False
    )
    assert sorted_file(source, tmp_path)[1].num_rows == 20_000
    damaged = bytearray(source.read_bytes())
    damaged[50_000] ^= 1
    source.write_bytes(damaged)
    with pytest.raises((core.UsageError, core.RunError), match=r"in\.parquet: .* CRC checksum"):
        sorted_file(source, tmp_path, output=tmp_path / "damaged")
