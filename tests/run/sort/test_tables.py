"""`run sort --by`: any table comes out whole, in the order of its columns, within its memory.

The model sorts rows as Python does, by what the values mean; PyArrow's order is compared where it
defines one.
"""

import functools
import math
import random
import shutil
import string
import subprocess
import sys
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.cli.command import Tonnage
from support.stores.disk import disk_dir
from tonnage.base import core
from tonnage.base.records import RunRecord
from tonnage.measure.trial import environment
from tonnage.run.formats.lines import compression
from tonnage.run.sort.tables import TableOrder, sort_table

MIB = 1 << 20
TEXTS = st.text("ab\0\x01ä𝄞", max_size=20)
KINDS: dict[str, tuple[pa.DataType, st.SearchStrategy[Any]]] = {
    "int8": (pa.int8(), st.integers(-128, 127)),
    "int64": (pa.int64(), st.integers(-(2**63), 2**63 - 1)),
    "uint64": (pa.uint64(), st.integers(0, 2**64 - 1)),
    "float64": (pa.float64(), st.floats() | st.sampled_from([0.0, -0.0])),
    "float32": (pa.float32(), st.floats(width=32)),
    "boolean": (pa.bool_(), st.booleans()),
    "string": (pa.string(), TEXTS),
    "large_string": (pa.large_string(), TEXTS),
    "binary": (pa.binary(), st.binary(max_size=20)),
    "fixed_binary": (pa.binary(4), st.binary(min_size=4, max_size=4)),
    "decimal": (pa.decimal128(20, 3), st.decimals(-(10**16), 10**16, places=3)),
    "date": (pa.date32(), st.dates()),
    "microseconds": (
        pa.timestamp("us", "UTC"),
        st.datetimes(datetime(1900, 1, 1), datetime(2200, 1, 1), timezones=st.just(UTC)),
    ),
    "nanoseconds": (pa.timestamp("ns"), st.integers(-(2**62), 2**62)),
    "duration": (pa.duration("ms"), st.timedeltas(timedelta(-9999), timedelta(9999)).map(
        lambda each: each - timedelta(microseconds=each.microseconds % 1000)
    )),
    "dictionary": (pa.dictionary(pa.int32(), pa.string()), TEXTS),
}  # fmt: skip
CARRIED: dict[str, tuple[pa.DataType, st.SearchStrategy[Any]]] = {
    "list": (pa.list_(pa.int32()), st.lists(st.none() | st.integers(-9, 9), max_size=4)),
    "struct": (
        pa.struct([("a", pa.int64()), ("b", pa.string())]),
        st.fixed_dictionaries({"a": st.none() | st.integers(0, 9), "b": st.none() | TEXTS}),
    ),
    "map": (
        pa.map_(pa.string(), pa.float64()),
        st.dictionaries(st.sampled_from("xyz"), st.floats(0, 9), max_size=3).map(
            lambda each: list(each.items())
        ),
    ),
}


def sorted_table(
    disk: Path, inputs: list[Path], order: TableOrder, memory: int = 64 * MIB
) -> tuple[RunRecord, pa.Table]:
    """Sorts without the command's start; gives the record, and the output as one table."""
    output, scratch = disk / "out", disk / "scratch"
    record = sort_table(
        inputs,
        [output],
        [scratch],
        order=order,
        memory_bytes=memory,
        environment=environment.capture([disk]),
        began_at="now",
        command=["test"],
    )
    assert list(scratch.iterdir()) == []
    parts = sorted(output.glob("part-*.parquet"))
    return record, pa.concat_tables([pq.read_table(part) for part in parts])


