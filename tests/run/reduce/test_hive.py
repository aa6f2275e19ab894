"""Folders NAME=VALUE below an input are columns of a reduction's rows."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from support.cli.command import Tonnage
from support.cluster.machines import Machines
from support.cluster.reducers import asked
from support.stores.s3 import BUCKET, Bucket
from tonnage import AggregateReduction, reduce
from tonnage.api.aggregates import Sum
from tonnage.run.reduce.cluster.driver import reduce_on_cluster
from tonnage.run.reduce.index_store import find_chunks
from tonnage.run.storage.object_store import ObjectStoreOptions

YEARS = (2023, 2024)


class ByYear(AggregateReduction):
    """The sum of each of two years."""

    first, second = Sum(), Sum()

    def local(self, rows: Any, into: Any) -> Any:
        for year, one in zip(YEARS, (into.first, into.second), strict=True):
            one.add(rows.filter(pc.equal(rows["year"], year))["x"])
        return into


EXPECTED = {"first": 2024, "second": 2025}


def parquet_of(year: int) -> bytes:
    sink = io.BytesIO()
    pq.write_table(pa.table({"x": [1, year]}), sink)
    return sink.getvalue()


@pytest.fixture
def folder(disk: Path) -> Path:
    for year in YEARS:
        (disk / f"year={year}").mkdir()
        (disk / f"year={year}" / "a.parquet").write_bytes(parquet_of(year))
    return disk


@pytest.mark.parametrize("indexed", [False, True])
def test_folders_are_columns(tonnage: Tonnage, folder: Path, indexed: bool) -> None:
    if indexed:
        assert tonnage.run("index", folder).returncode == 0
        assert len(find_chunks([str(folder)], ObjectStoreOptions()).files) == 2
    assert reduce(ByYear(), folder, workers=2).result == EXPECTED


def test_a_sample_has_the_columns(tonnage: Tonnage, folder: Path) -> None:
    done = tonnage.run("run", "reduce", "kmeans", folder, "--k", "2", "--columns", "x,year")
    assert done.returncode == 0, done.stderr


def test_folders_of_a_store_are_columns(tmp_path: Path, s3: Bucket) -> None:
    for year in YEARS:
        s3.put(f"in/year={year}/a.parquet", parquet_of(year))
    place = f"s3://{BUCKET}/in/"
    assert reduce(ByYear(), place, endpoint=s3.endpoint, workers=2).result == EXPECTED
    job = asked(ByYear(), [place], s3)
    assert reduce_on_cluster(Machines("a", "b"), tmp_path / "job", job)[0] == EXPECTED
