"""What `run sort --by` reads: directories, globs and Hive's folders, and files that differ."""

import decimal
import os
import shutil
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest

from support.cli.command import Tonnage
from tonnage.base import core
from tonnage.base.records import RunRecord
from tonnage.measure.trial import environment
from tonnage.run.sort.tables import TableOrder, sort_table


def write(file: Path, columns: dict[str, Any]) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    table = pa.table(columns)
    if file.suffix == ".arrow":
        feather.write_feather(table, file, compression="uncompressed")
    else:
        pq.write_table(table, file)
    return file


def run(inputs: Sequence[Path | str], output: Sequence[Path], order: TableOrder) -> RunRecord:
    scratch = output[0].parent / "scratch"
    return sort_table(
        inputs,
        output,
        [scratch],
        order=order,
        memory_bytes=64 << 20,
        environment=environment.capture([output[0].parent]),
        began_at="now",
        command=["test"],
    )


def rows_in(output: Path) -> pa.Table:
    parts = sorted(output.glob("part-*"))
    read = feather.read_table if parts[0].suffix == ".arrow" else pq.read_table
    return pa.concat_tables([read(part) for part in parts])


def result(disk: Path, *inputs: Path | str, by: str = "k", **order: Any) -> pa.Table:
    """The rows of a stable sort, whose output is gone."""
    output = disk / "out"
    record = run(inputs, [output], TableOrder(by=by, stable=True, **order))
    rows = rows_in(output)
    assert record.records == rows.num_rows
    shutil.rmtree(output)
    return rows


def refusal(disk: Path, *inputs: Path | str, by: str = "k", **order: Any) -> str:
    with pytest.raises((core.UsageError, core.RunError)) as why:
        run(inputs, [disk / "out"], TableOrder(by=by, **order))
    assert "\n" not in str(why.value)
    assert not list((disk / "out").glob("part-*"))
    return str(why.value)


def test_directories_are_read_at_any_depth(disk: Path) -> None:
    source = disk / "in"
    for place, name in enumerate(("b.parquet", "a/x/y.parquet", "a/x.parquet", "c/d.parquet")):
        write(source / name, {"k": [0], "file": [place]})
    write(source / "_hidden" / "a.parquet", {"other": [1]})
    write(source / "a" / ".hidden.parquet", {"other": [1]})
    (source / "empty.parquet").touch()
    assert result(disk, source)["file"].to_pylist() == [1, 2, 0, 3]


def test_a_link_to_a_directory_above_is_refused(disk: Path) -> None:
    write(disk / "in" / "a.parquet", {"k": [1]})
    (disk / "in" / "again").symlink_to(disk / "in")
    assert "again is not a regular file" in refusal(disk, disk / "in")


def test_a_file_is_read_once(disk: Path) -> None:
    file = write(disk / "in" / "a.parquet", {"k": [1]})
    assert "is in both" in refusal(disk, file, disk / "in")
    (disk / "in" / "b.parquet").symlink_to(file)
    assert f"b.parquet is in {disk}/in twice, also as {file}" in refusal(disk, disk / "in")


def test_globs_are_expanded_and_names_that_exist_win(disk: Path) -> None:
    for place, name in enumerate(("2024-1/a", "2024-2/b", "2025-1/c", "2024-2/_d", "x[1]/e")):
        write(disk / "in" / f"{name}.parquet", {"k": [place]})
    assert result(disk, f"{disk}/in/2024-*/*.parquet")["k"].to_pylist() == [0, 1]
    assert result(disk, f"{disk}/in/2024-*")["k"].to_pylist() == [0, 1]
    assert result(disk, f"{disk}/in/**/[c-e].parquet")["k"].to_pylist() == [2, 4]
    assert result(disk, f"{disk}/in/x[1]")["k"].to_pylist() == [4]
    assert "nothing has a name like this" in refusal(disk, f"{disk}/in/2026-*")