@st.composite
def tables(
    draw: st.DrawFn, with_structs: bool = False
) -> tuple[pa.Table, str, list[tuple[str, bool, bool]]]:
    """A table, its order as text, and as columns, each descending or not, nulls first or not.

    With structs, the columns of some tables are fields of one.
    """
    keys = draw(st.lists(st.sampled_from(sorted(KINDS)), min_size=1, max_size=3))
    others = draw(st.lists(st.sampled_from(sorted(KINDS | CARRIED)), max_size=3))
    rows = draw(st.integers(0, 40))
    in_struct = with_structs and draw(st.booleans()) and "nanoseconds" not in (*keys, *others)
    columns, order = {}, []
    for place, kind in enumerate([*keys, *others]):
        data_type, values = (KINDS | CARRIED)[kind]
        cells = draw(st.lists(st.none() | values, min_size=rows, max_size=rows))
        name = f"{kind}_{place}"
        columns[name] = pa.array(cells, data_type)
        if place < len(keys):
            path = f"of.{name}" if in_struct else name
            order.append((path, draw(st.booleans()), draw(st.booleans())))
    if in_struct:
        are_null = pa.array(draw(st.lists(st.booleans(), min_size=rows, max_size=rows)), pa.bool_())
        fields = [pa.field(name, column.type) for name, column in columns.items()]
        arrays = list(columns.values())
        columns = {"of": pa.StructArray.from_arrays(arrays, fields=fields, mask=are_null)}
    text = ",".join(
        ("-" if descending else "") + name + (":nulls-first" if nulls_first else "")
        for name, descending, nulls_first in order
    )
    return pa.table(columns), text, order


def compared(one: Any, other: Any) -> int:
    """NaN above all numbers, and one zero."""
    nan_one, nan_other = (isinstance(each, float) and math.isnan(each) for each in (one, other))
    if nan_one or nan_other:
        return nan_one - nan_other
    if isinstance(one, str):
        one, other = one.encode(), other.encode()
    return int(one > other) - int(one < other)


def value_of(row: dict[str, Any], name: str) -> Any:
    value: Any = row
    for part in name.split("."):
        value = None if value is None else value[part]
    return value


def by_order(order: list[tuple[str, bool, bool]]) -> Any:
    def compare(one: dict[str, Any], other: dict[str, Any]) -> int:
        for name, descending, nulls_first in order:
            a, b = value_of(one, name), value_of(other, name)
            if a is None or b is None:
                came = (a is None) - (b is None)
                came = -came if nulls_first else came
            else:
                came = -compared(a, b) if descending else compared(a, b)
            if came:
                return came
        return 0

    return functools.cmp_to_key(compare)


def rows_of(table: pa.Table) -> list[dict[str, Any]]:
    """Rows whose values compare: nanoseconds as numbers."""
    columns = {
        name: column.cast(pa.int64()) if column.type == pa.timestamp("ns") else column
        for name, column in zip(table.column_names, table.columns, strict=True)
    }
    return pa.table(columns).to_pylist()  # type: ignore[no-any-return]


