"""A file is split into parts with all of its rows in order, or nothing is written."""

from __future__ import annotations

import fcntl
import itertools
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pcsv
import pyarrow.ipc as ipc
import pyarrow.json as pjson
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as some

from support.cli.command import Tonnage
from support.stores.s3 import BUCKET, Bucket
from tonnage.base import core
from tonnage.run.formats.format import Chunk
from tonnage.run.formats.split_files import PART_BYTES, group_chunks, parts_for, split
from tonnage.run.storage.object_store import ObjectStoreOptions
from tonnage.run.storage.sources import Sources

ROWS = 10_000
SUFFIXES = [".npy", ".parquet", ".arrow", ".csv", ".jsonl", ""]


def table() -> pa.Table:
    """Rows that differ, of several types."""
    numbers = np.arange(ROWS)
    kinds = pa.array([f"{each % 3}" for each in numbers]).dictionary_encode()
    return pa.table({"number": numbers, "half": numbers / 2, "kind": kinds})


def written(path: Path) -> Path:
    """A file of these rows, of the kind that its name says."""
    rows = table()
    numbers = np.column_stack([rows["number"], rows["half"]])
    if path.suffix == ".parquet":
        pq.write_table(rows, path, row_group_size=250, compression="zstd")
    elif path.suffix == ".arrow":
        with ipc.new_file(path, rows.schema) as out:
            out.write_table(rows, max_chunksize=250)
    elif path.suffix == ".csv":
        pcsv.write_csv(rows, path)
    elif path.suffix == ".jsonl":
        path.write_text("\n".join(json.dumps(row) for row in rows.to_pylist()))
    elif path.suffix == ".npy":
        np.save(path, numbers)
    else:
        numbers.tofile(path)
    return path


def read(path: Path) -> list[Any]:
    """The rows of a file, by their own readers."""
    if path.suffix == ".parquet":
        return pq.read_table(path).to_pylist()
    if path.suffix == ".arrow":
        return ipc.open_file(path).read_all().to_pylist()
    if path.suffix == ".csv":
        return pcsv.read_csv(path).to_pylist()
    if path.suffix == ".jsonl":
        return pjson.read_json(path).to_pylist()
    rows: Any = np.load(path) if path.suffix == ".npy" else np.fromfile(path).reshape(-1, 2)
    return rows.tolist()


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_parts_are_the_file(tonnage: Tonnage, disk: Path, suffix: str) -> None:
    source = written(disk / f"rows{suffix}")
    before = source.read_bytes()
    args = ["split", source, "--output", disk / "out" / "here", "--parts", "7", "--json"]
    args += ["--dtype", "2f8"]
    told = json.loads(tonnage.run(*args, check=True).stdout)
    parts = sorted((disk / "out" / "here").iterdir())
    assert [each.name for each in parts] == [f"part-0000{number}{suffix}" for number in range(7)]
    assert [(each["name"], each["bytes"]) for each in told["parts"]] == [
        (each.name, each.stat().st_size) for each in parts
    ]
    rows = [read(each) for each in parts]
    assert [*itertools.chain(*rows)] == read(source)
    # As even as pieces of a part, row groups or batches of 250 rows allow.
    assert max(map(len, rows)) - min(map(len, rows)) <= 250
    if told["parts"][0]["rows"] is not None:
        assert [each["rows"] for each in told["parts"]] == [*map(len, rows)]
    assert source.read_bytes() == before
    assert {each.name for each in disk.iterdir()} == {source.name, "out"}
    again = tonnage.run(*args)
    assert again.returncode == 2 and "already exists; use a new directory" in again.stderr
    assert sorted((disk / "out" / "here").iterdir()) == parts


def test_row_groups_stay_as_they_were(disk: Path) -> None:
    source = written(disk / "rows.parquet")
    sources = Sources(ObjectStoreOptions(), 1)
    split(*sources.find(str(source)), disk / "out", 4, sources)
    for path in sorted((disk / "out").iterdir()):
        about = pq.read_metadata(path)
        assert about.num_row_groups == 10
        assert about.row_group(0).column(0).compression == "ZSTD"
        assert pq.read_schema(path) == pq.read_schema(source)


