"""What a cluster reads as tables: folders of columns, compressed text, globs, objects."""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import json
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest

from support.cluster.sorters import SortMachines, Trouble, directories
from support.stores.s3 import BUCKET, Bucket
from tonnage.base import core
from tonnage.run.sort.cluster.tables import TableSortJob, table_sort_job
from tonnage.run.sort.tables import TableOrder
from tonnage.run.storage.object_store import ObjectStoreOptions
from tonnage.run.two_pass.driver import run_two_pass

MEMORY = 32 << 20
NODES = ("a", "b", "c")
YEARS = (2020, 2021, 2022)
ROWS = 20_000


def job(room: Path, inputs: list[str], order: TableOrder, **more: Any) -> TableSortJob:
    usual: dict[str, Any] = {
        "output": directories(room, "out"),
        "scratch": directories(room, "scratch"),
        "memory_bytes": MEMORY,
        "connections": 1,
        "patience_seconds": 5.0,
        "command": ["test"],
    }
    return table_sort_job(order, inputs=inputs, **usual | more)


def parts(room: Path) -> list[Path]:
    found = [path for node in NODES for path in (room / node / "out").glob("part-*")]
    return sorted(found, key=lambda path: path.name)


def table(seed: int) -> pa.Table:
    draw = random.Random(seed)
    return pa.table(
        {
            "k": pa.array([draw.randrange(10**6) for _ in range(ROWS)], pa.int32()),
            "text": [f"{draw.random()}" for _ in range(ROWS)],
        }
    )


def encoded(rows: pa.Table, suffix: str) -> bytes:
    sink = io.BytesIO()
    if suffix == ".parquet":
        pq.write_table(rows, sink, row_group_size=4_000)
    else:
        feather.write_feather(rows, sink, compression="lz4", chunksize=3_000)
    return sink.getvalue()


def expected() -> pa.Table:
    """The tables with the columns of their folders, the newest year first."""
    years = [
        table(year).append_column("year", pa.array([year] * ROWS, pa.int64())) for year in YEARS
    ]
    order = [("year", "descending"), ("k", "ascending"), ("text", "ascending")]
    return pa.concat_tables(years).sort_by(order)


@pytest.mark.parametrize("pattern", ["in", "in/year=*", "in/**/*.parquet"])
def test_folders_are_columns_and_their_files_are_read_at_any_depth(
    disk: Path, pattern: str
) -> None:
    for year in YEARS:
        folder = disk / "in" / f"year={year}" / "deep"
        folder.mkdir(parents=True)
        pq.write_table(table(year), folder / "a.parquet", row_group_size=4_000)
    order = TableOrder(by="-year,k,text")
    record = run_two_pass(
        SortMachines(*NODES), disk / "job", job(disk, [f"{disk}/{pattern}"], order)
    )
    assert all(node.read_bytes for node in record.nodes)
    assert pa.concat_tables(map(pq.read_table, parts(disk))).equals(expected())


@pytest.mark.parametrize("name", ["f{}.txt.bz2", "f{}.txt"])
def test_compressed_text_is_known_by_its_content(disk: Path, name: str) -> None:
    draw = random.Random(1)
    lines = [b"%x" % draw.getrandbits(800) for _ in range(40_000)]
    (disk / "in").mkdir()
    codec = bz2 if name.endswith("bz2") else gzip
    for number in range(4):
        text = b"".join(line + b"\n" for line in lines[number::4])
        (disk / "in" / name.format(number)).write_bytes(codec.compress(text))
    (disk / "in" / "plain.txt").write_bytes(b"\n".join(lines[:100]))
    want = job(disk, [f"{disk}/in"], TableOrder(by="line", stable=True))
    record = run_two_pass(SortMachines(*NODES), disk / "job", want)
    assert record.records == len(lines) + 100
    found = b"".join(path.read_bytes() for path in parts(disk))
    assert found == b"".join(line + b"\n" for line in sorted(lines + lines[:100]))