@settings(max_examples=40)
@given(
    tables(with_structs=True),
    st.booleans(),
    st.none() | st.integers(1, 50),
    st.integers(1, 3),
    st.integers(1, 20),
)
def test_any_table_is_sorted_as_its_values_are(
    drawn: tuple[pa.Table, str, list[tuple[str, bool, bool]]],
    stable: bool,
    limit: int | None,
    files: int,
    group_rows: int,
) -> None:
    table, by, order = drawn
    with disk_dir() as disk:
        source = disk / "in"
        source.mkdir()
        each = -(-table.num_rows // files)
        for number in range(files):
            part = table.slice(number * each, each)
            pq.write_table(part, source / f"{number}.parquet", row_group_size=group_rows)
        record, got = sorted_table(disk, [source], TableOrder(by=by, stable=stable, limit=limit))
        assert record.records == table.num_rows
        assert got.schema.equals(table.schema)
        everything = sorted(rows_of(table), key=by_order(order))
        expected = everything[:limit]
        assert record.written_records == len(expected)
        found = rows_of(got)
        if stable:
            assert repr(found) == repr(expected)
        else:
            key = by_order(order)
            assert all(key(one) == key(other) for one, other in zip(found, expected, strict=True))
            # Which of the rows with the last one's key are among the first is open.
            assert Counter(map(repr, found)) <= Counter(map(repr, everything))


def events(rows: int, seed: int = 1) -> pa.Table:
    """Users, a few of which have most rows, times, amounts with nulls, and payloads."""
    rng = random.Random(seed)
    users = [f"user-{int(rng.paretovariate(0.8)) % 5000}" for _ in range(rows)]
    letters = string.ascii_letters
    return pa.table(
        {
            "user": users,
            "ts": pa.array(rng.choices(range(10**9), k=rows), pa.timestamp("us")),
            "amount": [None if rng.random() < 0.1 else rng.gauss(100, 30) for _ in range(rows)],
            "payload": [rng.choice(letters) * rng.randrange(96) for _ in range(rows)],
        }
    )


def test_what_is_larger_than_memory_goes_through_scratch(tmp_path: Path) -> None:
    with disk_dir() as disk:
        table = events(300_000)
        pq.write_table(table, disk / "in.parquet", row_group_size=50_000)
        order = TableOrder(by="user,-ts", stable=True)
        record, got = sorted_table(disk, [disk / "in.parquet"], order, 12 * MIB)
        keys = [("user", "ascending"), ("ts", "descending")]
        expected = table.take(pc.sort_indices(table, sort_keys=keys))
        assert got.select(["user", "ts"]).equals(expected.select(["user", "ts"]))
        assert record.shuffled_bytes is not None and record.shuffled_bytes > 12 * MIB
        plan = record.settings["plan"]
        assert plan["partitions"] > 4
        metadata = pq.ParquetFile(next(iter(sorted((disk / "out").glob("part-*"))))).metadata
        columns = metadata.row_group(0).sorting_columns
        assert [(each.column_index, each.descending) for each in columns] == [(0, False), (1, True)]


def test_one_value_in_most_rows_is_no_trouble() -> None:
    with disk_dir() as disk:
        rows = 200_000
        table = pa.table(
            {
                "k": [7] * (rows - 100) + list(range(100)),
                "v": [string.ascii_letters] * rows,
            }
        )
        pq.write_table(table, disk / "in.parquet", row_group_size=20_000)
        record, got = sorted_table(disk, [disk / "in.parquet"], TableOrder(by="k"), 8 * MIB)
        assert got["k"].to_pylist() == sorted(table["k"].to_pylist())
        assert record.written_records == rows


@pytest.mark.parametrize("stable", [False, True])
@pytest.mark.parametrize("limit", [1, 1000, 150_000, 199_950, 300_000])
def test_only_the_first_rows_are_sorted(limit: int, stable: bool) -> None:
    rows = 200_000
    keys = [7] * (rows - 100) + list(range(100))
    table = pa.table({"k": keys, "v": [string.ascii_letters] * rows, "n": range(rows)})
    with disk_dir() as disk:
        pq.write_table(table, disk / "in.parquet", row_group_size=20_000)
        order = TableOrder(by="-k", stable=stable, limit=limit)
        record, got = sorted_table(disk, [disk / "in.parquet"], order, 8 * MIB)
        assert got["k"].to_pylist() == sorted(keys, reverse=True)[:limit]
        assert len(set(got["n"].to_pylist())) == min(limit, rows) == record.written_records
        if stable:
            expected = table.take(pc.sort_indices(table, [("k", "descending"), ("n", "ascending")]))
            assert got.equals(expected.slice(0, limit))


def test_rows_beyond_the_limit_are_not_spilled() -> None:
    table = events(300_000)
    with disk_dir() as disk:
        pq.write_table(table, disk / "in.parquet", row_group_size=50_000)
        order = TableOrder(by="ts", limit=100)
        record, got = sorted_table(disk, [disk / "in.parquet"], order, 12 * MIB)
        assert got["ts"].equals(table.sort_by("ts")["ts"].slice(0, 100))
        pass_two = record.phases[-1]
        assert pass_two.name == "pass_two"
        assert sum(stage.bytes for stage in pass_two.stages if stage.name == "read") < 2 * MIB


def test_a_sample_that_misleads_about_the_limit_costs_time_only() -> None:
    """Only every second file is sampled, and those have other keys than the rest."""
    with disk_dir() as disk:
        source = disk / "in"
        source.mkdir()
        for number in range(128):
            keys = range(500 * number, 500 * number + 500)
            low = pa.array([key if number % 2 else -key for key in keys], pa.int64())
            pq.write_table(pa.table({"k": low}), source / f"{number:03}.parquet")
        signed = [key if key // 500 % 2 else -key for key in range(64_000)]
        attempts = []
        for by, descending in (("k", False), ("-k", True)):
            record, got = sorted_table(disk, [source], TableOrder(by=by, limit=30_000))
            assert got["k"].to_pylist() == sorted(signed, reverse=descending)[:30_000]
            attempts.append([phase.name for phase in record.phases].count("pass_one"))
            shutil.rmtree(disk / "out")
        assert max(attempts) == 2


def test_of_equal_keys_the_first_stays() -> None:
    with disk_dir() as disk:
        table = pa.table({"k": [3, 1, 3, 2, 1, None, None], "v": list("abcdefg")})
        pq.write_table(table, disk / "in.parquet")
        order = TableOrder(by="k", stable=True, unique=True, columns=["v", "k"])
        record, got = sorted_table(disk, [disk / "in.parquet"], order)
        assert got.to_pydict() == {"v": ["b", "d", "a", "f"], "k": [1, 2, 3, None]}
        assert (record.records, record.written_records) == (7, 4)


@pytest.mark.parametrize("stable", [False, True])
def test_of_one_key_in_more_rows_than_memory_holds_one_stays(stable: bool) -> None:
    rows = 400_000
    keys = [7] * (rows - 3) + [8, 9, 9]
    table = pa.table({"k": keys, "v": [string.ascii_letters] * rows, "n": range(rows)})
    with disk_dir() as disk:
        pq.write_table(table, disk / "in.parquet", row_group_size=20_000)
        order = TableOrder(by="k", unique=True, stable=stable)
        record, got = sorted_table(disk, [disk / "in.parquet"], order, 8 * MIB)
        assert got["k"].to_pylist() == [7, 8, 9]
        assert (record.records, record.written_records) == (rows, 3)
        if stable:
            assert got["n"].to_pylist() == [0, rows - 3, rows - 2]


def test_files_have_about_the_bytes_that_are_asked_for() -> None:
    with disk_dir() as disk:
        pq.write_table(events(50_000), disk / "in.parquet")
        order = TableOrder(by="user", file_bytes=MIB)
        record, got = sorted_table(disk, [disk / "in.parquet"], order)
        assert got["user"].to_pylist() == sorted(got["user"].to_pylist())
        sizes = [part.stat().st_size for part in (disk / "out").glob("part-*")]
        assert len(sizes) > 4
        assert record.written_bytes == sum(sizes)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--by", "nosuch"], '--by: there is no column "nosuch"; the columns are k, v'),
        (["--by", "k,,v"], "--by: '' is no sort key"),
        (["--by", "k,-k"], "--by: the column 'k' is named twice"),
        (["--by", "v"], '--by: the column "v" cannot be a sort key'),
        (["--by", "k", "--columns", "v"], "--columns: the rows are ordered by the column 'k'"),
        (["--by", "k", "--columns", "k,x"], "--columns: "),
        (["--by", "k", "--unique", "--limit", "5"], "--limit: with unique"),
        (["--by", "k", "--limit", "0"], "--limit"),
        (["--by", "k", "--no-header"], "--no-header: parquet has none"),
        (["--by", "k", "--memory", "4k"], "--memory: "),
        (["--limit", "5"], "--limit is for tables; specify --by, too"),
        (["--unique"], "--unique is for tables; specify --by, too"),
        (["--file-size", "1MB"], "--file-size is for tables; specify --by, too"),
        (["--by", "k", "--key", "2:4"], "--record-bytes, --key and --faults are for records"),
    ],
)
def test_what_cannot_be_is_refused_in_a_line(
    tonnage: Tonnage, arguments: list[str], message: str
) -> None:
    with disk_dir() as disk:
        table = pa.table({"k": [2, 1], "v": [[1], [2]]})
        pq.write_table(table, disk / "in.parquet")
        out = ["--output", str(disk / "out"), "--scratch", str(disk / "tmp")]
        ended = tonnage.run("run", "sort", str(disk / "in.parquet"), *out, *arguments)
        assert ended.returncode == 2
        assert message in ended.stderr
        assert not (disk / "out").exists()


