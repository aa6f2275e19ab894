"""`run sort --by` of CSV and JSON as columns: into any format, from any, and not a value changes.

Text is made and read back here by other means than the program's: regular expressions, ``json``,
and MapReduce's plain values.
"""

import base64
import csv
import io
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv
import pyarrow.ipc as ipc
import pyarrow.parquet as pq
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from run.sort.test_tables import MIB, by_order, events, rows_of, tables
from support.cli.command import Tonnage
from support.stores.disk import disk_dir
from tonnage.base import core
from tonnage.base.records import RunRecord
from tonnage.measure.trial import environment
from tonnage.run.formats.plain_values import plain_values
from tonnage.run.sort.dialect import Dialect
from tonnage.run.sort.tables import TableOrder, sort_table

CELL = re.compile(r'("(?:[^"]|"")*"|[^",\n]*)([,\n])')


def sort_files(
    disk: Path, inputs: Sequence[Path], order: TableOrder, memory: int = 64 * MIB
) -> tuple[RunRecord, list[Path]]:
    """Sorts without the command's start; gives the record, and the files of the output."""
    record = sort_table(
        list(inputs),
        [disk / "out"],
        [disk / "scratch"],
        order=order,
        memory_bytes=memory,
        environment=environment.capture([disk]),
        began_at="now",
        command=["test"],
    )
    assert list((disk / "scratch").iterdir()) == []
    return record, sorted((disk / "out").glob("part-*"))


def sorted_table(disk: Path, inputs: Sequence[Path], order: TableOrder) -> pa.Table:
    parts = sort_files(disk, inputs, order)[1]
    return pa.concat_tables([pq.read_table(part) for part in parts])


def sorted_text(disk: Path, text: str | bytes, order: TableOrder, name: str = "in.csv") -> str:
    """The text of all files of the output, the header once."""
    (disk / name).write_bytes(text.encode() if isinstance(text, str) else text)
    parts = sort_files(disk, [disk / name], order)[1]
    texts = [part.read_bytes().decode() for part in parts]
    has_header = parts[0].suffix in (".csv", ".tsv") and order.dialect.has_header
    begin = texts[0].index("\n") + 1 if has_header else 0
    return "".join([texts[0], *(each[begin:] for each in texts[1:])])


def schema_of(schema: pa.Schema) -> str:
    return ",".join(f"{each.name}:{each.type}" for each in schema)


def is_flat(data_type: pa.DataType) -> bool:
    return not pa.types.is_nested(data_type)


def cells(table: pa.Table) -> list[list[str | None]]:
    """Each row's values as CSV has them, but for quotes."""
    columns = []
    for column in table.columns:
        if pa.types.is_binary(column.type) or pa.types.is_fixed_size_binary(column.type):
            values = [None if each is None else each.hex() for each in column.to_pylist()]
        elif pa.types.is_floating(column.type):
            values = [None if each is None else repr(each) for each in column.to_pylist()]
        else:
            values = [
                each if each is None or isinstance(each, str) else json.dumps(each)
                for each in plain_values(column.combine_chunks())
            ]
        columns.append(values)
    return [list(row) for row in zip(*columns, strict=True)]


def csv_text(table: pa.Table, *, quote_all: bool) -> str:
    def cell(value: str | None) -> str:
        if value is None:
            return ""
        is_quoted = quote_all or not value or any(each in value for each in ',"\r\n')
        return '"' + value.replace('"', '""') + '"' if is_quoted else value

    rows: list[list[str | None]] = [list(table.column_names), *cells(table)]
    return "".join(",".join(map(cell, row)) + "\n" for row in rows)


def csv_rows(text: str) -> list[list[str | None]]:
    """Rows without the header; an empty field that is not quoted is None."""
    rows: list[list[str | None]] = [[]]
    end = 0
    for found in CELL.finditer(text):
        assert found.start() == end
        end = found.end()
        field = found[1]
        rows[-1].append(field[1:-1].replace('""', '"') if field.startswith('"') else field or None)
        if found[2] == "\n":
            rows.append([])
    assert end == len(text)
    assert rows.pop() == []
    return rows[1:]


def json_text(table: pa.Table) -> str:
    columns = [plain_values(column.combine_chunks()) for column in table.columns]
    rows = zip(*columns, strict=True)
    return "".join(
        json.dumps({k: v for k, v in zip(table.column_names, row, strict=True) if v is not None})
        + "\n"
        for row in rows
    )


