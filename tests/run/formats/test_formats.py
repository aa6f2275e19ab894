"""Formats: chunks hold each row once, and files of other kinds are refused."""

from __future__ import annotations

import gzip
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.ipc as ipc
import pyarrow.parquet as pq
import pytest

from tonnage import MapReduce, counts
from tonnage.base import core
from tonnage.run.formats import as_points, blocks_of_points, columns, detect_chunk_format, lines
from tonnage.run.reduce.index import build_index
from tonnage.run.reduce.index_store import find_chunks
from tonnage.run.storage.object_store import ObjectStoreOptions
from tonnage.run.storage.sources import Sources


def read(paths: Sequence[Path], chunk_bytes: int) -> list[Any]:
    """The rows of each chunk of some files."""
    sources = Sources(ObjectStoreOptions(), 1)
    files = [file for path in paths for file in sources.find(str(path))]
    index = build_index(
        files, detect_chunk_format(files, None, None, sources), chunk_bytes, sources
    )
    found = []
    for chunk in index.chunks:
        content = Path(files[chunk.file].name).read_bytes()[chunk.offset :][: chunk.bytes]
        found.append(index.format.decode(content, files[chunk.file], chunk, sources))
    return found


def table(rows: int) -> pa.Table:
    """Columns of several types."""
    numbers = np.arange(rows)
    return pa.table(
        {
            "number": numbers,
            "half": pa.array(numbers / 2, mask=numbers % 5 == 0),
            "text": [f"row {each}" for each in numbers],
            "kind": pa.array([f"{each % 3}" for each in numbers]).dictionary_encode(),
        }
    )


@pytest.mark.parametrize("codec", [None, "lz4", "zstd"])
@pytest.mark.parametrize("dictionaries", [True, False])
@pytest.mark.parametrize(("chunk_bytes", "chunks"), [(1, 20), (8_000, None), (1 << 30, 1)])
def test_chunks_of_arrow_are_its_batches(
    disk: Path, codec: str | None, dictionaries: bool, chunk_bytes: int, chunks: int | None
) -> None:
    rows = table(1000) if dictionaries else table(1000).drop(["kind"])
    options = ipc.IpcWriteOptions(compression=codec)
    with ipc.new_file(disk / "a.arrow", rows.schema, options=options) as out:
        out.write_table(rows, max_chunksize=50)
    found = read([disk / "a.arrow"], chunk_bytes)
    assert chunks is None or len(found) == chunks
    assert chunks or 1 < len(found) < 20
    assert pa.Table.from_batches(found).to_pylist() == rows.to_pylist()


def test_a_batch_is_not_copied(disk: Path) -> None:
    with ipc.new_file(disk / "a.arrow", pa.schema([("x", pa.float64())])) as out:
        out.write_table(pa.table({"x": np.arange(100.0)}))
    sources = Sources(ObjectStoreOptions(), 1)
    (file,) = sources.find(str(disk / "a.arrow"))
    format = detect_chunk_format([file], None, None, sources)
    (chunk,) = format.chunks(0, file, 1, sources)
    data = np.frombuffer((disk / "a.arrow").read_bytes(), np.uint8)[chunk.offset :]
    found = format.decode(memoryview(data[: chunk.bytes]), file, chunk, sources)
    begins = data.ctypes.data
    assert begins < found.column(0).buffers()[1].address < begins + chunk.bytes


def test_feather_and_files_of_no_batches(disk: Path) -> None:
    feather.write_feather(table(300), disk / "a.feather", chunksize=100)
    with ipc.new_file(disk / "b.arrow", table(1).schema):
        pass
    found = read([disk / "a.feather", disk / "b.arrow"], 1)
    assert len(found) == 3
    assert pa.Table.from_batches(found).to_pylist() == table(300).to_pylist()


def test_a_long_footer_is_read_whole(disk: Path) -> None:
    rows = pa.table({"x": np.arange(6000)})
    with ipc.new_file(disk / "a.arrow", rows.schema) as out:
        out.write_table(rows, max_chunksize=1)
    found = read([disk / "a.arrow"], 1 << 16)
    assert np.concatenate([each.column(0).to_numpy() for each in found]).tolist() == [*range(6000)]


