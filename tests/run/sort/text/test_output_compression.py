"""`run sort --by --compression`: what other programs read, and what a format does not have."""

import bz2
import gzip
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from support.cli.command import Tonnage
from support.stores.disk import disk_dir
from tonnage.base.records import RunRecord
from tonnage.measure.trial import environment
from tonnage.run.sort.tables import TableOrder, sort_table

MIB = 1 << 20


def zstd_text(file: bytes) -> bytes:
    with pa.CompressedInputStream(pa.BufferReader(file), "zstd") as stream:
        return bytes(stream.read())


OF_TEXT: dict[str, tuple[str, Callable[[bytes], bytes]]] = {
    "none": ("", bytes),
    "gzip": (".gz", gzip.decompress),
    "gzip:1": (".gz", gzip.decompress),
    "zstd": (".zst", zstd_text),
    "zstd:9": (".zst", zstd_text),
    "bzip2": (".bz2", bz2.decompress),
}


def sort_with(disk: Path, source: Path, order: TableOrder, memory: int = 64 * MIB) -> RunRecord:
    return sort_table(
        [source],
        [disk / "out"],
        [disk / "scratch"],
        order=order,
        memory_bytes=memory,
        environment=environment.capture([disk]),
        began_at="now",
        command=["test"],
    )


@pytest.mark.parametrize("compression", OF_TEXT)
def test_text_is_read_by_others(compression: str) -> None:
    suffix, text_of = OF_TEXT[compression]
    header = b"key,text\n"
    rows = [b"%d,some text of row %d\n" % (n * 7919 % 100_003, n) for n in range(100_000)]
    with disk_dir() as disk:
        (disk / "in.csv").write_bytes(header + b"".join(rows))
        order = TableOrder(by="key", compression=compression, file_bytes=MIB)
        record = sort_with(disk, disk / "in.csv", order)
        files = sorted((disk / "out").glob(f"part-*.csv{suffix}"))
        parts = [text_of(file.read_bytes()) for file in files]
        assert len(parts) > 3
        assert all(part.startswith(header) for part in parts)
        rows.sort(key=lambda row: int(row.partition(b",")[0]))
        assert b"".join(part.removeprefix(header) for part in parts) == b"".join(rows)
        assert record.written_bytes == sum(file.stat().st_size for file in files)
        codec, _, level = compression.partition(":")
        recorded = record.settings["format"]["text"]["compression"]
        assert recorded == {"codec": codec, "level": int(level) if level else None}


@pytest.mark.parametrize("compression", OF_TEXT)
def test_a_file_without_rows_is_one_of_its_codec(compression: str) -> None:
    suffix, text_of = OF_TEXT[compression]
    with disk_dir() as disk:
        (disk / "in.csv").write_bytes(b"key,text\n")
        sort_with(disk, disk / "in.csv", TableOrder(by="key", compression=compression))
        [file] = (disk / "out").glob(f"part-*.csv{suffix}")
        assert text_of(file.read_bytes()) == b"key,text\n"


@pytest.mark.parametrize(
    ("compression", "codec"),
    [
        (None, "SNAPPY"),
        ("none", "UNCOMPRESSED"),
        ("snappy", "SNAPPY"),
        ("zstd", "ZSTD"),
        ("zstd:7", "ZSTD"),
        ("lz4", "LZ4"),
        ("gzip:9", "GZIP"),
        ("brotli", "BROTLI"),
    ],
)
def test_parquet_has_the_codec(compression: str | None, codec: str) -> None:
    table = pa.table({"k": range(20_000), "text": [f"some text {n % 97}" for n in range(20_000)]})
    with disk_dir() as disk:
        pq.write_table(table, disk / "in.parquet")
        sort_with(disk, disk / "in.parquet", TableOrder(by="-k", compression=compression))
        files = sorted((disk / "out").glob("part-*.parquet"))
        got = pa.concat_tables(pq.read_table(file) for file in files)
        assert got.equals(table.sort_by([("k", "descending")]))
        metadata = pq.ParquetFile(files[0]).metadata.row_group(0)
        assert metadata.column(1).compression == codec


@pytest.mark.parametrize("compression", ["none", "lz4", "zstd"])
def test_arrow_is_read_by_pyarrow(compression: str) -> None:
    words = pa.array([f"word {n % 11}" for n in range(50_000)]).dictionary_encode()
    table = pa.table({"k": range(50_000), "word": words})
    with disk_dir() as disk:
        pq.write_table(table, disk / "in.parquet")
        order = TableOrder(by="-k", output_format="arrow", compression=compression)
        sort_with(disk, disk / "in.parquet", order)
        files = sorted((disk / "out").glob("part-*.arrow"))
        got = pa.concat_tables([pa.ipc.open_file(file).read_all() for file in files])
        expected = table.sort_by([("k", "descending")])
        assert got["k"].equals(expected["k"])
        assert got["word"].to_pylist() == expected["word"].to_pylist()
        is_smaller = sum(file.stat().st_size for file in files) < 8 * 50_000
        assert is_smaller == (compression != "none")


@pytest.mark.parametrize(
    ("file", "compression", "message"),
    [
        ("in.csv", "snappy", "snappy is no compression of text; use one of none, gzip, zstd, bz"),
        ("in.csv", "gzip:0", "gzip:0 is no compression of text"),
        ("in.parquet", "bzip2", "bzip2 is no compression of parquet; use one of none, snappy, "),
        ("in.parquet", "lz4:3", "zstd, gzip, brotli with a level of 1 to 9, too, as zstd:9"),
        ("in.arrow", "zstd:3", "zstd:3 is no compression of arrow; use one of none, lz4, zstd"),
    ],
)
def test_what_a_format_does_not_have_is_refused(
    tonnage: Tonnage, file: str, compression: str, message: str
) -> None:
    with disk_dir() as disk:
        (disk / file).write_bytes(b"k\n1\n")
        out = ["--output", str(disk / "out"), "--scratch", str(disk / "tmp")]
        arguments = ["--by", "k", "--compression", compression, *out]
        ended = tonnage.run("run", "sort", str(disk / file), *arguments)
        assert ended.returncode == 2
        assert "--compression: " in ended.stderr and message in ended.stderr
        assert not (disk / "out").exists()