@pytest.mark.parametrize("suffix", [".parquet", ".arrow"])
def test_folders_are_columns_as_for_pyarrow(disk: Path, suffix: str) -> None:
    numbers = iter(range(100))
    for year in (2024, 2023):
        for country in ("fr", "a%20b", "__HIVE_DEFAULT_PARTITION__"):
            file = disk / "in" / f"year={year}" / f"country={country}" / f"x{suffix}"
            write(file, {"k": [next(numbers), next(numbers)]})
    got = result(disk, disk / "in", by="-year,country,-k", output_format="parquet")
    assert got.schema == pa.schema(
        [("k", pa.int64()), ("year", pa.int64()), ("country", pa.string())]
    )
    hive = ds.partitioning(
        pa.schema([("year", pa.int64()), ("country", pa.string())]), None, "hive"
    )
    source = ds.dataset(disk / "in", format=suffix[1:], partitioning=hive).to_table()
    order = [("year", "descending"), ("country", "ascending"), ("k", "descending")]
    assert got.equals(source.take(pc.sort_indices(source, order)).select(got.column_names))
    one = result(disk, f"{disk}/in/year=*/country=fr/*", by="year", columns=["year"])
    assert one.to_pydict() == {"year": [2023, 2023, 2024, 2024]}


def test_folders_with_words_keep_their_digits(disk: Path) -> None:
    for hour in ("07", "7", "noon"):
        write(disk / "in" / f"hour={hour}" / "a.parquet", {"k": [1]})
    assert result(disk, disk / "in", by="hour")["hour"].to_pylist() == ["07", "7", "noon"]


def test_a_file_agrees_with_its_folder_or_is_named(disk: Path) -> None:
    days = [datetime(2024, 1, 2, tzinfo=UTC).date()] * 2
    write(disk / "in" / "day=2024-01-02" / "a.parquet", {"k": [2, 1], "day": days})
    got = result(disk, disk / "in")
    assert got.to_pydict() == {"k": [1, 2], "day": days}
    write(disk / "in" / "day=2024-01-03" / "b.parquet", {"k": [3, 4], "day": days})
    said = refusal(disk, disk / "in")
    assert 'b.parquet: column "day" has 2024-01-02, but its folder says 2024-01-03' in said


def test_text_has_no_place_for_the_columns_of_folders(disk: Path) -> None:
    (disk / "in" / "year=2024").mkdir(parents=True)
    (disk / "in" / "year=2024" / "a.txt").write_text("b\na\n")
    assert "year=2024/a.txt: its folder says what its column 'year' is" in refusal(
        disk, disk / "in", by="line"
    )


def test_two_folders_have_one_value_of_a_column(disk: Path) -> None:
    write(disk / "in" / "k=1" / "k=1" / "a.parquet", {"v": [0]})
    assert result(disk, disk / "in").to_pydict() == {"v": [0], "k": [1]}
    write(disk / "in" / "k=1" / "day=3" / "k=2" / "b.parquet", {"v": [0]})
    said = refusal(disk, disk / "in")
    assert f"{disk}/in/k=1/day=3/k=2/b.parquet: its folders say that its column 'k' is both" in said
    assert result(disk, disk / "in" / "k=1" / "day=3").to_pydict() == {"v": [0], "k": [2]}


def write_beside(directory: Path) -> None:
    """What other programs leave next to data."""
    for name in ("_SUCCESS", "_metadata", ".DS_Store", ".a.parquet.crc", "_delta_log/0.json"):
        (directory / name).parent.mkdir(exist_ok=True)
        (directory / name).write_text("no table")
    (directory / "README.md").touch()


def test_files_of_one_format_are_read(disk: Path) -> None:
    write(disk / "in" / "b.parquet", {"k": [1]})
    write_beside(disk / "in")
    assert result(disk, disk / "in")["k"].to_pylist() == [1]
    (disk / "in" / "README.md").write_text("Read me.")
    told = f"input {disk}/in/README.md has a name that tells no format, but {disk}/in/b.parquet is"
    assert told in refusal(disk, disk / "in")
    (disk / "in" / "a.csv.gz").write_text("k\n1\n")
    told = f"input {disk}/in/b.parquet is parquet by its name, but {disk}/in/a.csv.gz is csv;"
    assert told in refusal(disk, disk / "in")
    assert result(disk, f"{disk}/in/*.parquet")["k"].to_pylist() == [1]
    (disk / "in" / "b.parquet").unlink()
    (disk / "in" / "README.md").write_text("k\n2\n")
    run([disk / "in"], [disk / "out"], TableOrder(by="k", format="csv"))
    assert (disk / "out" / "part-00000.csv").read_text() == "k\n1\n2\n"
    shutil.rmtree(disk / "out")
    (disk / "in" / "a.csv.gz").unlink()
    assert "README.md cannot be inferred from its name" in refusal(disk, disk / "in")