@pytest.mark.parametrize("cut", [0, 1, 6, 30, 200])
def test_a_part_of_arrow_is_none(disk: Path, cut: int) -> None:
    feather.write_feather(table(300), disk / "a.feather")
    whole = (disk / "a.feather").read_bytes()
    for part in (whole[:cut], whole[: len(whole) - cut - 1], whole[: cut + 8] + whole[-10:]):
        (disk / "b.feather").write_bytes(part)
        with pytest.raises(core.UsageError, match=r"b\.feather is not a valid arrow file"):
            read([disk / "b.feather"], 1)


def written(path: Path, columns: dict[str, Any]) -> None:
    """A file of the kind that its name says."""
    if path.suffix == ".parquet":
        pq.write_table(pa.table(columns), path)
    elif path.suffix == ".arrow":
        feather.write_feather(pa.table(columns), path)
    elif path.suffix == ".csv":
        lines = [
            ",".join(columns),
            *(",".join(map(str, row)) for row in zip(*columns.values(), strict=True)),
        ]
        path.write_text("\n".join(lines))
    elif path.suffix == ".jsonl":
        rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
        path.write_text("\n".join(map(json.dumps, rows)))
    else:
        np.save(path, np.array([*zip(*columns.values(), strict=True)]).astype(float))


@pytest.mark.parametrize(
    ("suffix", "told"),
    [
        ("parquet", "x: int64, z: int64, but those of other files are x: int64, y: int64"),
        ("arrow", "x: int64, z: int64, but those of other files are x: int64, y: int64"),
        ("csv", "x,z, but those of other files are x,y"),
        ("jsonl", r'\["x", "z"\], but those of other files are \["x", "y"\]'),
    ],
)
def test_files_of_other_columns_are_refused(disk: Path, suffix: str, told: str) -> None:
    written(disk / f"a.{suffix}", {"x": [1, 2], "y": [3, 4]})
    written(disk / f"b.{suffix}", {"x": [1, 2], "y": [5, 6]})
    assert len(find_chunks([str(disk)], ObjectStoreOptions()).files) == 2
    written(disk / f"c.{suffix}", {"x": [1, 2], "z": [5, 6]})
    with pytest.raises(core.UsageError, match=rf"c\.{suffix}: its rows are {told}"):
        find_chunks([str(disk)], ObjectStoreOptions())


@pytest.mark.parametrize("chunk_bytes", [1, 40, 1000, 1 << 20])
def test_csv_whose_values_hold_line_ends_is_refused_wherever_it_is_cut(
    disk: Path, chunk_bytes: int
) -> None:
    rows = [f'{row},"first line\n7,second line"' for row in range(50)]
    (disk / "a.csv").write_text("\n".join(["n,text", *rows]))
    with pytest.raises(pa.ArrowInvalid, match="a quoted value contains a line break"):
        read([disk / "a.csv"], chunk_bytes)


@pytest.mark.parametrize("chunk_bytes", [1, 40, 1000, 1 << 20])
def test_quotes_in_csv_are_read_wherever_it_is_cut(disk: Path, chunk_bytes: int) -> None:
    texts = ["plain", '"a ""b"", c"', '""', '5" pipe', '"a"b"c', '""""', ""]
    told = ["plain", 'a "b", c', "", '5" pipe', 'ab"c', '"', ""]
    (disk / "a.csv").write_text("n,text\n" + "".join(f"1,{text}\n\n" for text in texts * 9))
    found = [
        row["text"] for each in read([disk / "a.csv"], chunk_bytes) for row in each.to_pylist()
    ]
    assert found == told * 9


def test_keys_of_json_may_come_in_another_order_in_another_file(disk: Path) -> None:
    (disk / "a.jsonl").write_text("".join(f'{{"x": {n}, "y": {1000 + n}}}\n' for n in range(9)))
    (disk / "b.jsonl").write_text("".join(f'{{"y": {1000 + n}, "x": {n}}}\n' for n in range(9)))
    found = [as_points(each) for each in read([disk / "a.jsonl", disk / "b.jsonl"], 40)]
    assert len(found) > 4
    expected = [[n, 1000 + n] for n in range(9)]
    np.testing.assert_array_equal(np.concatenate(found), expected + expected)


def test_keys_of_json_that_only_some_objects_have_are_told(
    disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lines, "BEGINNING_BYTES", 4)
    (disk / "a.jsonl").write_text('{"x": 1}\n{"x": 2, "z": 3}\n')
    with pytest.raises(ValueError, match=r"some objects have \['z'\]"):
        read([disk / "a.jsonl"], 1 << 20)


