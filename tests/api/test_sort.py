"""`tonnage.sort`: tables from files and from Arrow data, and sorted ones as these again."""

from __future__ import annotations

import gc
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as pa_dataset
import pyarrow.parquet as pq
import pytest

import tonnage


def events(rows: int = 20_000) -> pa.Table:
    rng = random.Random(3)
    users = pa.array(rng.choices(["ann", "bob", "eve", None], k=rows)).dictionary_encode()
    return pa.table(
        {
            "user": users,
            "ts": pa.array(rng.choices(range(10**6), k=rows), pa.timestamp("ms")),
            "n": range(rows),
        }
    )


def as_sorted(table: pa.Table) -> list[Any]:
    rows = table.to_pylist()
    rows.sort(key=lambda row: (row["user"] is None, row["user"] or "", -row["ts"].timestamp()))
    return rows


def inputs(table: pa.Table, disk: Path) -> dict[str, Any]:
    pq.write_table(table, disk / "in.parquet")
    return {
        "path": disk / "in.parquet",
        "table": table,
        "reader": table.to_reader(1000),
        "dataset": pa_dataset.dataset(disk / "in.parquet").filter(pa_dataset.field("n") >= 0),
        "scanner": pa_dataset.dataset(disk / "in.parquet").scanner(batch_size=1000),
    }


@pytest.mark.parametrize("kind", ["path", "table", "reader", "dataset", "scanner"])
def test_it_takes_files_and_arrow_data(disk: Path, kind: str) -> None:
    table = events()
    given = inputs(table, disk)[kind]
    with tonnage.sort(given, "user,-ts", scratch=disk / "tmp", stable=True) as result:
        got = result.reader().read_all()
        assert got.to_pylist() == as_sorted(table)
        assert pa.table(result).equals(got)
        assert result.record.written_records == table.num_rows
        assert result.dataset().count_rows() == table.num_rows
    assert list((disk / "tmp").iterdir()) == []


def test_files_of_an_output_stay(disk: Path) -> None:
    table = events()
    out, scratch = [disk / "a", disk / "b"], disk / "tmp"
    written: dict[str, Any] = {"output": out, "output_format": "parquet", "file_bytes": "64KiB"}
    result = tonnage.sort(table, "-n", scratch=scratch, **written)
    files, rows = result.files, result.reader().read_all()["n"].to_pylist()
    del result
    gc.collect()
    assert len(files) > 2 and all(Path(each).is_file() for each in files)
    assert rows == list(range(table.num_rows))[::-1]


def test_a_result_that_nobody_keeps_is_removed(disk: Path) -> None:
    result = tonnage.sort(events(), "ts", scratch=disk / "tmp")
    assert Path(result.files[0]).is_file()
    del result
    gc.collect()
    assert list((disk / "tmp").iterdir()) == []


def test_a_closed_result_says_so(disk: Path) -> None:
    result = tonnage.sort(events(10), "n", scratch=disk / "tmp")
    result.close()
    with pytest.raises(tonnage.UsageError, match="the result is closed"):
        result.reader()


def test_keys_are_a_list_whose_names_have_commas(disk: Path) -> None:
    table = pa.table({"price, net": [1, 2, 2], 'the "n"': [1, 2, 3]})
    by = ["-price, net", 'the "n"']
    with tonnage.sort(table, by, scratch=disk / "tmp") as result:
        assert result.reader().read_all()['the "n"'].to_pylist() == [2, 3, 1]


def test_output_is_compressed(disk: Path) -> None:
    how: dict[str, Any] = {"output": disk / "out", "output_format": "parquet"}
    result = tonnage.sort(events(), "n", scratch=disk / "tmp", compression="zstd:3", **how)
    column = pq.ParquetFile(result.files[0]).metadata.row_group(0).column(0)
    assert column.compression == "ZSTD"


def test_the_first_rows_of_some_columns(disk: Path) -> None:
    table = events()
    with tonnage.sort(table, "ts", columns=["ts", "n"], limit=5, scratch=disk) as result:
        got = result.reader().read_all()
    assert got.column_names == ["ts", "n"]
    assert got["ts"].to_pylist() == sorted(table["ts"].to_pylist())[:5]


def test_text_is_written_and_not_read_again(disk: Path) -> None:
    with tonnage.sort(events(9), "n", output_format="csv", scratch=disk / "tmp") as result:
        assert Path(result.files[0]).read_text().startswith("user,ts,n\n")
        with pytest.raises(tonnage.UsageError, match="output_format: the output is csv"):
            result.reader()


def test_schemas_are_given_as_pyarrows(disk: Path) -> None:
    (disk / "in.csv").write_text("k,v\n2,1.50\n1,0.25\n")
    schema = pa.schema([("k", pa.int16()), ("v", pa.decimal128(5, 2))])
    with tonnage.sort(disk / "in.csv", "k", schema=schema, scratch=disk / "tmp") as result:
        got = result.reader().read_all()
    assert got.schema.equals(schema) and got["k"].to_pylist() == [1, 2]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"table": 5}, "table: int is neither paths nor Arrow data"),
        ({"by": "nosuch"}, 'by: there is no column "nosuch"'),
        ({"by": 5}, "by: 5 is neither a string nor a list"),
        ({"limit": 0}, "limit: 0 is not a whole number of at least 1"),
        ({"unique": True, "limit": 1}, "limit: with unique"),
        ({"memory": "much"}, "memory: 'much' is not a size"),
        ({"input_format": "csv"}, "input_format: Arrow data has its own format"),
        ({"columns": ["x"]}, "columns: "),
    ],
)
def test_what_cannot_be_is_refused(disk: Path, arguments: dict[str, Any], message: str) -> None:
    given: dict[str, Any] = {"table": events(10), "by": "ts", "scratch": disk / "tmp"}
    with pytest.raises(tonnage.UsageError) as refused:
        tonnage.sort(**(given | arguments))
    assert str(refused.value).startswith(message)
    assert not (disk / "tmp").exists() or list((disk / "tmp").iterdir()) == []
