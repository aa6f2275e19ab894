"""Columns of every type come through both passes, on one machine and on a cluster."""

import decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from support.cluster.sorters import SortMachines
from support.mapreduce import done, failed, on_fleet
from tonnage import Input, MapReduce, sums
from tonnage.base import core

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


@pytest.mark.slow
@pytest.mark.real
def test_a_combine_may_widen_a_type_on_a_cluster(disk: Path) -> None:
    source = table(disk, k=pa.array([1, 1, 2]), v=pa.array([1, 2, 3], pa.int32()))
    record, found = on_fleet(disk, SUMS, [Input(source)], SortMachines("a", "b"))
    assert sorted(found) == [(1, 3), (2, 3)]
    assert [node.lost for node in record.nodes] == [None, None]