PROMOTIONS: dict[str, tuple[pa.Array, pa.Array, pa.DataType]] = {
    "integers": (pa.array([1], pa.int8()), pa.array([2**40], pa.int64()), pa.int64()),
    "unsigned": (pa.array([3], pa.uint32()), pa.array([-1], pa.int8()), pa.int64()),
    "floats": (pa.array([0.5], pa.float32()), pa.array([0.1], pa.float64()), pa.float64()),
    "exact floats": (pa.array([2**31 - 1], pa.int32()), pa.array([0.1]), pa.float64()),
    "strings": (pa.array(["a"]), pa.array(["b"], pa.large_string()), pa.large_string()),
    "views": (pa.array(["a"], pa.string_view()), pa.array(["b"]), pa.string()),
    "binary": (pa.array([b"a"], pa.binary(1)), pa.array([b"bc"]), pa.binary()),
    "dictionary": (pa.array(["b"]).dictionary_encode(), pa.array(["a"]), pa.string()),
    "nulls": (pa.nulls(1), pa.array([3]), pa.int64()),
    "units": (
        pa.array([1], pa.timestamp("ms")),
        pa.array([5], pa.timestamp("ns")),
        pa.timestamp("ns"),
    ),
    "zones": (
        pa.array([1], pa.timestamp("ms", "UTC")),
        pa.array([5], pa.timestamp("us", "+00:00")),
        pa.timestamp("us", "UTC"),
    ),
    "decimals": (
        pa.array([decimal.Decimal("1.5")], pa.decimal128(5, 1)),
        pa.array([decimal.Decimal("-0.125")], pa.decimal128(4, 3)),
        pa.decimal128(7, 3),
    ),
    "lists": (pa.array([[1]], pa.list_(pa.int8())), pa.array([[2]]), pa.list_(pa.int64())),
}


@pytest.mark.parametrize("kind", PROMOTIONS)
@pytest.mark.parametrize("suffix", [".parquet", ".arrow"])
def test_types_of_files_are_promoted(disk: Path, kind: str, suffix: str) -> None:
    one, other, expected = PROMOTIONS[kind]
    write(disk / "in" / f"a{suffix}", {"k": [2], "v": one})
    write(disk / "in" / f"b{suffix}", {"v": other, "k": [1]})
    got = result(disk, disk / "in", output_format="arrow")
    assert got.schema == pa.schema([("k", pa.int64()), ("v", expected)])
    assert got["k"].to_pylist() == [1, 2]
    values = [other.cast(expected), one.cast(expected)]
    assert got["v"].combine_chunks().equals(pa.concat_arrays(values))


@pytest.mark.parametrize(
    ("other", "said"),
    [
        (pa.array([0.5]), "is double, which cannot be joined with int64 of"),
        (pa.array(["1"]), "is string, which cannot be joined with int64 of"),
        (pa.array([2**63], pa.uint64()), "is uint64, which cannot be joined with int64 of"),
    ],
)
def test_types_that_have_nothing_in_common_are_refused(
    disk: Path, other: pa.Array, said: str
) -> None:
    write(disk / "in" / "a.parquet", {"k": [1], "v": [1]})
    write(disk / "in" / "b.parquet", {"k": [1], "v": other})
    message = refusal(disk, disk / "in")
    assert f'b.parquet: its column "v" {said}' in message
    assert "a.parquet; specify the column's type in the schema" in message


