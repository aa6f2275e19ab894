"""MapReduce gives the same results as plain Python, whatever the data."""

import base64
import collections
import datetime
import json
import math
import random
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tonnage
from support.cli.command import Tonnage
from support.cli.processes import started
from support.mapreduce import LEAST, done, failed, tables
from support.stores.disk import disk_dir
from tonnage import Input, MapReduce, counts, groups, per_record, sums
from tonnage.base import core
from tonnage.base.records import RunRecord
from tonnage.run.mapreduce.shuffle import MemoryBudget


def words(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Each word of lines, once."""
    found = pc.list_flatten(pc.split_pattern_regex(batch.column("line"), r"\s+"))
    return pa.record_batch({"key": found, "n": pa.repeat(1, len(found))})


def bundled(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Each group as one row: its key, and what its rows have."""
    found = [
        {"key": rows.column("key")[0].as_py(), "n": sorted(rows.column("n").to_pylist())}
        for rows in groups(batch)
    ]
    return pa.RecordBatch.from_pylist(found)


def text(path: Path, lines: list[str]) -> Path:
    """A file of lines."""
    path.write_text("".join(f"{line}\n" for line in lines))
    return path


WORDS = MapReduce(map=words, combine=sums("n"), reduce=sums("n"))


def test_words_are_counted_in_any_number_of_files(disk: Path) -> None:
    draw = random.Random(1)
    source = disk / "in"
    source.mkdir()
    lines = [
        " ".join(f"word{int(draw.paretovariate(1))}" for _ in range(draw.randrange(1, 20)))
        for _ in range(20_000)
    ]
    for number in range(3):
        text(source / f"{number}.txt", lines[number::3])
    record, found = done(disk, WORDS, source)
    expected = collections.Counter(word for line in lines for word in line.split())
    assert dict(zip(*found.to_pydict().values(), strict=True)) == expected
    assert record.records == len(lines)
    assert record.bytes == sum(path.stat().st_size for path in source.iterdir())
    assert len(expected) <= (record.shuffled_records or 0) < sum(expected.values())
    assert [phase.name for phase in record.phases] == ["pass_one", "pass_two"]
    assert record.phases[0].graph == "from_host x1 -blocks-> write x1"
    assert record.phases[1].graph == "read x1 -partitions-> to_host x1"


KEYS: dict[str, tuple[pa.DataType, Any]] = {
    "strings": (pa.string(), st.text(max_size=8)),
    "large strings": (
        pa.large_string(),
        st.sampled_from(["", "a", "b", "\0", "\u00e9", "\U0001f600"]),
    ),
    "bytes": (pa.binary(), st.binary(max_size=12)),
    "fixed": (pa.binary(3), st.binary(min_size=3, max_size=3)),
    "integers": (pa.int64(), st.integers(-5, 5) | st.integers(-(1 << 63), (1 << 63) - 1)),
    "small": (pa.int8(), st.integers(-128, 127)),
    "unsigned": (pa.uint64(), st.integers(0, (1 << 64) - 1)),
    "floats": (pa.float64(), st.floats() | st.sampled_from([0.0, -0.0, math.nan])),
    "booleans": (pa.bool_(), st.booleans()),
    "days": (pa.date32(), st.dates()),
    "moments": (pa.timestamp("us"), st.datetimes()),
    "decimals": (pa.decimal128(9, 2), st.decimals(-99999, 99999, places=2)),
    "nothing": (pa.null(), st.none()),
    "words by number": (pa.string(), st.sampled_from(["x", "y", ""])),
}


def numbered(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Keys as Arrow's dictionaries, which differ from batch to batch."""
    return batch.set_column(0, "key", batch.column("key").dictionary_encode())


def alike(key: Any) -> Any:
    """A key as groups compare it: all NaN are one, and so are both zeros."""
    return "nan" if isinstance(key, float) and math.isnan(key) else key


@settings(max_examples=60, derandomize=True)
@given(
    data=st.data(),
    kind=st.sampled_from(sorted(KEYS)),
    ordered=st.booleans(),
    partitions=st.sampled_from([None, 1, 7]),
    batches=st.integers(0, 4),
    combined=st.booleans(),
)
def test_groups_are_those_of_a_dict(
    data: st.DataObject,
    kind: str,
    ordered: bool,
    partitions: int | None,
    batches: int,
    combined: bool,
) -> None:
    of_type, values = KEYS[kind]
    rows = st.lists(st.tuples(values | st.none(), st.integers(0, 9)), max_size=60)
    drawn = [data.draw(rows, label=f"batch {number}") for number in range(batches)]
    expected: dict[Any, list[int]] = {}
    for key, n in (row for batch in drawn for row in batch):
        expected.setdefault(alike(key), []).append(n)
    with disk_dir() as disk:
        path = disk / "in.arrow"
        schema = pa.schema({"key": of_type, "n": pa.int64()})
        with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, schema) as writer:
            for batch in drawn:
                columns = [[row[0] for row in batch], [row[1] for row in batch]]
                arrays = [pa.array(columns[0], of_type), pa.array(columns[1], pa.int64())]
                writer.write_batch(pa.record_batch(arrays, schema=schema))
        job = MapReduce(
            map=numbered if kind == "words by number" else None,
            reduce=sums("n") if combined else bundled,
            combine=sums("n") if combined else None,
            ordered=ordered,
            partitions=partitions,
        )
        _, found = done(disk, job, path, format="arrow")
        got = {alike(row["key"]): row["n"] for row in found.to_pylist()}
        assert len(got) == found.num_rows, "a group came out in two pieces"
        wanted = {key: sum(of) if combined else sorted(of) for key, of in expected.items()}
        assert got == wanted
        if ordered and found.num_rows and of_type != pa.null():
            plain = found.column("key")
            assert pc.sort_indices(plain).to_pylist() == list(range(len(plain)))


@pytest.mark.parametrize("compression", [None, "lz4", "zstd"])
@pytest.mark.parametrize("dictionary", [False, True])
def test_a_record_batch_that_memory_does_not_hold_is_refused(
    disk: Path, compression: str | None, dictionary: bool
) -> None:
    """Also one that is short in the file."""
    keys = pa.array(range(1000)).dictionary_encode() if dictionary else pa.array(range(1000))
    rows = pa.record_batch({"key": keys, "text": ["x" * 40_000] * 1000})
    path = disk / "in.arrow"
    options = pa.ipc.IpcWriteOptions(compression=compression)
    with (
        pa.OSFile(str(path), "wb") as file,
        pa.ipc.new_file(file, rows.schema, options=options) as writer,
    ):
        writer.write_batch(rows)
    job = MapReduce(map=lambda rows: rows.select(["key"]), key="key", reduce=lambda rows: rows)
    why = (
        r"in\.arrow.* a record batch has 40\d{6} bytes, and a thread has memory for one of \d+; use"
    )
    with pytest.raises(core.RunError, match=why):
        done(disk, job, path, memory="64MiB")
    assert done(disk, job, path, memory="512MiB")[1].num_rows == 1000


def test_a_key_of_several_columns(disk: Path) -> None:
    draw = random.Random(2)
    rows = [
        {"a": draw.randrange(9), "b": draw.choice(["x", "y", None]), "n": 1} for _ in range(5000)
    ]
    pq.write_table(pa.Table.from_pylist(rows), disk / "in.parquet", row_group_size=700)
    job = MapReduce(
        key=["a", "b"], combine=sums("n", key=("a", "b")), reduce=sums("n", key=("a", "b"))
    )
    _, found = done(disk, job, disk / "in.parquet")
    got = {(row["a"], row["b"]): row["n"] for row in found.to_pylist()}
    assert got == collections.Counter((row["a"], row["b"]) for row in rows)


@pytest.mark.parametrize("format", ["lines", "csv", "json", "parquet", "arrow", "records:12"])
def test_all_that_is_read_is_read_once(disk: Path, format: str) -> None:
    # Several splits, lines of any length, and no end of line at the file's end.
    draw = random.Random(3)
    rows = [{"key": f"k{draw.randrange(1 << 36):011}"} for _ in range(60_000)]
    keys = [row["key"] for row in rows]
    path = disk / f"in.{format.partition(':')[0]}"
    if format == "lines":
        path.write_text("\n".join(keys))
    elif format == "csv":
        path.write_text("key\r\n" + "\r\n".join(keys))
    elif format == "json":
        path.write_text("\n".join(map(json.dumps, rows)))
    elif format == "parquet":
        pq.write_table(pa.Table.from_pylist(rows), path, row_group_size=9_999)
    elif format == "arrow":
        table = pa.Table.from_pylist(rows)
        with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
            writer.write_table(table, max_chunksize=9_999)
    else:
        path.write_text("".join(keys))

    def keyed(batch: pa.RecordBatch) -> pa.RecordBatch:
        column = batch.column(0)
        return pa.record_batch({"key": column.cast(pa.binary()).cast(pa.string())})

    job = MapReduce(map=keyed, reduce=counts(), ordered=True)
    record, found = done(disk, job, path, input_format=format)
    assert record.records == len(rows)
    assert found.to_pydict() == {
        "key": sorted(set(keys)),
        "n": [count for _, count in sorted(collections.Counter(keys).items())],
    }


@pytest.mark.parametrize("format", ["parquet", "arrow", "csv", "json"])
def test_all_that_is_written_is_read_again(disk: Path, format: str) -> None:
    lines = ["a b", "\u00e9t\u00e9 a", "b a"]
    _, found = done(disk, WORDS, text(disk / "in.txt", lines), format=format)
    assert sorted(zip(*found.to_pydict().values(), strict=True)) == [("a", 3), ("b", 2), ("été", 1)]


def test_json_has_bytes_and_moments_as_text(disk: Path) -> None:
    moment = datetime.datetime(2026, 1, 2)
    table = pa.table({"key": [b"\0\xff"], "at": [moment]})
    pq.write_table(table, disk / "in.parquet")
    done(disk, MapReduce(), disk / "in.parquet", format="json")
    line = json.loads((disk / "out" / "part-00000.jsonl").read_text())
    assert line == {"key": base64.b64encode(b"\0\xff").decode(), "at": moment.isoformat()}


@pytest.mark.parametrize("lines", [[], [""], ["one"], ["", "", ""], ["é" * 60_000]])
def test_little_or_odd_input(disk: Path, lines: list[str]) -> None:
    record, found = done(disk, MapReduce(map=whole, reduce=counts()), text(disk / "in.txt", lines))
    expected = collections.Counter(lines)
    assert {row["key"]: row["n"] for row in found.to_pylist()} == expected
    assert (record.records, record.written_records) == (len(lines), len(expected))


def whole(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Each line as a key."""
    return pa.record_batch({"key": batch.column("line")})


def wide(rows: int, hot: float) -> Iterator[dict[str, Any]]:
    """Rows of 100 bytes and more, of which a share has one key."""
    draw = random.Random(4)
    for number in range(rows):
        key = "hot" if draw.random() < hot else f"{draw.randrange(rows):09}"
        yield {"key": key, "n": number, "payload": draw.randbytes(50).hex()}


@pytest.mark.parametrize("ordered", [False, True])
def test_partitions_that_memory_does_not_hold_are_divided_again(disk: Path, ordered: bool) -> None:
    rows = list(wide(60_000, 0.02))
    pq.write_table(pa.Table.from_pylist(rows), disk / "in.parquet", row_group_size=5_000)
    job = MapReduce(reduce=bundled, partitions=1, ordered=ordered)
    record, found = done(disk, job, disk / "in.parquet")
    assert record.repartitioned_bytes > 0
    assert "pass_one_again" in {phase.name for phase in record.phases}
    expected: dict[str, list[int]] = {}
    for row in rows:
        expected.setdefault(row["key"], []).append(row["n"])
    assert {row["key"]: row["n"] for row in found.to_pylist()} == expected
    assert found.num_rows == len(expected)
    if ordered:
        assert found.column("key").to_pylist() == sorted(expected)


def test_half_of_all_rows_have_one_key(disk: Path) -> None:
    rows = list(wide(60_000, 0.5))
    pq.write_table(pa.Table.from_pylist(rows), disk / "in.parquet", row_group_size=5_000)
    # Reduce wants them together, and they are more than memory.
    said = failed(disk, MapReduce(reduce=bundled), disk / "in.parquet", core.RunError)
    assert "key 'hot' take" in said and "add a combine function" in said
    # Not if combine makes fewer of them, nor where nobody wants them together.
    _, found = done(disk, MapReduce(combine=sums("n"), reduce=sums("n")), disk / "in.parquet")
    got = {row["key"]: row["n"] for row in found.to_pylist()}
    expected: collections.Counter[str] = collections.Counter()
    for row in rows:
        expected[row["key"]] += row["n"]
    assert got == expected


@pytest.mark.parametrize("hot", [0.0, 0.5, 1.0])
def test_a_sort_is_in_order_and_whole(disk: Path, hot: float) -> None:
    rows = list(wide(50_000, hot))
    pq.write_table(pa.Table.from_pylist(rows), disk / "in.parquet", row_group_size=5_000)
    _, found = done(disk, MapReduce(ordered=True), disk / "in.parquet")
    keys = found.column("key").to_pylist()
    assert keys == sorted(keys)
    assert sorted(found.to_pylist(), key=lambda row: row["n"]) == rows


def test_a_join_of_inputs_whose_maps_differ(disk: Path) -> None:
    users = [{"id": number, "name": f"user {number}"} for number in range(100)]
    orders = [{"user": number % 130, "cents": number} for number in range(1000)]
    pq.write_table(pa.Table.from_pylist(users), disk / "users.parquet")
    text(disk / "orders.json", list(map(json.dumps, orders)))
    by_id = Input(disk / "users.parquet", map=lambda rows: rows.rename_columns(["key", "name"]))
    by_user = Input(disk / "orders.json", map=lambda rows: rows.rename_columns(["key", "cents"]))

    def matched(batch: pa.RecordBatch) -> pa.RecordBatch:
        table = pa.Table.from_batches([batch])
        left = table.filter(pc.is_valid(table["name"])).select(["key", "name"])
        right = table.filter(pc.is_valid(table["cents"])).select(["key", "cents"])
        return left.join(right, "key", join_type="inner").combine_chunks()

    _, found = done(disk, MapReduce(reduce=matched), [by_id, by_user])
    expected = [(order["user"], f"user {order['user']}", order["cents"]) for order in orders]
    got = [(row["key"], row["name"], row["cents"]) for row in found.to_pylist()]
    assert sorted(got) == sorted(row for row in expected if row[0] < 100)


def test_plain_functions_a_record_at_a_time(disk: Path) -> None:
    job = MapReduce(
        **per_record(
            map=lambda record: ((word, 1) for word in record["line"].split()),
            combine=lambda _, values: [sum(values)],
            reduce=lambda key, values: [{"word": key, "n": sum(values)}],
        )
    )
    _, found = done(disk, job, text(disk / "in.txt", ["a b a", "", "b"]))
    assert sorted(row["word"] for row in found.to_pylist()) == ["a", "b"]
    assert {row["word"]: row["n"] for row in found.to_pylist()} == {"a": 2, "b": 2}


def broken(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Fails on one line of many."""
    if "bad" in batch.column("line").to_pylist():
        raise ValueError("what a line")
    return whole(batch)


def test_errors_of_functions_are_told_with_place_and_cause(disk: Path) -> None:
    path = text(disk / "in.txt", [f"line {number}" for number in range(50_000)] + ["bad"])
    with pytest.raises(core.RunError) as raised:
        MapReduce(map=broken).run(path, disk / "out", disk / "scratch", memory=LEAST, workers=2)
    assert isinstance(raised.value.__cause__, ValueError)
    said = failed(disk, MapReduce(map=broken), path, core.RunError)
    assert "map (broken) failed for" in said and "ValueError: what a line" in said
    assert f"{path}, bytes 5" in said, "the split that it is in"

    def unreducible(batch: pa.RecordBatch) -> pa.RecordBatch:
        raise KeyError("amount")

    for name in ("reduce", "combine"):
        job = MapReduce(map=whole, **{name: unreducible})
        assert f"{name} (" in failed(disk, job, path, core.RunError)
    for gave, why in [
        (lambda batch: 7, "map returned int"),
        (lambda batch: batch, "map has no column key, which the key needs; it has line"),
        (lambda batch: pa.record_batch({"key": [[1]] * len(batch)}), "cannot be sorted"),
    ]:
        said = failed(disk, MapReduce(map=gave, reduce=counts()), path, Exception)
        assert why in said, said


def test_maps_that_do_not_go_together_are_named(disk: Path) -> None:
    one = Input(
        text(disk / "one.txt", ["a"]), map=lambda b: pa.record_batch({"key": [1], "v": [1]})
    )
    two = Input(
        text(disk / "two.txt", ["b"]), map=lambda b: pa.record_batch({"key": [1], "v": ["x"]})
    )
    said = failed(disk, MapReduce(), [one, two], core.RunError)
    assert "one.txt" in said and "two.txt" in said and "cast them in map" in said


def test_a_row_that_no_block_holds_is_named(disk: Path) -> None:
    path = text(disk / "in.txt", ["short", "x" * 200_000])
    job = MapReduce(map=lambda b: pa.record_batch({"key": b["line"]}), reduce=counts())
    said = failed(disk, job, path, core.RunError)
    assert "the row with key 'xxx" in said and "use more memory" in said
    assert done(disk, job, path, memory="64MiB")[1].num_rows == 2


@pytest.mark.parametrize("format", ["lines", "json", "csv"])
def test_a_line_that_memory_does_not_hold_is_refused(disk: Path, format: str) -> None:
    path, begins = disk / "in", {"lines": b"", "json": b'{"key": "', "csv": b"key\n"}[format]
    path.write_bytes(begins + b"x" * (20 << 20))
    job = MapReduce(key="line" if format == "lines" else "key")
    said = failed(disk, job, path, core.RunError, input_format=format)
    assert "a line has more than 1048576 bytes" in said and "use more memory" in said


CORRUPT: dict[str, tuple[str, bytes, str]] = {
    "a number that is none": ("a.csv", b"key,n\n" + b"k,1\n" * 300_000 + b"k,x\n", "line 300002"),
    "a row that is short": ("a.csv", b"key,n\n" + b"k,1\n" * 300_000 + b"k\n", "line 300002"),
    "JSON that is none": ("a.json", b'{"key":1}\n' * 200_000 + b'{"key":\n', "a.json"),
    "a value of another type": (
        "a.json",
        b'{"key":1}\n' * 200_000 + b'{"key":"x"}\n',
        "line 200001",
    ),
    "no UTF-8": ("a.txt", b"fine\n" * 200_000 + b"\xff\n", "line 200001"),
}


@pytest.mark.parametrize("name", CORRUPT)
def test_what_cannot_be_read_is_told_with_file_and_line(disk: Path, name: str) -> None:
    file, content, place = CORRUPT[name]
    (disk / file).write_bytes(content)
    job = MapReduce(map=whole if file == "a.txt" else None, reduce=counts())
    said = failed(disk, job, disk / file, core.RunError)
    assert str(disk / file) in said and place in said, said


def test_a_corrupt_parquet_file_is_told_with_its_row_group(disk: Path) -> None:
    path = disk / "in.parquet"
    rows = pa.table({"key": [random.Random(n).randbytes(20) for n in range(3000)]})
    pq.write_table(rows, path, row_group_size=1000, compression="zstd")
    content = bytearray(path.read_bytes())
    place = pq.read_metadata(path).row_group(1).column(0).data_page_offset
    content[place : place + 200] = bytes(200)
    path.write_bytes(content)
    said = failed(disk, MapReduce(reduce=counts()), path, core.RunError)
    assert f"{path}, row group 1" in said
    path.write_bytes(content[:-100])
    said = failed(disk, MapReduce(reduce=counts()), path, core.UsageError)
    assert f"{path} is not a valid parquet file" in said


def test_what_cannot_be_used_is_refused(disk: Path) -> None:
    fine = text(disk / "in.txt", ["a"])
    (disk / "in.bin").write_bytes(b"12345")
    for options, inputs, why in [
        ({"memory": "1MiB"}, fine, "1048576 bytes are not enough"),
        ({"workers": 0}, fine, "0 is not a whole number of at least 1"),
        ({"format": "xml"}, fine, "xml is not one of parquet, arrow"),
        ({"input_format": "xml"}, fine, "xml is not one of auto, parquet"),
        ({}, disk / "nowhere", "does not exist"),
        ({}, disk / "in.bin", "in.bin cannot be inferred from its name"),
        ({"input_format": "records:2"}, disk / "in.bin", "not a multiple of the row size (2)"),
    ]:
        assert why in failed(disk, WORDS, inputs, core.UsageError, **options)
    (disk / "out").mkdir()
    (disk / "out" / "part-00000").touch()
    with pytest.raises(core.UsageError, match="contains an earlier output"):
        done(disk, WORDS, fine)


@pytest.mark.parametrize("operation", ["read", "write"])
def test_a_device_that_fails_or_corrupts_leaves_nothing(
    disk: Path, monkeypatch: pytest.MonkeyPatch, operation: str
) -> None:
    rows = pa.table({"key": range(50_000), "n": range(50_000)})
    pq.write_table(rows, disk / "in.parquet", row_group_size=5_000)
    effect: Any = "corrupt" if operation == "read" else {"error": {"errno": 28}}
    rule = {"operation": operation, "effect": effect, "path_contains": "round-"}
    background_job = core.BackgroundJob

    def faulty(name: str, config: dict[str, Any], gate: Any) -> core.BackgroundJob:
        return background_job(
            name, config | {"disk": {"faults": {"seed": 1, "rules": [rule]}}}, gate
        )

    monkeypatch.setattr(core, "BackgroundJob", faulty)
    said = failed(disk, MapReduce(reduce=sums("n")), disk / "in.parquet", core.RunError)
    assert ("the output was discarded" if operation == "read" else "os error 28") in said, said


@pytest.mark.parametrize("devices", [1, 5])
def test_each_device_reads_a_portion_that_is_nearly_full(disk: Path, devices: int) -> None:
    (disk / "in").write_bytes(random.Random(1).randbytes(7_200_000))
    job = MapReduce(key="record", partitions=8)
    scratch = [disk / "scratch" / str(number) for number in range(devices)]
    (disk / "scratch").mkdir()
    record = job.run(
        [Input(str(disk / "in"), format="records:100")],
        disk / "out",
        scratch,
        memory=LEAST,
        workers=2,
    )
    assert record.repartitioned_bytes == 0
    assert (record.shuffled_bytes or 0) > 0.8 * 8 * MemoryBudget(16 << 20, 2, devices).portion_bytes
    assert record.phases[1].graph == f"read x{devices} -partitions-> to_host x1"
    assert sum(table.num_rows for table in tables(disk / "out")) == 72_000


@pytest.mark.parametrize("workers", range(1, 9))
def test_portions_are_within_the_memory(workers: int) -> None:
    for devices in range(1, 64):
        shares = MemoryBudget(1 << 30, workers, devices)
        held = shares.pass_two_bytes // shares.portion_bytes
        assert held >= min(devices + 1, 32)
        assert 4 * workers * shares.portion_bytes + shares.pass_two_bytes <= shares.memory_bytes


@pytest.mark.parametrize("ends", ["awaited", "shut", "raises"])
def test_what_the_core_refuses_is_told_as_that(disk: Path, ends: str) -> None:
    gate = core.HostInput(1 << 20)
    paths = {"scratch": [str(disk / "device")], "index": str(disk / "index")}
    config = {"owners": [0], "block_bytes": 1 << 20, "memory_bytes": 1 << 20} | paths
    raises, why = (
        (ValueError, "mine")
        if ends == "raises"
        else (core.UsageError, "are not enough for a block")
    )
    with pytest.raises(raises, match=why), core.BackgroundJob("map_reduce_pass_one", config, gate):
        while ends == "shut":
            gate.put(0, b"until nothing passes any more")
        if ends == "raises":
            raise ValueError("mine")


SLOW = """
import pyarrow as pa
import tonnage, time
def slow(batch):
    time.sleep(0.05)
    return pa.record_batch({"key": batch["line"]})
SLEEPS = tonnage.MapReduce(map=slow, reduce=tonnage.counts())
WRONG = 7
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_an_end_that_nobody_wished_for_leaves_nothing(
    disk: Path, tonnage: Tonnage, number: signal.Signals
) -> None:
    (disk / "slow.py").write_text(SLOW)
    path = text(disk / "in.txt", [f"{n:09}" for n in range(1_000_000)])
    args = ["run", "mapreduce", f"{disk / 'slow.py'}:SLEEPS", path, "--output", disk / "out"]
    args += ["--scratch", disk / "scratch", "--memory", "16MiB"]
    with started([tonnage.path, *args]) as running:
        running.wait_until(lambda: bool(list((disk / "scratch").glob("*/round-1"))))
        code, _, said = running.end(number)
    if number == signal.SIGKILL:
        assert list((disk / "scratch").iterdir()) != []
    else:
        assert code == 130 if number == signal.SIGINT else 143
        assert "interrupted; unfinished output was removed" in said
        assert not (disk / "out").exists() and list((disk / "scratch").iterdir()) == []
    # What a killed one left the next one removes.
    _, found = done(disk, WORDS, text(disk / "other.txt", ["a"]))
    assert found.to_pydict() == {"key": ["a"], "n": [1]}


def test_the_command(disk: Path, tonnage: Tonnage) -> None:
    (disk / "slow.py").write_text(SLOW)
    path = text(disk / "in.txt", ["b", "a", "b"])
    places = ["--output", disk / "out", "--scratch", disk / "scratch"]
    job = ["run", "mapreduce", f"{disk / 'slow.py'}:SLEEPS", path, *places]
    said = tonnage.run(*job, "--output-format", "csv", "--json", check=True).stdout
    record = RunRecord.from_json(json.loads(said))
    assert (record.records, record.written_records) == (3, 2)
    found = pa.concat_tables(tables(disk / "out"))
    assert sorted(found.column("key").to_pylist()) == ["a", "b"]
    again = tonnage.run(*job)
    assert again.returncode == 2 and "contains an earlier output" in again.stderr
    for name, why in [
        ("slow.py:WRONG", "is of type int"),
        ("slow.py:NONE", "does not contain NONE"),
        ("slow.py", "use MODULE:NAME"),
        ("none.py:X", "none.py"),
    ]:
        wrong = tonnage.run("run", "mapreduce", f"{disk}/{name}", path, *places)
        assert wrong.returncode == 2 and why in wrong.stderr, wrong.stderr


def test_the_command_line_loads_no_arrow() -> None:
    code = "import sys, tonnage, tonnage.cli.commands; print('pyarrow' in sys.modules)"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert said.stdout == "False\n"
    assert tonnage.MapReduce is MapReduce
    with pytest.raises(AttributeError):
        _ = tonnage.nothing  # type: ignore[attr-defined]


def test_an_input_that_is_there_twice_is_refused(disk: Path) -> None:
    path = text(disk / "in.txt", ["a"])
    for inputs in ([path, path], [path, str(disk / "." / "in.txt")], [path, Input(str(path))]):
        said = failed(disk, WORDS, inputs, core.UsageError)
        assert "pass it only once" in said


def test_files_of_0_bytes_are_passed_over(disk: Path) -> None:
    source = disk / "in"
    source.mkdir()
    pq.write_table(pa.table({"key": [1, 2]}), source / "a.parquet")
    for name in ("b.parquet", "no-suffix", "SUCCESS"):
        (source / name).touch()
    record, _ = done(disk, MapReduce(), source)
    assert record.records == 2
