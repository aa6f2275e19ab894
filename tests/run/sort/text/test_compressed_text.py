"""`run sort --by` of compressed text: the same records come out as of the text itself."""

import bz2
import gzip
import lzma
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from support.cli.command import Tonnage
from support.stores.disk import disk_dir
from tonnage.base import core
from tonnage.base.records import RunRecord
from tonnage.measure.trial import environment
from tonnage.run.sort.dialect import Dialect
from tonnage.run.sort.tables import TableOrder, sort_table

MIB = 1 << 20


def zstd(text: bytes) -> bytes:
    return bytes(pa.Codec("zstd").compress(text, asbytes=True))


CODECS: dict[str, Callable[[bytes], bytes]] = {
    ".gz": gzip.compress,
    ".zst": zstd,
    ".bz2": bz2.compress,
}


def in_members(text: bytes, member_bytes: int, compress: Callable[[bytes], bytes]) -> bytes:
    """As pigz, bgzip, pbzip2 or cat make it: members end to end, which end within lines."""
    members = range(0, len(text), member_bytes)
    return b"".join(compress(text[at : at + member_bytes]) for at in members)


def sort_text(
    disk: Path, inputs: list[Path], by: str, memory: int = 64 * MIB, **order: Any
) -> RunRecord:
    return sort_table(
        inputs,
        [disk / "out"],
        [disk / "scratch"],
        order=TableOrder(by=by, stable=True, **order),
        memory_bytes=memory,
        environment=environment.capture([disk]),
        began_at="now",
        command=["test"],
    )


def parts(disk: Path, suffix: str) -> list[bytes]:
    return [path.read_bytes() for path in sorted((disk / "out").glob(f"part-*{suffix}"))]


@pytest.mark.parametrize("memory", [24 * MIB, 256 * MIB])
@pytest.mark.parametrize("codec", CODECS)
def test_lines_are_those_of_the_text(codec: str, memory: int) -> None:
    rng = random.Random(5)
    with disk_dir() as disk:
        source = disk / "in"
        source.mkdir()
        texts = []
        for number, lines in enumerate([120_000, 0, 1, 40_000]):
            text = b"".join(b"%x\n" % rng.getrandbits(rng.choice([8, 200])) for _ in range(lines))
            packed = in_members(text, 300_001, CODECS[codec]) if lines else CODECS[codec](text)
            (source / f"{number}.log{codec}").write_bytes(packed)
            texts.append(text)
        text = b"last\n" * 1000 + b"without a newline"
        (source / "plain.log").write_bytes(text)
        texts.append(text + b"\n")
        record = sort_text(disk, [source], "line", memory)
        got = b"".join(parts(disk, ".txt"))
        assert got == b"".join(sorted(b"".join(texts).splitlines(keepends=True)))
        assert record.records == got.count(b"\n")


@pytest.mark.parametrize("codec", CODECS)
def test_csv_has_one_header_and_keeps_its_order(codec: str) -> None:
    """Files are inputs of a stable sort in the order of their names, however they are read."""
    rng = random.Random(7)
    header = b"key,text\n"
    with disk_dir() as disk:
        (disk / "in").mkdir()
        rows = []
        for file in range(5):
            of_file = [
                b'%d,"line one\nof, %d ""%d"""\n' % (rng.randrange(300), file, number)
                for number in range(8_000)
            ]
            text = header + b"".join(of_file)
            packed = text if file == 2 else in_members(text, 100_000, CODECS[codec])
            name = "2.csv" if file == 2 else f"{file}.csv{codec}"
            (disk / "in" / name).write_bytes(packed)
            rows += of_file
        sort_text(disk, [disk / "in"], "key")
        got = parts(disk, ".csv")
        assert all(part.startswith(header) for part in got)
        rows.sort(key=lambda row: int(row.partition(b",")[0]))
        assert b"".join(part.removeprefix(header) for part in got) == b"".join(rows)


