"""`run sort --by` and object storage: tables are read from a store, and written to it, whole."""

import io
import json
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest

from support.cli.command import Tonnage
from support.stores.s3 import BUCKET, Bucket

ROWS = 60_000


def table(seed: int, rows: int = ROWS) -> pa.Table:
    numbers = random.Random(seed)
    return pa.table(
        {
            "k": [numbers.randrange(10**6) for _ in range(rows)],
            "text": [f"{numbers.random()}"[: 3 + place % 20] for place in range(rows)],
            "x": [numbers.random() for _ in range(rows)],
        }
    )


def encoded(rows: pa.Table, suffix: str, **how: Any) -> bytes:
    sink = io.BytesIO()
    if suffix == ".parquet":
        pq.write_table(rows, sink, **how)
    elif suffix == ".arrow":
        feather.write_feather(rows, sink, **how)
    else:
        lines = (",".join(map(str, each.values())) for each in rows.to_pylist())
        sink.write("\n".join(["k,text,x", *lines, ""]).encode())
    return sink.getvalue()


def command(s3: Bucket, disk: Path, source: str, *more: str) -> list[str | Path]:
    return [
        *("run", "sort", f"s3://{BUCKET}/{source}", "--endpoint-url", s3.endpoint),
        *("--scratch", disk / "scratch", "--memory=64MiB", *more),
    ]


def rows_of(files: dict[str, bytes]) -> pa.Table:
    parts = [io.BytesIO(files[name]) for name in sorted(files) if name.startswith("part-")]
    return pa.concat_tables([pq.read_table(part) for part in parts])


def in_directory(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in directory.iterdir()}


@pytest.mark.parametrize(
    ("suffix", "how"),
    [
        (".parquet", {"row_group_size": 7_000}),
        (".parquet", {"write_page_index": False, "data_page_size": 50_000}),
        (".arrow", {"compression": "lz4", "chunksize": 5_000}),
        (".arrow", {"compression": "uncompressed"}),
    ],
)
def test_tables_are_read_by_ranges(
    s3: Bucket, tonnage: Tonnage, disk: Path, suffix: str, how: dict[str, Any]
) -> None:
    tables = [table(number) for number in range(3)]
    for number, each in enumerate(tables):
        s3.put(f"in/year={2020 + number}/a{suffix}", encoded(each, suffix, **how))
    s3.put("in/", b"")
    s3.put("in/year=2020/_notes", b"nothing")
    arguments = command(s3, disk, "in/", "--by=-year,k,x", "--columns=x,k,year")
    more = ["--output", disk / "out", "--output-format=parquet", "--json"]
    said = tonnage.run(*arguments, *more, check=True)
    got = rows_of(in_directory(disk / "out"))
    years = [pa.array([2020 + number] * ROWS) for number in range(3)]
    source = pa.concat_tables(
        each.append_column("year", year) for each, year in zip(tables, years, strict=True)
    )
    order = [("year", "descending"), ("k", "ascending"), ("x", "ascending")]
    assert got.equals(source.sort_by(order).select(["x", "k", "year"]))
    record = json.loads(said.stdout)
    assert record["requests"]["requests"] > 6 and record["requests"]["errors"] == {}
    if suffix == ".parquet":
        # Two of three columns, and most of a row is its text.
        read = {phase["name"]: phase["stages"][0] for phase in record["phases"]}["pass_one"]
        assert read["bytes"] < record["bytes"] * 0.8


@pytest.mark.parametrize("by", ["k,-x", "line"])
def test_text_is_read_from_a_store(s3: Bucket, tonnage: Tonnage, disk: Path, by: str) -> None:
    tables = [table(number) for number in range(2)]
    for number, each in enumerate(tables):
        s3.put(f"in/{number}.csv", encoded(each, ".csv"))
    kind = "lines" if by == "line" else "csv"
    arguments = command(s3, disk, "in/[01].csv", f"--by={by}", f"--input-format={kind}")
    tonnage.run(*arguments, "--output", disk / "out", check=True)
    files = in_directory(disk / "out")
    lines = [line for name in sorted(files) if name[0] == "p" for line in files[name].splitlines()]
    given = [encoded(each, ".csv").splitlines() for each in tables]
    if by == "line":
        assert lines == sorted(given[0] + given[1])
        return
    rows = [line.split(b",") for line in given[0][1:] + given[1][1:]]
    expected = sorted(rows, key=lambda row: (int(row[0]), -float(row[2])))
    assert [line.split(b",") for line in lines if line != b"k,text,x"] == expected


def test_an_object_that_is_no_table_is_named(s3: Bucket, tonnage: Tonnage, disk: Path) -> None:
    s3.put("in/a.parquet", encoded(table(1, 10), ".parquet"))
    s3.put("in/b.parquet", b"no Parquet at all")
    said = tonnage.run(*command(s3, disk, "in/", "--by=k"), "--output", disk / "out")
    assert said.returncode == 2 and said.stderr.count("\n") == 1
    assert f"input s3://{BUCKET}/in/b.parquet: " in said.stderr
    missing = tonnage.run(*command(s3, disk, "no-*", "--by=k"), "--output", disk / "out")
    assert missing.returncode == 2 and "nothing has a name like this" in missing.stderr