@pytest.mark.slow
@pytest.mark.parametrize("trouble", [None, "pass_one", "pass_two"])
@pytest.mark.parametrize("suffix", [".parquet", ".arrow"])
def test_tables_go_from_objects_to_objects(
    disk: Path, s3: Bucket, suffix: str, trouble: str | None
) -> None:
    for year in YEARS:
        s3.put(f"in/year={year}/a{suffix}", encoded(table(year), suffix))
    fault = [] if trouble is None else [Trouble(trouble, "dies in the middle", wipes=True)]
    order = TableOrder(by="-year,k,text", file_bytes=100_000, output_format="parquet")
    want = job(
        disk,
        [f"s3://{BUCKET}/in/"],
        order,
        output=[f"s3://{BUCKET}/out/"],
        object_store=ObjectStoreOptions(endpoint=s3.endpoint, requests=4),
    )
    record = run_two_pass(SortMachines(*NODES, troubles={"b": fault}), disk / "job", want)
    assert all(each.happened for each in fault)
    content = s3.content("out")
    manifest = json.loads(content.pop("_tonnage.json"))
    assert sorted(content) == manifest["parts"] and s3.uploads() == []
    found = [pq.read_table(io.BytesIO(content[name])) for name in manifest["parts"]]
    assert pa.concat_tables(found).equals(expected())
    assert record.records == record.written_records == ROWS * len(YEARS)
    assert record.requests["requests"] > 6 and record.requests["errors"] == {}


def test_text_goes_from_objects_to_disks(disk: Path, s3: Bucket) -> None:
    draw = random.Random(2)
    lines = [b"%d,%x" % (draw.randrange(10**6), place) for place in range(200_000)]
    s3.put("in/a.csv", b"k,v\n" + b"\n".join(lines[:1000]) + b"\n")
    s3.put("in/b.csv", b"k,v\n" + b"\n".join(lines[1000:]) + b"\n")
    store = ObjectStoreOptions(endpoint=s3.endpoint, requests=4)
    for kind, by in (("csv", "k"), ("lines", "line")):
        want = job(
            disk,
            [f"s3://{BUCKET}/in/"],
            TableOrder(by=by, stable=True, format=kind),
            output=directories(disk, f"out-{kind}"),
            object_store=store,
        )
        run_two_pass(SortMachines(*NODES), disk / f"job-{kind}", want)
    texts = {}
    for kind in ("csv", "lines"):
        found = [path for node in NODES for path in (disk / node / f"out-{kind}").glob("part-*")]
        found.sort(key=lambda path: path.name)
        texts[kind] = [line for path in found for line in path.read_bytes().splitlines()]
    records = [line for line in texts["csv"] if line != b"k,v"]
    assert records == sorted(lines, key=lambda line: int(line.split(b",")[0]))
    assert texts["lines"] == sorted([*lines, b"k,v", b"k,v"])


def quoted_records(seed: int) -> list[tuple[int, str]]:
    """Keys, and texts of which most are quoted lines and quotes: a newline rarely ends a record."""
    draw = random.Random(seed)
    pieces = ["\n", '"', "x,", "7,7\n", "long " * 300, "\n\n\n"]
    texts = ["".join(draw.choices(pieces, k=1 + draw.randrange(8))) for _ in range(4_000)]
    return [(draw.randrange(10**6), text) for text in texts]


def as_csv(records: list[tuple[int, str]]) -> bytes:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([("k", "text"), *records])
    return text.getvalue().encode()