@pytest.mark.parametrize("memory", [16 * MIB, 128 * MIB])
def test_a_beginning_that_misleads_costs_time_only(memory: int) -> None:
    """It compresses a hundred times worse than the rest, and all its keys are below the others."""
    rng = random.Random(9)
    lines = [b"%012d %s\n" % (n, rng.randbytes(40).hex().encode()) for n in range(10_000)]
    lines += [b"%012d %s\n" % (n, b"x" * 100) for n in range(10_000, 500_000)]
    text = b"".join(lines)
    with disk_dir() as disk:
        (disk / "in.log.gz").write_bytes(gzip.compress(text, 1))
        record = sort_text(disk, [disk / "in.log.gz"], "-line", memory)
        assert b"".join(parts(disk, ".txt")) == b"".join(reversed(lines))
        assert record.repartitioned_bytes


def test_a_name_tells_nothing_of_the_codec() -> None:
    with disk_dir() as disk:
        (disk / "a.csv").write_bytes(gzip.compress(b"k\n2\n1\n"))
        (disk / "b.csv.gz").write_bytes(b"k\n0\n")
        sort_text(disk, [disk / "a.csv", disk / "b.csv.gz"], "k")
        rows = [part.removeprefix(b"k\n") for part in parts(disk, ".csv")]
        assert b"".join(rows) == b"0\n1\n2\n"


CUT_OFF, NO_STREAM = "stream is cut off at byte", "stream, or damaged"
DAMAGE: dict[str, tuple[str, Callable[[bytes], bytes]]] = {
    "cut off": (CUT_OFF, lambda packed: packed[: len(packed) // 2]),
    "a note behind it": (NO_STREAM, lambda packed: packed + b"and a note"),
    "zeros in it": (NO_STREAM, lambda packed: packed[:-3000] + bytes(20) + packed[-2980:]),
}


# PyArrow's zstd has no checksum, so some zeros in it are text, too.
DAMAGED = [(n, codec) for n in DAMAGE for codec in CODECS if (n, codec) != ("zeros in it", ".zst")]


@pytest.mark.parametrize(("name", "codec"), DAMAGED)
def test_what_is_damaged_is_named_and_nothing_is_written(name: str, codec: str) -> None:
    message, damage = DAMAGE[name]
    rng = random.Random(11)
    text = b"".join(b"%x\n" % rng.getrandbits(60) for _ in range(100_000))
    with disk_dir() as disk:
        (disk / f"in.log{codec}").write_bytes(damage(CODECS[codec](text)))
        with pytest.raises(core.UsageError, match=rf"in\.log\{codec}: .*{message}"):
            sort_text(disk, [disk / f"in.log{codec}"], "line")
        assert not (disk / "out").exists()


@pytest.mark.parametrize("codec", [".gz", ".zst"])
def test_one_line_of_zeros_is_refused_within_memory(tonnage: Tonnage, codec: str) -> None:
    with disk_dir() as disk:
        # 400 MB, of members that are made once.
        (disk / f"in.log{codec}").write_bytes(CODECS[codec](bytes(10_000_000)) * 40)
        out = ["--output", str(disk / "out"), "--scratch", str(disk / "tmp")]
        file = str(disk / f"in.log{codec}")
        ended = tonnage.run("run", "sort", file, "--by", "line", "--memory", "32MiB", *out)
        assert ended.returncode == 2
        assert f"in.log{codec}: the record at byte 0 of its text" in ended.stderr
        assert not (disk / "out").exists()


@pytest.mark.parametrize(
    ("name", "row", "why"),
    [
        (
            "in.txt",
            b"x" * 5_000_000,
            "a record that begins behind byte 0 has more than .* too long",
        ),
        ("in.json", b'{"k": "' + b"x" * 5_000_000 + b'"}', "its first line has more than a MiB"),
    ],
)
@pytest.mark.parametrize("memory", [32 * MIB, 1024 * MIB])
def test_records_are_too_long_whatever_memory_there_is(
    name: str, row: bytes, why: str, memory: int
) -> None:
    with disk_dir() as disk:
        (disk / name).write_bytes(row + b"\n")
        with pytest.raises(core.UsageError, match=why):
            sort_text(disk, [disk / name], "line" if name == "in.txt" else "k", memory)
        assert not (disk / "out").exists()


@pytest.mark.parametrize("memory", [32 * MIB, 1024 * MIB])
def test_a_record_longer_than_blocks_is_sorted(memory: int) -> None:
    long, short = b"2," + b"x" * 400_000 + b"\n", b"1,y\n"
    with disk_dir() as disk:
        (disk / "in.csv").write_bytes(b"k,v\n" + long + short)
        sort_text(disk, [disk / "in.csv"], "k", memory)
        sorted_records = [part.removeprefix(b"k,v\n") for part in parts(disk, ".csv")]
        assert b"".join(sorted_records) == short + long


def test_other_codecs_are_refused(tmp_path: Path) -> None:
    (tmp_path / "in.log.xz").write_bytes(lzma.compress(b"line\n"))
    order = "is compressed with xz; decompress it, or use one of gzip, zstd, bzip2"
    with pytest.raises(core.UsageError, match=order):
        sort_table(
            [tmp_path / "in.log.xz"],
            [tmp_path / "out"],
            [tmp_path / "scratch"],
            order=TableOrder(by="line", format="lines"),
            memory_bytes=64 * MIB,
            environment=environment.capture([tmp_path]),
            began_at="now",
            command=["test"],
        )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"k,v\r1,2\r3,4\r", r"in\.csv: its lines end with a carriage return alone"),
        (b"", r"in\.csv: it is empty, as all files are"),
        (b"\n1,2\n", r"in\.csv: its first line names no columns"),
        ("k,v\n1,2\n".encode("utf-16"), r"in\.csv: its first line has NUL bytes, as of UTF-16"),
    ],
)
def test_csv_whose_lines_are_none_is_refused(text: bytes, message: str) -> None:
    with disk_dir() as disk:
        (disk / "in.csv").write_bytes(text)
        with pytest.raises(core.UsageError, match=message):
            sort_text(disk, [disk / "in.csv"], "k")


