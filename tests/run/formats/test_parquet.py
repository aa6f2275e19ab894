"""A row group is decoded from its own bytes, by the calling thread."""

from __future__ import annotations

import io
import threading
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tonnage.run.formats import parquet
from tonnage.run.storage.object_store import ObjectStoreOptions
from tonnage.run.storage.sources import Sources

TABLE = pa.table({"x": [float(row) for row in range(300)], "y": [str(row) for row in range(300)]})


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A file of three row groups."""
    pq.write_table(TABLE, tmp_path / "a.parquet", row_group_size=100)
    return tmp_path / "a.parquet"


def test_each_row_group_is_decoded_out_of_its_span(file: Path) -> None:
    about, content = pq.read_metadata(file), file.read_bytes()
    for number in range(about.num_row_groups):
        begin, length = parquet.row_group_span(about, number)
        data = content[begin : begin + length]
        with parquet.open_row_group(about, len(content), begin, data) as opened:
            assert opened.read_row_group(number) == TABLE.slice(100 * number, 100)
            with pytest.raises(OSError, match="outside the row group"):
                opened.read_row_group((number + 1) % about.num_row_groups)


def test_fewer_bytes_than_the_row_group_has_are_an_error(file: Path) -> None:
    about, content = pq.read_metadata(file), file.read_bytes()
    begin, length = parquet.row_group_span(about, 1)
    data = content[begin : begin + length - 1]
    with (
        parquet.open_row_group(about, len(content), begin, data) as opened,
        pytest.raises(OSError, match="outside the row group"),
    ):
        opened.read_row_group(1)


def test_no_thread_of_arrow_reads(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    readers = set()
    read = parquet._Window.read

    def seen(window: io.RawIOBase, size: int | None = -1) -> bytes:
        readers.add(threading.get_ident())
        return read(window, size)

    monkeypatch.setattr(parquet._Window, "read", seen)
    about, content = pq.read_metadata(file), file.read_bytes()
    begin, length = parquet.row_group_span(about, 0)
    with parquet.open_row_group(
        about, len(content), begin, content[begin : begin + length]
    ) as opened:
        opened.read_row_group(0, use_threads=False)
    assert readers == {threading.get_ident()}


def test_rows_are_decoded_in_pieces_that_memory_holds(tmp_path: Path) -> None:
    path, count = tmp_path / "a.parquet", 300_000
    pq.write_table(pa.table({"x": [7] * count, "y": ["seven"] * count}), path)
    assert path.stat().st_size < 10_000  # Decoded, rows take 17 bytes each.
    sources = Sources(ObjectStoreOptions(), 1, reader_bytes=1 << 20)
    (file,) = sources.find(str(path))
    format = parquet.Parquet(parquet.Parquet.row_type(file, sources))
    (chunk,) = format.chunks(0, file, 1 << 20, sources)
    data = path.read_bytes()[chunk.offset :][: chunk.bytes]
    pieces = [*format.pieces(data, file, chunk, sources)]
    assert max(each.nbytes for each in pieces) <= 1.1 * (1 << 20)
    assert pa.Table.from_batches(pieces) == pq.read_table(path)


def test_a_row_group_that_memory_does_not_hold_is_read_by_pages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.parquet"
    rows = pa.table({"x": np.random.default_rng(1).random(1_000_000)})
    pq.write_table(rows, path, row_group_size=len(rows))
    sources = Sources(ObjectStoreOptions(), 1, reader_bytes=1 << 20)
    (file,) = sources.find(str(path))
    with monkeypatch.context() as patched:
        patched.setattr(Sources, "open", None)  # What reads a row group whole.
        batches = [*parquet.Parquet().batches(file, 0, 1, None, sources)]
    assert max(each.nbytes for each in batches) <= 1.1 * (1 << 20)
    assert pa.Table.from_batches(batches) == rows