def test_files_that_are_no_tables_are_named() -> None:
    with disk_dir() as disk:
        (disk / "in.parquet").write_bytes(b"a,b\n1,2\n")
        with pytest.raises(core.UsageError, match=r"in\.parquet: "):
            sorted_table(disk, [disk / "in.parquet"], TableOrder(by="k"))
        pq.write_table(pa.table({"k": [1]}), disk / "one.parquet")
        pq.write_table(pa.table({"j": [1]}), disk / "two.parquet")
        inputs = [disk / "one.parquet", disk / "two.parquet"]
        with pytest.raises(core.UsageError, match=r'two\.parquet: it has no column "k"'):
            sorted_table(disk, inputs, TableOrder(by="k"))


@pytest.mark.parametrize("name", ["parquet", "csv", "tsv", "txt"])
def test_numpy_and_pyarrow_are_not_imported(name: str) -> None:
    """They take as long to start, and as much memory, as a small sort."""
    code = """
import sys
from pathlib import Path
from tonnage.measure.trial import environment
from tonnage.run.sort.tables import TableOrder, sort_table
disk, by, output_format = Path(sys.argv[2]), *sys.argv[3:]
for number, other in enumerate([None, output_format or None]):
    sort_table(
        [sys.argv[1]], [disk / f"out-{number}"], [disk / "scratch"],
        order=TableOrder(by=by, output_format=other), memory_bytes=32 << 20,
        environment=environment.capture([disk]), began_at="now", command=[],
    )
print({"numpy", "pyarrow"} & {*sys.modules})
"""
    with disk_dir() as disk:
        path = disk / f"in.{name}"
        if name == "parquet":
            pq.write_table(pa.table({"k": [2, 1]}), path)
        else:
            path.write_text("k\n2\n1\n")
        by, output_format = ("line", "") if name == "txt" else ("k", "json")
        command = [sys.executable, "-c", code, str(path), str(disk), by, output_format]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        assert done.stdout.strip() == "set()"