@pytest.mark.parametrize("place", ["disk", "store"])
@pytest.mark.parametrize("output_format", [None, "parquet"])
def test_one_csv_file_with_newlines_in_quotes_is_divided_over_nodes(
    disk: Path, request: pytest.FixtureRequest, place: str, output_format: str | None
) -> None:
    records = quoted_records(3)
    (disk / "in.csv").write_bytes(as_csv(records))
    inputs, more = [str(disk / "in.csv")], {}
    if place == "store":
        s3: Bucket = request.getfixturevalue("s3")
        s3.put("in/a.csv", as_csv(records))
        inputs = [f"s3://{BUCKET}/in/"]
        more = {"object_store": ObjectStoreOptions(endpoint=s3.endpoint, requests=4)}
    order = TableOrder(by="k", stable=True, output_format=output_format)
    record = run_two_pass(SortMachines(*NODES), disk / "job", job(disk, inputs, order, **more))
    assert all(node.read_bytes for node in record.nodes)
    assert json.loads((disk / "job" / "plan.json").read_text())["table"]["quoted"]
    if output_format == "parquet":
        rows = pa.concat_tables(map(pq.read_table, parts(disk))).to_pylist()
        found = [(row["k"], row["text"]) for row in rows]
    else:
        texts = [io.StringIO(path.read_text(), newline="") for path in parts(disk)]
        of_parts = [[*csv.reader(text)][1:] for text in texts]
        found = [(int(k), text) for rows in of_parts for k, text in rows]
    assert found == sorted(records, key=lambda each: each[0])
    assert record.records == len(records)


def test_files_without_records_hide_no_columns_or_types(disk: Path) -> None:
    (disk / "in").mkdir()
    for name, text in (
        ("a.csv.gz", gzip.compress(b"")),
        ("b.csv", b""),
        ("c.csv", b"k,v\n"),
        ("d.csv", b"k,v\n10,x\n9,y\n"),
        ("e.csv", b""),
    ):
        (disk / "in" / name).write_bytes(text)
    record = run_two_pass(
        SortMachines(*NODES), disk / "job", job(disk, [f"{disk}/in"], TableOrder(by="k"))
    )
    found = b"".join(path.read_bytes() for path in parts(disk))
    assert found.replace(b"k,v\n", b"") == b"9,y\n10,x\n"
    assert record.records == 2


@pytest.mark.parametrize("limit", [None, 3])
@pytest.mark.parametrize("text", [b"", b"k,v\n"])
def test_of_no_rows_there_is_no_file(disk: Path, text: bytes, limit: int | None) -> None:
    (disk / "in.csv").write_bytes(text)
    want = job(disk, [f"{disk}/in.csv"], TableOrder(by="k", limit=limit))
    record = run_two_pass(SortMachines(*NODES), disk / "job", want)
    assert (record.records, record.written_records, parts(disk)) == (0, 0, [])
    manifest = json.loads((disk / "a" / "out" / "_tonnage.json").read_text())
    assert (manifest["records"], manifest["parts"]) == (0, [])


REFUSED_INPUTS = {
    "two formats": ({"a.csv": b"k\n1\n", "b.parquet": b"no table"}, "b.parquet is parquet by its"),
    "an unknown one": ({"a.csv": b"k\n1\n", "README.md": b"k\n1\n"}, "README.md has a name that"),
    "two folders": ({"k=1/k=2/a.json": b'{"v": 1}\n'}, "its column 'k' is both 1 and 2"),
    "fields": ({"a.csv": b"k,v\n1,2\n" + b"3,4\n" * 10_000 + b"5,6,7\n"}, "more than 2 fields"),
}


@pytest.mark.parametrize("kind", REFUSED_INPUTS)
def test_input_that_one_machine_refuses_is_refused_by_clusters(disk: Path, kind: str) -> None:
    files, why = REFUSED_INPUTS[kind]
    for name, content in files.items():
        (disk / "in" / name).parent.mkdir(parents=True, exist_ok=True)
        (disk / "in" / name).write_bytes(content)
    want = job(disk, [f"{disk}/in"], TableOrder(by="k", stable=True))
    with pytest.raises(core.UsageError) as found:
        run_two_pass(SortMachines(*NODES), disk / "job", want)
    assert why in str(found.value) and "\n" not in str(found.value)
    assert not parts(disk)
