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


def check_output(s3: Bucket, expected: int) -> dict[str, bytes]:
    """The objects of an output that is whole, without anything left of its uploads."""
    files = s3.content("out")
    manifest = json.loads(files.pop("_tonnage.json"))
    assert sorted(files) == manifest["parts"]
    assert manifest["records"] == expected
    assert manifest["bytes"] == sum(map(len, files.values()))
    assert s3.uploads() == []
    return files


@pytest.mark.parametrize("output_format", ["parquet", "arrow"])
def test_tables_are_written_to_a_store(
    s3: Bucket, tonnage: Tonnage, disk: Path, output_format: str
) -> None:
    source = table(7, 300_000).append_column("pad", pa.array(["x" * 80] * 300_000))
    pq.write_table(source, disk / "in.parquet")
    arguments = ["run", "sort", disk / "in.parquet", "--output", f"s3://{BUCKET}/out"]
    arguments += ["--endpoint-url", s3.endpoint, "--scratch", disk / "scratch", "--memory=128MiB"]
    arguments += ["--by=k,x", f"--output-format={output_format}", "--json"]
    said = tonnage.run(*arguments, check=True)
    files = check_output(s3, source.num_rows)
    if output_format == "parquet":
        got = rows_of(files)
    else:
        parts = [feather.read_table(io.BytesIO(files[name])) for name in sorted(files)]
        got = pa.concat_tables(parts)
        assert max(map(len, files.values())) > 5 << 20  # of several parts
    assert got.equals(source.sort_by([("k", "ascending"), ("x", "ascending")]))
    assert json.loads(said.stdout)["requests"]["requests"] >= 3 * len(files)
    again = tonnage.run(*arguments)
    assert again.returncode == 2 and "is not empty" in again.stderr


def test_an_output_without_rows_has_its_columns_in_a_store(
    s3: Bucket, tonnage: Tonnage, disk: Path
) -> None:
    s3.put("in/a.parquet", encoded(table(1, 0), ".parquet"))
    tonnage.run(*command(s3, disk, "in/", "--by=k"), f"--output=s3://{BUCKET}/out", check=True)
    assert rows_of(check_output(s3, 0)).column_names == ["k", "text", "x"]


def test_lines_that_are_left_out_leave_no_file(s3: Bucket, tonnage: Tonnage, disk: Path) -> None:
    names = [f"{number:03}\n".encode() for number in range(60)]
    s3.put("in/a.txt", b"".join(names * 2_000))
    arguments = command(s3, disk, "in/a.txt", "--by=line", "--unique", "--file-size=10kB")
    tonnage.run(*arguments, f"--output=s3://{BUCKET}/out", check=True)
    files = check_output(s3, 60)
    assert [files[name] for name in sorted(files)] == names


def test_a_sort_that_fails_publishes_nothing(s3: Bucket, tonnage: Tonnage, disk: Path) -> None:
    rows = "".join(f"{number % 1000},{number}\n" for number in range(400_000))
    s3.put("in/a.csv", f"k,v\n{rows}no number,1\n".encode())
    said = tonnage.run(*command(s3, disk, "in/", "--by=k"), f"--output=s3://{BUCKET}/out")
    assert said.returncode == 2 and "line 400002 (" in said.stderr
    assert s3.content("out") == {} and s3.uploads() == []


def test_names_that_cannot_be_requested_are_named_and_others_are_read(
    s3: Bucket, tonnage: Tonnage, disk: Path
) -> None:
    rows = table(1, 100)
    content = encoded(rows, ".parquet")
    s3.put("in/a b+c%20ä.parquet", content)
    s3.put("in/more/", b"")
    s3.put("in/x\ny/a.parquet", content)
    s3.put("in/_hidden\n/a.parquet", content)
    said = tonnage.run(*command(s3, disk, "in/", "--by=k,x"), "--output", disk / "out", check=True)
    order = [("k", "ascending"), ("x", "ascending")]
    assert rows_of(in_directory(disk / "out")).equals(rows.sort_by(order))
    assert said.stderr.count("\n") == 1
    assert r"'s3://tests/in/x\ny/a.parquet' is left out: a name with" in said.stderr


def test_objects_of_one_format_are_read(s3: Bucket, tonnage: Tonnage, disk: Path) -> None:
    for name in ("_SUCCESS", "_metadata", ".b.parquet.crc", "x/.DS_Store", "_delta_log/0.json"):
        s3.put(f"in/{name}", b"no table")
    s3.put("in/README.md", b"")
    s3.put("in/x/b.parquet", encoded(table(1), ".parquet"))
    places = ["--by=k", "--output", str(disk / "out")]
    tonnage.run(*command(s3, disk, "in/", *places), check=True)
    assert rows_of(in_directory(disk / "out")).num_rows == ROWS
    s3.put("in/a.csv", b"k\n1\n")
    said = tonnage.run(*command(s3, disk, "in/", "--by=k", "--output", str(disk / "o")))
    told = (
        "/in/x/b.parquet is parquet by its name, but s3://tests/in/a.csv is csv; specify the files"
    )
    assert said.returncode == 2 and told in said.stderr and said.stderr.count("\n") == 1
    assert not (disk / "o").exists()