@pytest.mark.parametrize("kind", ["f4", "i2", "3f4", "2i8"])
def test_rows_become_points_a_block_at_a_time(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(columns, "BLOCK_BYTES", 100)
    rows = np.arange(300).astype(np.dtype(kind).base)
    rows = rows.reshape(-1, *np.dtype(kind).shape) if np.dtype(kind).shape else rows[:, None]
    blocks = [*blocks_of_points(rows)]
    assert [first for first, _ in blocks] == [*range(0, len(rows), len(blocks[0][1]))]
    assert max(points.nbytes for _, points in blocks) <= 100
    np.testing.assert_array_equal(np.concatenate([points for _, points in blocks]), rows)
    named = pa.record_batch({"x": rows[:, 0], "y": rows[:, -1]})
    found = np.concatenate([points for _, points in blocks_of_points(named, ["y"])])
    np.testing.assert_array_equal(found, rows[:, -1:])


TWO_ROWS = {
    "csv": "k,v{0}1,2{0}3,4",
    "json": '{{"k": 1, "v": 2}}{0}{{"k": 3, "v": 4}}',
    "txt": "1,2{0}3,4",
}


@pytest.mark.parametrize("end", ["", "\r"])
@pytest.mark.parametrize("suffix", TWO_ROWS)
def test_lines_may_end_in_cr(disk: Path, suffix: str, end: str) -> None:
    path = disk / f"in.{suffix}"
    path.write_bytes((TWO_ROWS[suffix].format("\r") + end).encode())
    key = "line" if suffix == "txt" else "k"
    record = MapReduce(key=key).run(path, disk / "out", disk / "scratch", workers=1)
    (part,) = (disk / "out").glob("part-*")
    expected = ["1,2", "3,4"] if suffix == "txt" else [1, 3]
    assert record.records == 2 and pq.read_table(part)[key].to_pylist() == expected
    if suffix != "txt":
        whole = [len(rows) for rows in read([path], 1 << 20)]
        assert whole == [2] and [len(rows) for rows in read([path], 1)] == [1, 1]


def test_a_cr_within_the_first_line_is_refused(disk: Path) -> None:
    (disk / "in.csv").write_bytes(b"k,v\rw\n1,2,3\n")
    with pytest.raises(core.UsageError, match="its first line is not text"):
        read([disk / "in.csv"], 100)


@pytest.mark.parametrize("format", ["csv", "json", "lines"])
def test_compressed_text_is_refused(disk: Path, format: str) -> None:
    path = disk / "in.csv.gz"
    path.write_bytes(gzip.compress(b"k,v\n1,2\n3,4\n"))
    job = MapReduce(key="line" if format == "lines" else "k")
    with pytest.raises((core.UsageError, core.RunError), match="is compressed with gzip"):
        job.run(path, disk / "out", disk / "scratch", input_format=format, workers=1)


LONG = [2**64 - 1, 2**64 - 2, 2**64 - 1]


@pytest.mark.parametrize(
    ("suffix", "more", "kind"),
    [
        ("csv", [], pa.uint64()),
        ("json", [], pa.uint64()),
        ("csv", [-1], pa.decimal128(38, 0)),
        ("json", [-1], pa.decimal128(38, 0)),
        ("csv", [10**40], pa.string()),
        ("json", [10**40], pa.decimal256(76, 0)),
    ],
)
def test_integers_of_more_than_63_bits_are_exact(
    disk: Path, suffix: str, more: list[int], kind: pa.DataType
) -> None:
    keys = LONG + more
    lines = (
        ["k,x", *(f"{key},0.5" for key in keys)]
        if suffix == "csv"
        else [f'{{"k": {key}, "x": 0.5}}' for key in keys]
    )
    path = disk / f"in.{suffix}"
    path.write_text("\n".join(lines) + "\n")
    MapReduce(key="k", reduce=counts(key="k"), ordered=True).run(
        path, disk / "out", disk / "scratch", format="arrow", workers=1
    )
    parts = sorted((disk / "out").glob("part-*"))
    found = pa.concat_tables(ipc.open_file(part).read_all() for part in parts)
    assert found["k"].type == kind
    assert sorted(int(each) for each in found["k"].to_pylist()) == sorted({*keys})
    assert sum(found["n"].to_pylist()) == len(keys)
    (rows,) = read([path], 1 << 20)
    assert rows["k"].type == kind and rows["x"].type == pa.float64()


@pytest.mark.parametrize("text", [b"BZhang,1\n", b"BZh9\n", b"\x1f,1\n"])
def test_a_line_may_begin_like_a_compressed_file(text: bytes) -> None:
    assert lines.compression(text) is None
