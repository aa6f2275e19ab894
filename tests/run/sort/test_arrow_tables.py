"""`run sort --by` of Arrow IPC: files, streams and Feather, as they are or to and from Parquet.

What any table needs, `test_tables` has; here are its types, in batches of any size, compressed or
not, and files that are damaged.
"""

import random
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.feather as feather
import pyarrow.ipc as ipc
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from run.sort.test_tables import MIB, by_order, events, rows_of, tables
from support.cli.command import Tonnage
from support.stores.disk import disk_dir
from tonnage.base import core
from tonnage.base.records import RunRecord
from tonnage.measure.trial import environment
from tonnage.run.sort.tables import TableOrder, sort_table

CODECS = [None, "lz4", "zstd"]


def write(
    path: Path, table: pa.Table, batch_rows: int | None = None, codec: str | None = None
) -> Path:
    """A file, or a stream if its name ends so; one batch, or several."""
    options = ipc.IpcWriteOptions(compression=codec, unify_dictionaries=True)
    new = ipc.new_stream if path.suffix == ".arrows" else ipc.new_file
    with new(str(path), table.schema, options=options) as writer:
        writer.write_table(table.combine_chunks(), batch_rows)
    return path


def sorted_table(
    disk: Path, inputs: list[Path], order: TableOrder, memory: int = 64 * MIB
) -> tuple[RunRecord, pa.Table]:
    """Sorts without the command's start; gives the record, and the output as one table."""
    record = sort_table(
        inputs,
        [disk / "out"],
        [disk / "scratch"],
        order=order,
        memory_bytes=memory,
        environment=environment.capture([disk]),
        began_at="now",
        command=["test"],
    )
    assert list((disk / "scratch").iterdir()) == []
    parts = sorted((disk / "out").glob("part-*"))
    read = pq.read_table if parts[0].suffix == ".parquet" else read_file
    return record, pa.concat_tables([read(part) for part in parts])


def read_file(path: Path) -> pa.Table:
    assert path.suffix == ".arrow"
    with ipc.open_file(str(path)) as reader:
        return reader.read_all()


def plain(table: pa.Table) -> pa.Table:
    """Without dictionaries, which are equal only if their values are in the same order."""
    word = table["word"].cast(pa.string())
    return table.set_column(table.column_names.index("word"), "word", word)