@pytest.mark.parametrize("codec", [None, *CODECS])
@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-32"])
def test_json_of_other_encodings_is_refused(codec: str | None, encoding: str) -> None:
    text = '{"k": 1}\n'.encode(encoding)
    with disk_dir() as disk:
        file = disk / f"in.json{codec or ''}"
        file.write_bytes(CODECS[codec](text) if codec else text)
        with pytest.raises(core.UsageError, match=r"in\.json\S*: its first line has NUL bytes"):
            sort_text(disk, [file], "k")


@pytest.mark.parametrize("codec", [None, *CODECS])
def test_a_byte_order_mark_is_no_part_of_a_value(codec: str | None) -> None:
    mark = b"\xef\xbb\xbf"
    texts = {"f0": b"2,x\n1,y\n", "k": b'{"k": 2}\n{"k": 1}\n'}
    for by, text in texts.items():
        with disk_dir() as disk:
            file = disk / f"in.{'csv' if by == 'f0' else 'json'}{codec or ''}"
            file.write_bytes(CODECS[codec](mark + text) if codec else mark + text)
            sort_text(disk, [file], by, dialect=Dialect(has_header=by == "k"))
            [got] = parts(disk, "l" if by == "k" else ".csv")
            assert got == b"".join(text.splitlines(keepends=True)[::-1])


def test_csv_keeps_its_line_ends_and_loses_its_mark() -> None:
    rows = [b"2,x\0\r\n", b"10,y\r\n", b"1,z"]
    header = b"k,v\r\n"
    with disk_dir() as disk:
        (disk / "in.csv").write_bytes(b"\xef\xbb\xbf" + header + b"".join(rows))
        sort_text(disk, [disk / "in.csv"], "k")
        got = parts(disk, ".csv")
        assert all(part.startswith(header) for part in got)
        body = b"".join(part.removeprefix(header) for part in got)
        assert body == b"1,z\n" + rows[0] + rows[1]