def test_a_column_that_a_file_lacks_is_null_if_it_is_declared(disk: Path) -> None:
    write(disk / "in" / "a.parquet", {"k": [1]})
    write(disk / "in" / "b.parquet", {"k": [2], "v": pa.array([3], pa.int32())})
    assert 'a.parquet: it has no column "v"' in refusal(disk, disk / "in")
    assert result(disk, disk / "in", columns=["k"]).to_pydict() == {"k": [1, 2]}
    got = result(disk, disk / "in", by="v:nulls-first", schema="v:int64")
    assert got.to_pydict() == {"k": [1, 2], "v": [None, 3]}
    assert got.schema.field("v").type == pa.int64()


def test_a_schema_says_what_columns_are_read_as(disk: Path) -> None:
    write(
        disk / "in" / "a.parquet",
        {"k": pa.array([2, 1]), "t": pa.array([1000, 2000], pa.timestamp("us")), "d": [0.5, 1.25]},
    )
    schema = 'k:int8,t:timestamp[ms],d:"oops'
    with pytest.raises(core.UsageError):
        result(disk, disk / "in", schema=schema)
    got = result(disk, disk / "in", schema="k:int8,t:timestamp[ms],d:decimal(10,2)")
    assert got.schema.types == [pa.int8(), pa.timestamp("ms"), pa.decimal128(10, 2)]
    assert got["d"].to_pylist() == [decimal.Decimal("1.25"), decimal.Decimal("0.50")]
    said = refusal(disk, disk / "in", schema="d:decimal(10,1)")
    assert (
        'a.parquet: column "d": the value 1.25 (double) is not exact as decimal128(10, 1)' in said
    )
    assert 'schema: there is no column "x"; the columns are k, t, d' in refusal(
        disk, disk / "in", schema="x:int8"
    )
    assert "its type int64 cannot be read as string" in refusal(
        disk, disk / "in", schema="k:string"
    )


def test_a_later_time_than_the_finer_unit_has_is_named(disk: Path) -> None:
    write(disk / "in" / "a.parquet", {"k": [1], "t": pa.array([2**40], pa.timestamp("ms"))})
    write(disk / "in" / "b.parquet", {"k": [1], "t": pa.array([2**60], pa.timestamp("us"))})
    assert result(disk, disk / "in").num_rows == 2
    write(disk / "in" / "c.parquet", {"k": [1], "t": pa.array([1], pa.timestamp("ns"))})
    assert 'b.parquet: column "t": the value ' in refusal(disk, disk / "in")


def test_parts_of_an_output_on_several_devices_are_one_sequence(disk: Path) -> None:
    file = write(disk / "in.parquet", {"k": [0] * 5000, "n": range(5000)})
    outputs = [disk / "one", disk / "two"]
    run([file], outputs, TableOrder(by="k,n", file_bytes=10_000))
    assert len(list((disk / "two").glob("part-*"))) > 1
    got = result(disk, *reversed(outputs))
    assert got["n"].to_pylist() == list(range(5000))
    assert "is an incomplete output" in refusal(disk, outputs[0])
    os.mkdir(outputs[0] / ".tonnage-unfinished-1")
    assert "contains unfinished output" in refusal(disk, *outputs)


def test_the_command_expands_globs_and_takes_a_schema(tonnage: Tonnage, disk: Path) -> None:
    for year in (2023, 2024):
        write(disk / "in" / f"year={year}" / "a.parquet", {"k": pa.array([year], pa.int32())})
    out = ["--output", str(disk / "out"), "--scratch", str(disk / "tmp")]
    command = ["run", "sort", f"{disk}/in/*/*.parquet", "--by", "-year", *out]
    tonnage.run(*command, "--schema", "k:int64,year:int16", check=True)
    got = rows_in(disk / "out")
    assert got.schema == pa.schema([("k", pa.int64()), ("year", pa.int16())])
    assert got.to_pydict() == {"k": [2024, 2023], "year": [2024, 2023]}
    nothing = tonnage.run(
        "run", "sort", f"{disk}/no/*", "--by", "k", *out[:1], disk / "o", *out[2:]
    )
    assert nothing.returncode == 2 and nothing.stderr.count("\n") == 1
    without = tonnage.run("run", "sort", disk / "in", "--schema", "k:int8", *out)
    assert without.returncode == 2 and "--schema is for tables; specify --by, too" in without.stderr