@settings(max_examples=60)
@given(
    tables(),
    st.booleans(),
    st.integers(1, 3),
    st.integers(1, 20),
    st.sampled_from([".arrow", ".arrows", ".feather"]),
    st.sampled_from(CODECS),
)
def test_any_table_is_sorted_as_its_values_are(
    drawn: tuple[pa.Table, str, list[tuple[str, bool, bool]]],
    stable: bool,
    files: int,
    batch_rows: int,
    suffix: str,
    codec: str | None,
) -> None:
    table, by, order = drawn
    with disk_dir() as disk:
        source = disk / "in"
        source.mkdir()
        each = -(-table.num_rows // files)
        for number in range(files):
            part = table.slice(number * each, each)
            write(source / f"{number}{suffix}", part, batch_rows, codec)
        record, got = sorted_table(disk, [source], TableOrder(by=by, stable=stable))
        got.validate(full=True)
        assert record.records == record.written_records == table.num_rows
        assert got.schema.equals(table.schema)
        expected = sorted(rows_of(table), key=by_order(order))
        found = rows_of(got)
        if stable:
            assert repr(found) == repr(expected)
        else:
            key = by_order(order)
            assert all(key(one) == key(other) for one, other in zip(found, expected, strict=True))
            assert sorted(map(repr, found)) == sorted(map(repr, expected))


def mixed(rows: int) -> pa.Table:
    """Events, and columns that are only carried along."""
    rng = random.Random(5)
    words = pa.array([rng.choice("abc") * rng.randrange(9) for _ in range(rows)])
    items = [
        None if rng.random() < 0.1 else [rng.randrange(9)] * rng.randrange(5) for _ in range(rows)
    ]
    columns = {
        "word": words.dictionary_encode(),
        "items": pa.array(items, pa.list_(pa.int16())),
        "pair": pa.array([{"a": each, "b": str(each)} for each in range(rows)]),
        "flag": pa.array([each % 3 == 0 for each in range(rows)]),
    }
    table = events(rows)
    for name, column in columns.items():
        table = table.append_column(name, column)
    return table


@pytest.mark.parametrize(
    ("batch_rows", "codec"), [(None, None), (5000, None), (5000, "zstd"), (9999, "lz4")]
)
def test_what_is_larger_than_memory_goes_through_scratch(
    batch_rows: int | None, codec: str | None
) -> None:
    """One batch that is larger than memory, too."""
    with disk_dir() as disk:
        table = mixed(100_000)
        source = write(disk / "in.arrow", table, batch_rows, codec)
        order = TableOrder(by="user,-ts", stable=True)
        record, got = sorted_table(disk, [source], order, 12 * MIB)
        keys = [("user", "ascending"), ("ts", "descending")]
        expected = table.take(pc.sort_indices(table, sort_keys=keys))
        assert got.schema.equals(table.schema)
        assert plain(got).equals(plain(expected))
        assert record.shuffled_bytes is not None and record.shuffled_bytes > 12 * MIB
        assert record.settings["plan"]["split_bytes"] < 2 * MIB


@pytest.mark.parametrize("suffix", [".parquet", ".arrow"])
@pytest.mark.parametrize("output_format", ["parquet", "arrow"])
def test_one_format_becomes_the_other(suffix: str, output_format: str) -> None:
    with disk_dir() as disk:
        names = ["user", "ts", "word", "pair"]
        expected = mixed(3000).select(names).sort_by("ts")
        source, table = disk / f"in{suffix}", mixed(3000)
        user = table["user"].cast(pa.string_view())
        table = table.set_column(table.column_names.index("user"), "user", user)
        pq.write_table(table, source) if suffix == ".parquet" else write(source, table, 700)
        order = TableOrder(by="ts", stable=True, output_format=output_format, columns=names)
        _, got = sorted_table(disk, [source], order)
        assert {path.suffix for path in (disk / "out").glob("part-*")} == {f".{output_format}"}
        assert got.schema.equals(table.select(names).schema)
        assert plain(got.cast(expected.schema)).equals(plain(expected))


@pytest.mark.parametrize("codec", CODECS)
def test_feather_is_arrow(codec: str | None) -> None:
    with disk_dir() as disk:
        table = mixed(3000)
        feather.write_feather(table, disk / "in.feather", codec or "uncompressed", chunksize=100)
        _, got = sorted_table(disk, [disk / "in.feather"], TableOrder(by="user", stable=True))
        order = pc.sort_indices(table, sort_keys=[("user", "ascending")])
        assert plain(got).equals(plain(table.take(order)))


def test_files_without_rows_have_their_columns() -> None:
    with disk_dir() as disk:
        table = mixed(10).slice(0, 0)
        (disk / "in").mkdir()
        write(disk / "in" / "a.arrow", table)
        with ipc.new_file(str(disk / "in" / "b.arrow"), table.schema):
            pass
        record, got = sorted_table(disk, [disk / "in"], TableOrder(by="ts"))
        assert record.records == 0
        assert got.equals(table)


def test_dictionaries_of_several_files_become_one() -> None:
    with disk_dir() as disk:
        one = pa.table({"k": pa.array(["b", None, "a"]).dictionary_encode()})
        two = pa.table({"k": pa.array(["c", "a", "c"]).dictionary_encode()})
        inputs = [write(disk / "1.arrow", one), write(disk / "2.arrow", two)]
        _, got = sorted_table(disk, inputs, TableOrder(by="-k"))
        assert got["k"].to_pylist() == ["c", "c", "b", "a", "a", None]
        assert got.schema.equals(one.schema)


def test_a_dictionary_has_the_values_of_all_batches() -> None:
    with disk_dir() as disk:
        words = [f"word {number % 1000:03}" for number in range(200_000)]
        table = pa.table({"k": pa.array(words).dictionary_encode()})
        order = TableOrder(by="k", file_bytes=1 << 40)
        _, got = sorted_table(disk, [write(disk / "in.arrow", table)], order)
        assert got["k"].to_pylist() == sorted(words)


@pytest.mark.parametrize("batch_rows", [None, 700])
def test_dictionaries_within_lists_and_structs_are_kept(batch_rows: int | None) -> None:
    with disk_dir() as disk:
        rows = 5000
        words = pa.array([f"word {number % 300}" for number in range(2 * rows)]).dictionary_encode()
        offsets = pa.array(range(0, 2 * rows + 1, 2), pa.int32())
        table = pa.table(
            {
                "k": [number * 7919 % rows for number in range(rows)],
                "list": pa.ListArray.from_arrays(offsets, words),
                "struct": pa.StructArray.from_arrays([words[:rows]], ["word"]),
            }
        )
        source = write(disk / "in.arrow", table, batch_rows)
        _, got = sorted_table(disk, [source], TableOrder(by="k"))
        assert got.schema.equals(table.schema)
        assert got.to_pylist() == sorted(table.to_pylist(), key=lambda row: row["k"])


@pytest.mark.parametrize(
    ("arguments", "name", "message"),
    [
        (["--by", "nosuch"], "in.arrow", '--by: there is no column "nosuch"; the columns are k, v'),
        (
            ["--by", "k", "--columns", "k,v,k"],
            "in.arrow",
            '--columns: the column "k" is named twice',
        ),
        (["--by", "k", "--output-format", "orc"], "in.arrow", "orc is not one of parquet, arrow"),
        (["--output-format", "arrow"], "in.arrow", "--output-format is for tables; specify --by"),
        (["--by", "k", "--input-format", "arrow"], "in.csv", "in.csv: it is no Arrow IPC file"),
        (["--by", "k"], "union.arrow", 'the column "u" cannot be sorted along'),
        (["--by", "k"], "twice.arrow", 'several columns are named "k"'),
        (["--by", "k"], "old.feather", "it is Feather of version 1"),
        (["--by", "k"], "replaced.arrows", "its dictionaries are replaced between batches"),
    ],
)
def test_what_cannot_be_is_refused_in_a_line(
    tonnage: Tonnage, arguments: list[str], name: str, message: str
) -> None:
    with disk_dir() as disk:
        table = pa.table({"k": [2, 1], "v": [[1], [2]]})
        match name:
            case "union.arrow":
                union = pa.UnionArray.from_sparse(
                    pa.array([0, 1], pa.int8()), [pa.array([1, 2]), pa.array(["a", "b"])]
                )
                write(disk / name, table.append_column("u", union))
            case "twice.arrow":
                write(disk / name, table.append_column("k", pa.array([1, 2])))
            case "old.feather":
                (disk / name).write_bytes(b"FEA1" + bytes(40) + b"FEA1")
            case "replaced.arrows":
                batches = [
                    pa.table({"k": pa.array(words).dictionary_encode()}) for words in ("ab", "cd")
                ]
                with ipc.new_stream(str(disk / name), batches[0].schema) as writer:
                    for batch in batches:
                        writer.write_table(batch)
            case "in.csv":
                (disk / name).write_text("k,v\n2,1\n1,2\n")
            case _:
                write(disk / name, table)
        out = ["--output", str(disk / "out"), "--scratch", str(disk / "tmp")]
        ended = tonnage.run("run", "sort", str(disk / name), *out, *arguments)
        assert ended.returncode == 2
        assert message in ended.stderr
        assert len(ended.stderr.strip().splitlines()) == 1
        assert not (disk / "out").exists()


@settings(max_examples=60)
@given(st.data(), st.sampled_from(CODECS))
def test_damaged_files_end_in_a_line_or_are_read(data: st.DataObject, codec: str | None) -> None:
    """Any byte may be wrong, any end may be missing."""
    with disk_dir() as disk:
        path = write(disk / "in.arrow", mixed(60), 25, codec)
        content = bytearray(path.read_bytes())
        place = data.draw(st.integers(0, len(content) - 1))
        content[place] ^= data.draw(st.integers(1, 255))
        path.write_bytes(content[: data.draw(st.just(len(content)) | st.integers(0, len(content)))])
        try:
            sorted_table(disk, [path], TableOrder(by="user"))
        except (core.UsageError, core.RunError) as why:
            assert "\n" not in str(why)
            assert "in.arrow" in str(why) or "column" in str(why)