def test_the_command_says_what_it_did(tonnage: Tonnage) -> None:
    with disk_dir() as disk:
        pq.write_table(events(1000), disk / "in.parquet")
        out = ["--output", str(disk / "out"), "--scratch", str(disk / "tmp")]
        ended = tonnage.run("run", "sort", str(disk / "in.parquet"), "--by", "user,-ts", *out)
        assert ended.returncode == 0, ended.stderr
        assert ended.stdout.startswith("1000 rows, ")
        names = sorted(path.name for path in (disk / "out").iterdir())
        assert names[0] == "_tonnage.json" and names[1] == "part-00000.parquet"


LINE = st.binary(max_size=30).map(lambda each: each.replace(b"\n", b""))
LINES = st.lists(LINE.filter(lambda each: compression(each) is None), max_size=60)


@settings(max_examples=30)
@given(LINES, st.booleans(), st.integers(1, 3))
def test_lines_are_sorted_by_their_bytes(
    lines: list[bytes], ends_with_newline: bool, files: int
) -> None:
    with disk_dir() as disk:
        source = disk / "in"
        source.mkdir()
        each = -(-len(lines) // files) or 1
        found = []
        for number in range(files):
            part = lines[number * each : (number + 1) * each]
            text = b"\n".join(part) + (b"\n" if ends_with_newline and part else b"")
            (source / f"{number}.txt").write_bytes(text)
            ended = text.removesuffix(b"\n")
            found += ended.split(b"\n") if text else []
        output = disk / "out"
        order = TableOrder(by="line")
        record = sort_table(
            [source],
            [output],
            [disk / "scratch"],
            order=order,
            memory_bytes=16 * MIB,
            environment=environment.capture([disk]),
            began_at="now",
            command=["test"],
        )
        assert record.records == len(found)
        got = b"".join(path.read_bytes() for path in sorted(output.glob("part-*.txt")))
        assert got == b"".join(line + b"\n" for line in sorted(found))


def test_csv_is_sorted_by_numbers_and_keeps_its_records() -> None:
    with disk_dir() as disk:
        rng = random.Random(3)
        rows = [
            f'{rng.gauss(0, 1e6)!r},"a ""quoted"" value\nof two lines, {number}",x\n'
            for number in range(20_000)
        ]
        rows[7] = ",empty,y\n"
        header = "value,text,rest\n"
        half = len(rows) // 2
        (disk / "a.csv").write_text(header + "".join(rows[:half]))
        (disk / "b.csv").write_text(header + "".join(rows[half:]))
        record = sort_table(
            [disk / "a.csv", disk / "b.csv"],
            [disk / "out"],
            [disk / "scratch"],
            order=TableOrder(by="-value:nulls-first"),
            memory_bytes=12 * MIB,
            environment=environment.capture([disk]),
            began_at="now",
            command=["test"],
        )
        assert record.records == len(rows)
        parts = [path.read_text() for path in sorted((disk / "out").glob("part-*.csv"))]
        assert all(part.startswith(header) for part in parts)
        got = "".join(part.removeprefix(header) for part in parts)
        others = [row for row in rows if row != rows[7]]
        others.sort(key=lambda row: float(row.split(",")[0]), reverse=True)
        assert got == rows[7] + "".join(others)


def test_csv_files_with_other_columns_are_named_and_nothing_is_written() -> None:
    with disk_dir() as disk:
        (disk / "a.csv").write_text("k,v\n2,x\n1,y\n")
        (disk / "b.csv").write_text("v,k\nz,3\n")
        message = r'b\.csv: its first line is not "k,v", that of the first input'
        with pytest.raises(core.UsageError, match=message):
            sorted_table(disk, [disk / "a.csv", disk / "b.csv"], TableOrder(by="k"))
        assert not (disk / "out").exists()


@pytest.mark.parametrize(("memory", "is_held"), [(64 * MIB, True), (12 * MIB, False)])
def test_what_fits_into_memory_does_not_go_to_scratch(
    monkeypatch: pytest.MonkeyPatch, memory: int, is_held: bool
) -> None:
    outcomes: list[dict[str, Any]] = []
    run = core.run

    def noted(*arguments: Any) -> dict[str, Any]:
        outcomes.append(run(*arguments))
        return outcomes[-1]

    monkeypatch.setattr(core, "run", noted)
    with disk_dir() as disk:
        table = pa.table({"k": [row * 7919 % 100_003 for row in range(100_000)]})
        table = table.append_column("text", pa.array([f"{row:040}" for row in range(100_000)]))
        pq.write_table(table, disk / "in.parquet")
        _, got = sorted_table(disk, [disk / "in.parquet"], TableOrder(by="k"), memory)
    assert got.equals(table.sort_by("k"))
    assert (outcomes[0]["spilled_bytes"] == 0) == is_held


@pytest.mark.parametrize("file_mib", [1, 12, 1024])
@pytest.mark.parametrize("scratches", [1, 3])
def test_partitions_are_joined_to_files_of_the_size_that_is_wanted(
    monkeypatch: pytest.MonkeyPatch, file_mib: int, scratches: int
) -> None:
    plans: list[dict[str, Any]] = []
    run = core.run

    def noted(*arguments: Any) -> dict[str, Any]:
        outcome = run(*arguments)
        plans.append(outcome["plan"])
        return outcome

    monkeypatch.setattr(core, "run", noted)
    with disk_dir() as disk:
        keys = [row * 7919 % 1_000_003 for row in range(600_000)]
        table = pa.table({"k": keys, "text": ["x" * 60] * len(keys)})
        pq.write_table(table, disk / "in.parquet")
        record = sort_table(
            [disk / "in.parquet"],
            [disk / "out"],
            [disk / f"scratch{number}" for number in range(scratches)],
            order=TableOrder(by="-k", file_bytes=file_mib * MIB),
            memory_bytes=12 * MIB,
            environment=environment.capture([disk]),
            began_at="now",
            command=["test"],
        )
        files = [pq.read_table(part) for part in sorted((disk / "out").glob("*.parquet"))]
    assert record.records == table.num_rows
    assert pa.concat_tables(files).equals(table.sort_by([("k", "descending")]))
    share = table.nbytes / MIB / (4 * plans[0]["workers"])
    wanted = min(file_mib, max(16, share))
    mib = [file.nbytes / MIB for file in files]
    longest = table.nbytes / MIB / plans[0]["partitions"] * 2
    assert max(mib) < wanted * 1.5 + longest / 2, "rows have a few bytes more than their columns"
    assert len(files) < table.nbytes / MIB / wanted * 2 + 1
    if file_mib > 1:
        assert len(files) < plans[0]["partitions"]