def same_floats(rows: Any, schema: pa.Schema) -> Any:
    """Values that are floats in the schema as such: text has as many digits as it needs."""
    floats = [place for place, each in enumerate(schema) if pa.types.is_floating(each.type)]
    for row in rows:
        for place in floats:
            if row[place] is not None:
                value = pa.array([float(row[place])], schema.field(place).type)
                row[place] = repr(value[0].as_py())
    return rows


def expected_table(table: pa.Table, order: list[tuple[str, bool, bool]]) -> pa.Table:
    """The table in its order, equal rows as they were."""
    numbered = rows_of(table.append_column("row number", pa.array(range(table.num_rows))))
    places = [row["row number"] for row in sorted(numbered, key=by_order(order))]
    return table.take(pa.array(places, pa.int64()))


@settings(max_examples=60)
@given(tables(), st.booleans(), st.integers(1, 3))
def test_csv_is_sorted_as_its_values_are(
    drawn: tuple[pa.Table, str, list[tuple[str, bool, bool]]], quote_all: bool, files: int
) -> None:
    table, by, order = drawn
    table = table.select([each.name for each in table.schema if is_flat(each.type)])
    expected = expected_table(table, order)
    with disk_dir() as disk:
        source = disk / "in"
        source.mkdir()
        each = -(-table.num_rows // files)
        for number in range(files):
            text = csv_text(table.slice(number * each, each), quote_all=quote_all)
            (source / f"{number}.csv").write_bytes(text.encode())
        wanted = TableOrder(
            by=by, stable=True, schema=schema_of(table.schema), output_format="parquet"
        )
        got = sorted_table(disk, [source], wanted)
        assert got.schema.equals(table.schema)
        assert repr(rows_of(got)) == repr(rows_of(expected))


@settings(max_examples=60)
@given(tables())
def test_csv_has_the_values_of_columns(
    drawn: tuple[pa.Table, str, list[tuple[str, bool, bool]]],
) -> None:
    table, by, order = drawn
    table = table.select([each.name for each in table.schema if is_flat(each.type)])
    expected = cells(expected_table(table, order))
    with disk_dir() as disk:
        pq.write_table(table, disk / "in.parquet")
        wanted = TableOrder(by=by, stable=True, output_format="csv")
        parts = sort_files(disk, [disk / "in.parquet"], wanted)[1]
        found = [row for part in parts for row in csv_rows(part.read_bytes().decode())]
        assert same_floats(found, table.schema) == same_floats(expected, table.schema)


@settings(max_examples=60)
@given(tables(), st.integers(1, 3))
def test_json_is_sorted_as_its_values_are(
    drawn: tuple[pa.Table, str, list[tuple[str, bool, bool]]], files: int
) -> None:
    table, by, order = drawn
    is_finite = [
        pc.all(pc.is_finite(each)).as_py() for each in table if pa.types.is_floating(each.type)
    ]
    assume(False not in is_finite)
    expected = expected_table(table, order)
    with disk_dir() as disk:
        source = disk / "in"
        source.mkdir()
        each = -(-table.num_rows // files)
        for number in range(files):
            text = json_text(table.slice(number * each, each))
            (source / f"{number}.jsonl").write_text(text)
        wanted = TableOrder(
            by=by, stable=True, schema=schema_of(table.schema), output_format="parquet"
        )
        got = sorted_table(disk, [source], wanted)
        assert got.schema.equals(table.schema)
        assert repr(rows_of(got)) == repr(rows_of(expected))


@settings(max_examples=60)
@given(tables())
def test_json_has_the_values_of_columns(
    drawn: tuple[pa.Table, str, list[tuple[str, bool, bool]]],
) -> None:
    table, by, order = drawn
    floats = [each for each in table if pa.types.is_floating(each.type)]
    assume(all(pc.all(pc.is_finite(each)).as_py() is not False for each in floats))
    sorted_columns = expected_table(table, order).columns
    expected = zip(*(plain_values(each.combine_chunks()) for each in sorted_columns), strict=True)
    with disk_dir() as disk:
        pq.write_table(table, disk / "in.parquet")
        wanted = TableOrder(by=by, stable=True, output_format="json")
        parts = sort_files(disk, [disk / "in.parquet"], wanted)[1]
        lines = [line for part in parts for line in part.read_text().split("\n")[:-1]]
        found = [json.loads(line) for line in lines]
        assert all(list(row) == table.column_names for row in found)
        rows = same_floats([list(row.values()) for row in found], table.schema)
        assert rows == same_floats([list(row) for row in expected], table.schema)


@pytest.mark.parametrize("name", ["csv", "json"])
def test_what_is_larger_than_memory_goes_through_scratch(name: str) -> None:
    table = events(200_000)
    with disk_dir() as disk:
        pq.write_table(table, disk / "in.parquet", row_group_size=50_000)
        text, columns = disk / "text", disk / "columns"
        text.mkdir()
        columns.mkdir()
        order = TableOrder(by="amount", stable=True, output_format=name)
        record, parts = sort_files(text, [disk / "in.parquet"], order, 12 * MIB)
        assert record.shuffled_bytes is not None and record.shuffled_bytes > 12 * MIB
        order = TableOrder(by="user,-ts", output_format="parquet", schema="ts:timestamp[us]")
        record, parts = sort_files(columns, parts, order, 12 * MIB)
        assert record.shuffled_bytes is not None and record.shuffled_bytes > 12 * MIB
        got = pa.concat_tables([pq.read_table(part) for part in parts])
        keys = [("user", "ascending"), ("ts", "descending"), ("payload", "ascending")]
        expected = table.take(pc.sort_indices(table, sort_keys=keys))
        assert got.schema.equals(table.schema)
        assert got.take(pc.sort_indices(got, sort_keys=keys)).equals(expected)
        assert got.select(["user", "ts"]).equals(expected.select(["user", "ts"]))


def test_types_are_inferred_and_pyarrow_reads_what_is_written(tmp_path: Path) -> None:
    text = (
        "n,big,huge,x,when,day,zone,flag,name,empty\n"
        "2,18446744073709551615,-1,0.5,2020-01-02T00:00:00,2020-01-02,2020-01-01T00:00:00Z,"
        'true,"a,\n""b""",\n'
        "1,3,99999999999999999999,1e300,2020-01-01 00:00:00,2020-01-01,2020-01-01T01:00:00+01:00,"
        'false,"",\n'
    )
    (tmp_path / "in.csv").write_text(text)
    got = sorted_table(tmp_path, [tmp_path / "in.csv"], TableOrder(by="n", output_format="parquet"))
    expected = pa_csv.read_csv(
        io.BytesIO(text.encode()),
        parse_options=pa_csv.ParseOptions(newlines_in_values=True),
        convert_options=pa_csv.ConvertOptions(
            column_types={
                "big": pa.uint64(),
                "huge": pa.decimal128(38, 0),
                "empty": pa.string(),
                "when": pa.timestamp("ms"),  # Parquet has no seconds.
                "zone": pa.timestamp("ms", "UTC"),
            },
            null_values=[""],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        ),
    )
    assert got.equals(expected.take([1, 0]))


def test_text_stays_text_where_csv_becomes_csv(tmp_path: Path) -> None:
    text = "id,zip,t\n1,007,2020-01-01T00:00:00.5\n2,1.50,2020-01-01T00:00:00\n"
    got = sorted_text(tmp_path, text, TableOrder(by="t", columns=["zip", "t"]))
    assert got == "zip,t\n1.50,2020-01-01T00:00:00\n007,2020-01-01T00:00:00.500000000\n"


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (["18446744073709551615", "1", "2"], ["1", "2", "18446744073709551615"]),
        (["-9223372036854775809", "1", ""], ["-9223372036854775809", "1", ""]),
        (["9" * 40, "-" + "9" * 39, "8" * 40], ["-" + "9" * 39, "8" * 40, "9" * 40]),
    ],
)
def test_keys_that_no_bytes_compare_as_are_decoded(
    values: list[str], expected: list[str], tmp_path: Path
) -> None:
    text = "k,v\n" + "".join(f"{value},01\n" for value in values)
    got = sorted_text(tmp_path, text, TableOrder(by="k"))
    assert got == "k,v\n" + "".join(f"{value},01\n" for value in expected)


