"""Text of several files, some of which are empty."""

import gzip
from pathlib import Path

import pytest

from run.sort.test_typed_text import sort_files
from tonnage.base import core
from tonnage.run.sort.dialect import Dialect
from tonnage.run.sort.tables import TableOrder

HEADER = b"k,v\n"
ROWS = [b"10,a\n", b"9,b\n", b"-1,c\n"]
EMPTY = {"no bytes": b"", "a header": b"k,v", "a mark": b"\xef\xbb\xbf", "gzip": gzip.compress(b"")}


def write(directory: Path, files: dict[str, bytes]) -> list[Path]:
    directory.mkdir()
    for name, content in files.items():
        (directory / name).write_bytes(content)
    return [directory / name for name in files]


@pytest.mark.parametrize("empty", EMPTY.values(), ids=EMPTY)
@pytest.mark.parametrize("output", [None, "json"])
def test_empty_csv_files_hide_no_types(empty: bytes, output: str | None, tmp_path: Path) -> None:
    files = {"a.csv": empty, "b.csv": HEADER + ROWS[0], "c.csv": HEADER + b"".join(ROWS[1:])}
    inputs = write(tmp_path / "in", files)
    _, parts = sort_files(tmp_path, inputs, TableOrder(by="k", output_format=output))
    lines = [line for part in parts for line in part.read_bytes().splitlines(keepends=True)]
    if output is None:
        assert [line for line in lines if line != HEADER] == ROWS[::-1]
        assert lines.count(HEADER) == len(parts)
    else:
        assert [line[5:7].strip(b",") for line in lines] == [b"-1", b"9", b"10"]


def test_headers_alone_are_an_empty_table(tmp_path: Path) -> None:
    inputs = write(tmp_path / "in", {"a.csv": HEADER, "b.csv": b"k,v"})
    _, parts = sort_files(tmp_path, inputs, TableOrder(by="k"))
    assert [part.read_bytes() for part in parts] == [HEADER]


@pytest.mark.parametrize("name", ["a.csv", "a.json"])
def test_nothing_at_all_has_no_columns(name: str, tmp_path: Path) -> None:
    inputs = write(tmp_path / "in", {name: b"", f"{name}.gz": gzip.compress(b"")})
    order = TableOrder(by="k", output_format="parquet", format=name[2:])
    with pytest.raises(core.UsageError, match=rf"input \S+{name}\.gz: it is empty, as all"):
        sort_files(tmp_path, inputs, order)


def test_blank_json_files_hide_no_kinds(tmp_path: Path) -> None:
    rows = b'{"k": 10}\n{"k": 9}\n'
    inputs = write(tmp_path / "in", {"a.json": gzip.compress(b""), "b.json": rows})
    _, parts = sort_files(tmp_path, inputs, TableOrder(by="k"))
    assert b"".join(part.read_bytes() for part in parts) == b'{"k": 9}\n{"k": 10}\n'


BROKEN_QUOTES = {
    "no end": b'3,"c\n4,d\n',
    "two values": b'3,5" pipe\n4,6" pipe\n5,x\n',
    "behind a quote": b'3,"c\n" x\n4,d\n',
}


@pytest.mark.parametrize("broken", BROKEN_QUOTES.values(), ids=BROKEN_QUOTES)
@pytest.mark.parametrize("output", [None, "parquet"])
@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_records_that_a_quote_joins_are_refused(
    broken: bytes, output: str | None, suffix: str, tmp_path: Path
) -> None:
    text = b'k,v\n1,"a\n ""quoted"""\n2,5" or 6"\n' + broken
    text = gzip.compress(text) if suffix else text
    inputs = write(tmp_path / "in", {f"a.csv{suffix}": text})
    order = TableOrder(by="k", schema="k:int64", output_format=output)
    with pytest.raises(core.UsageError, match=r"a\.csv\S*: .* line 5 \(byte .* has .*quote"):
        sort_files(tmp_path, inputs, order)
    with pytest.raises(core.UsageError, match=r"a\.csv\S*: .* line 5 \(byte .* has .*quote"):
        sort_files(tmp_path, inputs, TableOrder(by="k"))


WRONG_FIELDS = {
    "fewer": (b"4\n", "1 field, and there are 2 columns"),
    "more": (b"4,d,e\n", "more than 2 fields, and there are 2 columns"),
    "more, with quotes": (b'4,"d,d",e\n', "more than 2 fields"),
    "a delimiter at the end": (b"4,d,\r\n", "more than 2 fields"),
    "fewer at the end": (b"4", "1 field,"),
}


@pytest.mark.parametrize("kind", WRONG_FIELDS)
@pytest.mark.parametrize("header", [True, False])
@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_records_with_more_or_fewer_fields_are_refused(
    kind: str, header: bool, suffix: str, tmp_path: Path
) -> None:
    record, what = WRONG_FIELDS[kind]
    # Types are inferred from whole records, so the wrong one is behind what is looked at for them.
    right = b'1,"a,\nb"\n\n' * 150_000
    text = (HEADER if header else b"") + right + record
    inputs = write(tmp_path / "in", {f"a.csv{suffix}": gzip.compress(text) if suffix else text})
    order = TableOrder(by="k" if header else "f0", dialect=Dialect(has_header=header))
    line = 450_000 + header + 1
    with pytest.raises(core.UsageError, match=rf"a\.csv\S*: .* line {line} \(byte .*{what}"):
        sort_files(tmp_path, inputs, order)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("columns", [1, 2])
def test_blank_lines_are_values_of_one_column_and_no_records_of_several(
    columns: int, tmp_path: Path
) -> None:
    rows = [[number] + [b"x"] * (columns - 1) for number in (b"2", b"1")]
    header = b",".join([b"k", b"v"][:columns]) + b"\n"
    first, last = (b",".join(row) + b"\n" for row in rows)
    inputs = write(tmp_path / "in", {"a.csv": header + first + b"\n\r\n" + last + b"\n"})
    record, parts = sort_files(tmp_path, inputs, TableOrder(by="k", stable=True))
    blank = [b"\n", b"\r\n", b"\n"] if columns == 1 else []
    assert b"".join(part.read_bytes() for part in parts) == b"".join([header, last, first, *blank])
    assert record.records == 2 + len(blank)


@pytest.mark.parametrize("output", [None, "json"])
@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_later_files_whose_lines_end_with_a_return_are_refused(
    output: str | None, suffix: str, tmp_path: Path
) -> None:
    later = (HEADER + ROWS[1]).replace(b"\n", b"\r")
    files = {"a.csv": HEADER + ROWS[0], f"b.csv{suffix}": gzip.compress(later) if suffix else later}
    inputs = write(tmp_path / "in", files)
    with pytest.raises(core.UsageError, match=r"b\.csv\S*: its lines end with a carriage return"):
        sort_files(tmp_path, inputs, TableOrder(by="k", output_format=output))