def test_an_object_is_split(tonnage: Tonnage, disk: Path, s3: Bucket) -> None:
    rows = table().drop(["kind"])
    pcsv.write_csv(rows, disk / "rows.csv")
    s3.put("one/rows.csv", (disk / "rows.csv").read_bytes())
    source = f"s3://{BUCKET}/one/rows.csv"
    more = ("--workers", "3", "--endpoint-url", s3.endpoint)
    done = tonnage.run("split", source, "--output", disk / "out", *more, check=True)
    assert "3 parts" in done.stdout
    found = [row for each in sorted((disk / "out").iterdir()) for row in read(each)]
    assert found == rows.to_pylist()


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ((), "use either --parts or --workers"),
        (("--parts", "2", "--workers", "2"), "use either --parts or --workers"),
        (("--parts", "50"), "can be split into at most 40 parts"),
        (("--parts", "0"), "--parts"),
        (
            ("--parts", "2", "--input-format", "csvs"),
            "--input-format: csvs is not one of rows, npy",
        ),
        (("--parts", "2", "--input-format", "arrow"), "is not a valid arrow file"),
        (("--parts", "2", "--output", "s3://tests/out"), "parts are written to a local directory"),
    ],
)
def test_what_cannot_be_done_is_told(
    tonnage: Tonnage, disk: Path, more: tuple[str, ...], said: str
) -> None:
    source = written(disk / "rows.parquet")
    done = tonnage.run("split", source, "--output", disk / "out", *more)
    assert done.returncode == 2 and said in done.stderr, done.stderr
    assert [*disk.iterdir()] == [source]
    assert not Path("s3:").exists()


DIES = """
import os, signal, sys
from pathlib import Path
from tonnage.run.formats.split_files import split
from tonnage.run.storage.sources import Sources
from tonnage.run.storage.object_store import ObjectStoreOptions
sources = Sources(ObjectStoreOptions(), 1)
(file,) = sources.find(sys.argv[1])
kill = lambda _: os.kill(os.getpid(), signal.SIGKILL)
split(file, Path(sys.argv[2]), 3, sources, on_progress=kill)
"""


def test_what_a_killed_split_left_the_next_one_removes(tonnage: Tonnage, disk: Path) -> None:
    source = written(disk / "rows.parquet")
    dead = subprocess.run([sys.executable, "-c", DIES, source, disk / "first"])
    assert dead.returncode == -signal.SIGKILL
    (left,) = {*disk.iterdir()} - {source}
    assert left.name.startswith(".") and [*left.iterdir()]
    alive = disk / f"{left.name}0"
    alive.mkdir()
    lock = os.open(alive, os.O_RDONLY)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)  # Another process writes to it.
        tonnage.run("split", source, "--output", disk / "out", "--parts", "2", check=True)
    finally:
        os.close(lock)
    assert {*disk.iterdir()} == {source, alive, disk / "out"}
    assert len([*(disk / "out").iterdir()]) == 2


def test_of_a_file_that_cannot_be_read_to_its_end_there_are_no_parts(
    tonnage: Tonnage, disk: Path
) -> None:
    source = written(disk / "rows.parquet")
    content = bytearray(source.read_bytes())
    begins = pq.read_metadata(source).row_group(30).column(0).dictionary_page_offset
    content[begins : begins + 200] = bytes(200)
    source.write_bytes(content)
    done = tonnage.run("split", source, "--output", disk / "out", "--parts", "4")
    assert done.returncode == 1 and f"splitting {source}" in done.stderr, done.stderr
    assert [*disk.iterdir()] == [source]


def test_a_file_that_is_changed_meanwhile_is_told(disk: Path) -> None:
    source = written(disk / "rows")
    sources = Sources(ObjectStoreOptions(), 1)
    (file,) = sources.find(str(source))

    def append(_: int) -> None:
        with source.open("ab") as opened:
            opened.write(bytes(16))

    with pytest.raises(core.RunError, match="was changed while it was read"):
        split(file, disk / "out", 3, sources, dtype="2f8", on_progress=append)
    assert [*disk.iterdir()] == [source]


@given(some.lists(some.integers(0, 1000), min_size=1, max_size=60), some.data())
def test_groups_are_of_all_in_order_and_none_is_empty(sizes: list[int], data: Any) -> None:
    parts = data.draw(some.integers(1, len(sizes)))
    chunks = [Chunk(0, number, size, None) for number, size in enumerate(sizes)]
    groups = group_chunks(chunks, parts)
    assert [chunk for group in groups for chunk in group] == chunks
    assert len(groups) == parts and all(groups)
    if len({*sizes}) == 1:
        lengths = [*map(len, groups)]
        assert max(lengths) - min(lengths) <= 1


@pytest.mark.parametrize("total", [0, 1, PART_BYTES, 100 * PART_BYTES + 1])
@pytest.mark.parametrize("workers", [1, 3, 64])
def test_parts_come_out_even_for_workers(total: int, workers: int) -> None:
    parts = parts_for(workers, total)
    assert parts % workers == 0 and total <= parts * PART_BYTES
    assert parts == workers or total > (parts - workers) * PART_BYTES