def test_nested_json_is_carried_along(tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [
        {"k": 2, "at": {"x": [1, None, 3], "y": {"z": "ä\n"}}, "tags": ["a", "b"]},
        {"k": 1, "tags": []},
        {"tags": None, "k": 3, "at": {"y": None}},
    ]
    text = "".join(json.dumps(row) + "\n" for row in rows)
    got = sorted_text(tmp_path, text, TableOrder(by="-k", columns=["at", "k"]), "in.json")
    assert [json.loads(line) for line in got.splitlines()] == [
        {"at": {"x": None, "y": None}, "k": 3},
        {"at": {"x": [1, None, 3], "y": {"z": "ä\n"}}, "k": 2},
        {"at": None, "k": 1},
    ]


def test_lists_of_a_length_and_maps_come_back(tmp_path: Path) -> None:
    table = pa.table(
        {
            "k": [1, 2, 3],
            "pair": pa.array([[1, None], None, [3, 4]], pa.list_(pa.int8(), 2)),
            "map": pa.array([[("a", [1])], None, []], pa.map_(pa.string(), pa.list_(pa.int8()))),
        }
    )
    pq.write_table(table, tmp_path / "in.parquet")
    order = TableOrder(by="-k", output_format="json")
    parts = sort_files(tmp_path, [tmp_path / "in.parquet"], order)[1]
    (tmp_path / "back").mkdir()
    order = TableOrder(by="k", output_format="parquet", schema=schema_of(table.schema))
    assert sorted_table(tmp_path / "back", parts, order).equals(table)


@pytest.mark.parametrize("value", ["[1]", "[1, 2, 3]", "{}", '"a"', "[[1]]"])
def test_a_list_of_another_length_is_refused(value: str, tmp_path: Path) -> None:
    schema = "k:int64,pair:fixed_size_list<item: int8>[2]"
    text = '{"k": 1, "pair": ' + value + "}\n"
    with pytest.raises(core.UsageError, match=r'in column "(pair|item)"'):
        sorted_text(tmp_path, text, TableOrder(by="k", schema=schema), "in.json")


@pytest.mark.parametrize("value", ['[["a"]]', '[["a", 1, 2]]', "[[null, 1]]", '[["a", "b"]]', "{}"])
def test_what_is_no_map_is_refused(value: str, tmp_path: Path) -> None:
    text = '{"k": 1, "map": ' + value + "}\n"
    order = TableOrder(by="k", schema="k:int64,map:map<string, int8>")
    with pytest.raises(core.UsageError, match=r"in.json: the record in line 1 \(byte 0\)"):
        sorted_text(tmp_path, text, order, "in.json")


def test_delimiters_headers_and_encodings(tmp_path: Path) -> None:
    first, second = tmp_path / "a.csv", tmp_path / "b.csv"
    first.write_bytes("ö;n\nstraße;2\n".encode("cp1252"))
    second.write_bytes("ö;n\n€;10\n".encode("cp1252"))
    order = TableOrder(
        by="-n", output_format="json", dialect=Dialect(delimiter=";", encoding="cp1252")
    )
    parts = sort_files(tmp_path, [first, second], order)[1]
    found = [json.loads(line) for part in parts for line in part.read_text().splitlines()]
    assert found == [{"ö": "€", "n": 10}, {"ö": "straße", "n": 2}]


@pytest.mark.parametrize("output_format", [None, "json"])
def test_files_without_a_header_and_with_a_byte_order_mark(
    output_format: str | None, tmp_path: Path
) -> None:
    order = TableOrder(
        by="f1", output_format=output_format, dialect=Dialect(has_header=False, delimiter="|")
    )
    text = sorted_text(tmp_path, b"\xef\xbb\xbfb|10\na|9\n", order)
    if output_format is None:
        assert text.encode() in (b"a|9\nb|10\n", b"a|9\n\xef\xbb\xbfb|10\n")
    else:
        rows = [json.loads(line) for line in text.splitlines()]
        assert rows == [{"f0": "a", "f1": 9}, {"f0": "b", "f1": 10}]


def test_a_byte_order_mark_is_no_part_of_a_name(tmp_path: Path) -> None:
    first, second = tmp_path / "a.csv", tmp_path / "b.csv"
    first.write_bytes(b"\xef\xbb\xbfk,v\n2,b\n")
    second.write_bytes(b"k,v\n1,a\n")
    order = TableOrder(by="k", output_format="parquet")
    assert sorted_table(tmp_path, [first, second], order).to_pydict() == {
        "k": [1, 2],
        "v": ["a", "b"],
    }


def test_files_without_rows_have_their_columns(tmp_path: Path) -> None:
    table = pa.table({"a": pa.array([], pa.int64()), 'b "c"': pa.array([], pa.string())})
    pq.write_table(table, tmp_path / "in.parquet")
    parts = sort_files(
        tmp_path, [tmp_path / "in.parquet"], TableOrder(by="a", output_format="csv")
    )[1]
    assert [part.read_text() for part in parts] == ['a,"b ""c"""\n']
    order = TableOrder(by="a", output_format="arrow", schema="a:int64")
    (tmp_path / "back").mkdir()
    parts = sort_files(tmp_path / "back", parts, order)[1]
    with ipc.open_file(str(parts[0])) as reader:
        assert reader.read_all().equals(table)


ROWS = "".join(f"{each},{each}\n" for each in range(300_000))


@pytest.mark.parametrize(
    ("name", "text", "order", "why"),
    [
        (
            *("in.csv", "k,v\n" + ROWS + "7,x\n", TableOrder(by="k", output_format="parquet")),
            r'in.csv: .* line 300002 \(byte 3977784\) has "x" in column "v", which is no int64',
        ),
        (
            *(
                "in.json",
                '{"k": 1}\n' * 200_000 + '{"k": 1.5}\n',
                TableOrder(by="k", columns=["k"]),
            ),
            r'in.json: .* line 200001 \(byte 1800000\) has "1.5" in column "k", which is no int64',
        ),
        (
            *(
                "in.json",
                '{"k": 1}\n' * 200_000 + '{"k": 1, "z": 2}\n',
                TableOrder(by="k", columns=["k"]),
            ),
            r'byte 1800000\) has the field "z", which the schema lacks; specify',
        ),
        (
            *("in.json", '{"k": 1}\n' * 200_000 + '{"k": 1\n', TableOrder(by="k", columns=["k"])),
            r"byte 1800000\) is no JSON object: EOF while parsing an object at its byte 7",
        ),
        (
            *(
                "in.json",
                '{"k": 1}\n' * 200_000 + '{"k": 1, "k": 2}\n',
                TableOrder(by="k", columns=["k"]),
            ),
            r'has the field "k" twice',
        ),
        (
            "in.json",
            '{"k": 1}\n{"k": "a"}\n',
            TableOrder(by="k", columns=["k"]),
            "specify a schema",
        ),
        (
            "in.json",
            '{"k": 1}\n',
            TableOrder(by="z", columns=["k"]),
            "there is no column 'z'; the columns are k",
        ),
        ("in.json", '{"k": 1}\n', TableOrder(by="k", columns=["z"]), "there is no column 'z'"),
        (
            *("in.csv", "k,v\n1,2,3\n", TableOrder(by="k", schema="k:int64")),
            r"line 2 \(byte 4\) has more than 2 fields, and there are 2 columns",
        ),
        (
            *("in.csv", "k,v\n" + ROWS + "1\n", TableOrder(by="k", schema="k:int64")),
            "has 1 field, and there are 2 columns",
        ),
        (
            *("in.csv", "k,v\n" + ROWS + '"a"b,1\n', TableOrder(by="v", schema="k:string")),
            'has a quote in column "k" that ends within a value',
        ),
        (
            *("in.csv", "k\n1.234\n", TableOrder(by="k", schema="k:decimal(10,2)")),
            r'has "1.234" in column "k", which is no decimal128\(10, 2\)',
        ),
        (
            *("in.csv", "k\n2020-01-01T00:00:00.5\n", TableOrder(by="k", schema="k:timestamp[s]")),
            r"which is no timestamp\[s\]",
        ),
        (
            *("in.csv", "k,v\n1,\n", TableOrder(by="k", schema="v:int8 not null")),
            'has no value in column "v", which the schema does not allow',
        ),
        (
            *("in.csv", "k\n1\n", TableOrder(by="k", schema="k:list<int8>")),
            "has the type list<item: int8>, which CSV has no values of",
        ),
        ("in.csv", "k\n1\n", TableOrder(by="k", schema="z:int8"), "there is no column 'z'"),
        ("in.csv", "k\n1\n", TableOrder(by="k", columns=["k", "k"]), "'k' is named twice"),
        ("in.csv", "k\r1\r", TableOrder(by="k"), "end with a carriage return alone"),
        ("in.csv", "k,k\n1,2\n", TableOrder(by="k"), "several columns are named 'k'"),
        ("in.csv", b"k,v\n1,\xe4\n", TableOrder(by="k", output_format="json"), "specify its enc"),
        (
            *("in.csv", "k\n1\n", TableOrder(by="k", dialect=Dialect(encoding="utf-16"))),
            "utf-16 is not an encoding with one byte a character",
        ),
        (
            *("in.csv", "k\n1\n", TableOrder(by="k", dialect=Dialect(encoding="gbk"))),
            "gbk is not an encoding with one byte a character",
        ),
        (
            *("in.csv", "k\n1\n", TableOrder(by="k", dialect=Dialect(delimiter="ab"))),
            "'ab' is no delimiter",
        ),
        ("in.txt", "a\n", TableOrder(by="line", output_format="csv"), "lines have no columns"),
        ("in.csv", "k\n1\n", TableOrder(by="k", output_format="orc"), "orc is not one of parquet"),
    ],
)
def test_what_cannot_be_is_refused_in_a_line(
    name: str, text: str | bytes, order: TableOrder, why: str, tmp_path: Path
) -> None:
    with pytest.raises(core.UsageError, match=why) as raised:
        sorted_text(tmp_path, text, order, name)
    assert "\n" not in str(raised.value)
    out = tmp_path / "out"
    assert not out.exists() or list(out.iterdir()) == []


def test_what_a_format_lacks_is_refused_in_a_line(tmp_path: Path) -> None:
    source = tmp_path / "in.parquet"
    pq.write_table(pa.table({"k": [1, 2], "x": [0.5, float("nan")], "l": [[1], []]}), source)
    with pytest.raises(core.UsageError, match=r'column "l" has the type list<.*, which CSV has no'):
        sort_files(tmp_path, [source], TableOrder(by="k", output_format="csv"))
    with pytest.raises(core.UsageError, match='column "x" has a value that is not finite'):
        sort_files(tmp_path, [source], TableOrder(by="k", output_format="json"))
    with pytest.raises(core.UsageError, match="parquet has none"):
        sort_files(tmp_path, [source], TableOrder(by="k", dialect=Dialect(delimiter=";")))
    order = TableOrder(by="k", output_format="csv", columns=["x", "k"])
    parts = sort_files(tmp_path, [source], order)[1]
    rows = [row for part in parts for row in csv.reader(part.read_text().splitlines()[1:])]
    assert rows == [["0.5", "1"], ["nan", "2"]]


def test_bytes_are_hexadecimal_in_csv_and_base64_in_json(tmp_path: Path) -> None:
    source = tmp_path / "in.parquet"
    pq.write_table(pa.table({"k": [b"\xff\0", None, b""]}), source)
    parts = sort_files(tmp_path, [source], TableOrder(by="k", output_format="csv"))[1]
    assert [line for part in parts for line in part.read_text().splitlines()[1:]] == [
        *('""', "ff00", ""),
    ]
    (tmp_path / "json").mkdir()
    parts = sort_files(tmp_path / "json", [source], TableOrder(by="-k", output_format="json"))[1]
    found = [json.loads(line)["k"] for part in parts for line in part.read_text().splitlines()]
    assert found == [base64.b64encode(b"\xff\0").decode(), "", None]


def test_the_command_takes_it_all(tonnage: Tonnage, tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text("2;b\n1;\xe4\n", encoding="latin-1")
    done = tonnage.run(
        *("run", "sort", str(tmp_path / "in.csv"), "--by", "f0", "--no-header"),
        *("--delimiter", ";", "--encoding", "latin-1", "--schema", "f0:decimal(5,1)"),
        *("--output-format", "json", "--output", str(tmp_path / "out")),
        *("--scratch", str(tmp_path / "scratch"), "--json"),
    )
    assert done.returncode == 0, done.stderr
    parts = sorted((tmp_path / "out").glob("part-*.jsonl"))
    found = [json.loads(line) for part in parts for line in part.read_text().splitlines()]
    assert found == [{"f0": "1.0", "f1": "ä"}, {"f0": "2.0", "f1": "b"}]
