"""Tables on a cluster of threads: what one machine makes of them, whatever is lost."""

from __future__ import annotations

import bz2
import json
import os
import random
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.feather as feather
import pyarrow.json as pa_json
import pyarrow.parquet as pq
import pytest

from support.cluster.sorters import (
    SortMachines,
    Trouble,
    directories,
    driver,
    has_copies,
)
from tonnage.base import core
from tonnage.base.records import RunRecord
from tonnage.measure.trial import environment
from tonnage.run.sort.cluster.tables import TableSortJob, table_sort_job
from tonnage.run.sort.tables import TableOrder, sort_table
from tonnage.run.two_pass.driver import run_two_pass

MEMORY = 32 << 20
NODES = ("a", "b", "c")
BY = "user,-ts"


def table(seed: int, rows: int, first: int = 0) -> pa.Table:
    """Rows with few users, times with nulls, and a payload that says which row it is."""
    draw = random.Random(seed)
    return pa.table(
        {
            "user": [f"user-{draw.randrange(50):03}" for _ in range(rows)],
            "ts": [draw.choice([None, draw.randrange(10**6)]) for _ in range(rows)],
            "row": pa.array(range(first, first + rows), pa.int64()),
            "payload": [draw.randbytes(draw.randrange(30)) for _ in range(rows)],
        }
    )


def files(room: Path, tables: Sequence[pa.Table], suffix: str) -> list[str]:
    """The tables as files of a directory that all nodes see."""
    place = room / "in"
    place.mkdir()
    for number, each in enumerate(tables):
        path = place / f"f{number}{suffix}"
        if suffix == ".parquet":
            pq.write_table(each, path, row_group_size=2000)
        elif suffix == ".arrow":
            feather.write_feather(each, path, compression="uncompressed", chunksize=1500)
        elif suffix == ".jsonl":
            path.write_text("".join(json.dumps(row) + "\n" for row in each.to_pylist()))
        else:
            pa_csv.write_csv(each, path)
    return [str(place)]


def job(room: Path, inputs: Sequence[str], order: TableOrder, **more: Any) -> TableSortJob:
    fields: dict[str, Any] = {
        "output": directories(room, "out"),
        "scratch": directories(room, "scratch"),
        "memory_bytes": MEMORY,
        "connections": 1,
        "patience_seconds": 5.0,
        "command": ["test"],
    }
    return table_sort_job(order, inputs=inputs, **fields | more)


def on_one_machine(room: Path, inputs: Sequence[str], order: TableOrder) -> list[Path]:
    sort_table(
        list(inputs),
        [room / "one"],
        [room / "one-scratch"],
        order=order,
        memory_bytes=MEMORY,
        environment=environment.capture([room]),
        began_at="now",
        command=["test"],
    )
    return sorted((room / "one").glob("part-*"))


def parts(room: Path) -> list[Path]:
    """The files of the output in the order of the job's list; nothing else is there."""
    listed = [Path(each["path"]) for each in json.loads((room / "job" / "sorted.json").read_text())]
    assert listed == sorted(listed, key=lambda path: path.name)
    there = {path for node in NODES for path in (room / node / "out").glob("part-*")}
    assert there == {*listed}
    for node in NODES:
        assert list((room / node / "scratch").glob("*")) == []
        assert list((room / node / "out").glob(".tonnage-*")) == []
    return listed


def rows_of(paths: Sequence[Path]) -> pa.Table:
    read = {
        ".parquet": pq.read_table,
        ".arrow": feather.read_table,
        ".csv": pa_csv.read_csv,
        ".jsonl": pa_json.read_json,
    }
    return pa.concat_tables([read[path.suffix](path) for path in paths])


def judged(room: Path, given: Sequence[pa.Table], record: RunRecord, suffix: str) -> None:
    """The output is the input, in order."""
    found = rows_of(parts(room))
    expected = pa.concat_tables(given)
    assert (record.records, record.written_records) == (len(expected), len(found))
    assert sorted(found["row"].to_pylist()) == expected["row"].to_pylist()
    keys = zip(found["user"].to_pylist(), found["ts"].to_pylist(), strict=True)
    placed = [(user, ts is None, -(ts or 0)) for user, ts in keys]
    assert placed == sorted(placed)
    assert found.sort_by("row").select(expected.column_names).equals(expected)


@pytest.mark.parametrize("suffix", [".parquet", ".arrow", ".csv", ".jsonl"])
def test_a_cluster_makes_of_tables_what_one_machine_does(disk: Path, suffix: str) -> None:
    given = [table(seed, 6000, 6000 * seed) for seed in range(3)]
    if suffix in (".csv", ".jsonl"):
        given = [each.drop_columns(["payload"]) for each in given]
    inputs = files(disk, given, suffix)
    order = TableOrder(by=BY, stable=True, file_bytes=100_000)
    record = run_two_pass(SortMachines(*NODES), disk / "job", job(disk, inputs, order))
    judged(disk, given, record, suffix)
    assert all(node.read_bytes and node.written_bytes for node in record.nodes)
    assert rows_of(parts(disk)).equals(rows_of(on_one_machine(disk, inputs, order)))


def test_lines_belong_to_the_split_in_which_they_begin(disk: Path) -> None:
    draw = random.Random(1)
    lines = [b"%x" % draw.getrandbits(draw.choice([8, 100, 4000])) for _ in range(20_000)]
    (disk / "in.txt").write_bytes(b"\n".join(lines))
    order = TableOrder(by="line", compression="bzip2")
    want = job(disk, [str(disk / "in.txt")], order)
    record = run_two_pass(SortMachines(*NODES), disk / "job", want)
    assert record.records == len(lines)
    assert all(node.read_bytes for node in record.nodes)
    found = b"".join(bz2.decompress(path.read_bytes()) for path in parts(disk))
    assert found == b"".join(line + b"\n" for line in sorted(lines))


def test_of_rows_with_equal_keys_one_stays_and_the_first_if_stable(disk: Path) -> None:
    given = [table(seed, 4000, 4000 * seed) for seed in range(3)]
    inputs = files(disk, given, ".parquet")
    order = TableOrder(by="user", stable=True, unique=True, columns=["row", "user"])
    record = run_two_pass(SortMachines(*NODES), disk / "job", job(disk, inputs, order))
    found = rows_of(parts(disk)).to_pylist()
    first: dict[str, int] = {}
    for row in pa.concat_tables(given).select(["user", "row"]).to_pylist():
        first.setdefault(row["user"], row["row"])
    assert found == [{"row": first[user], "user": user} for user in sorted(first)]
    assert (record.records, record.written_records) == (12_000, len(first))


def test_types_of_all_nodes_are_joined_or_refused(disk: Path) -> None:
    kinds = {"a": pa.int32(), "b": pa.int64(), "c": pa.int64()}
    for place, (node, kind) in enumerate(kinds.items()):
        (disk / node / "in").mkdir(parents=True)
        values = pa.table({"k": pa.array([place, 2**30 + place], kind)})
        pq.write_table(values, disk / node / "in" / "f.parquet")
    inputs, order = [f"{disk}/{{node}}/in"], TableOrder(by="k")
    run_two_pass(SortMachines(*NODES), disk / "job", job(disk, inputs, order))
    found = rows_of(parts(disk))
    assert found["k"].to_pylist() == [0, 1, 2, 2**30, 2**30 + 1, 2**30 + 2]
    assert found.schema.field("k").type == pa.int64()

    pq.write_table(pa.table({"k": ["x"]}), disk / "b" / "in" / "f.parquet")
    want = job(disk, inputs, order, output=directories(disk, "out-2"))
    with pytest.raises(core.UsageError, match=r'on b: its column "k" is string, .* int32 of /'):
        run_two_pass(SortMachines(*NODES), disk / "job-2", want)
    assert not (disk / "job-2" / "job.json").exists()


def test_what_clusters_cannot_sort_is_refused_in_one_line(disk: Path) -> None:
    with pytest.raises(core.UsageError, match="a cluster reads whole folders of a store"):
        job(disk, ["s3://b/x*"], TableOrder(by="k"))
    (disk / "in" / "day=1").mkdir(parents=True)
    (disk / "in" / "day=1" / "f.txt").write_bytes(b"x")
    want = job(disk, [str(disk / "in")], TableOrder(by="line"))
    with pytest.raises(core.UsageError, match="its folder says what its column 'day' is"):
        run_two_pass(SortMachines(*NODES), disk / "job", want)
    (disk / "in" / "day=1" / "f.txt").write_bytes(b"\xfd7zXZ\x00" + bytes(20))
    want = job(disk, [str(disk / "in" / "day=1")], TableOrder(by="line"))
    with pytest.raises(core.UsageError, match=r"f.txt is compressed with xz"):
        run_two_pass(SortMachines(*NODES), disk / "job", want)


def test_a_value_that_is_none_of_its_type_ends_the_job_and_blames_no_node(disk: Path) -> None:
    (disk / "in.csv").write_text("k,v\n" + "".join(f"{n},x\n" for n in range(300_000)) + "x,y\n")
    want = job(disk, [str(disk / "in.csv")], TableOrder(by="k"))
    place = r"in.csv: the record in line 300002 \(byte \d+\)"
    with pytest.raises(core.UsageError, match=rf'{place} has "x" in column "k", which is no whole'):
        run_two_pass(SortMachines(*NODES), disk / "job", want)
    assert not [path for node in NODES for path in (disk / node / "out").glob("*")]


DEATHS = [
    Trouble("pass_one", "dies"),
    Trouble("pass_one", "dies at the end", wipes=True),
    Trouble("pass_two", "dies in the middle"),
    Trouble("pass_two", "dies at the end", wipes=True),
    Trouble("pass_two", "fails in the middle"),
    Trouble("pass_two", "is full in the middle"),
]


@pytest.mark.slow
@pytest.mark.parametrize("durability", ["none", "replicated"])
@pytest.mark.parametrize("trouble", DEATHS, ids=lambda each: f"{each.what} in {each.step}")
def test_what_a_lost_node_had_others_do_again(
    disk: Path, trouble: Trouble, durability: str
) -> None:
    given = [table(seed, 6000, 6000 * seed) for seed in range(3)]
    inputs = files(disk, given, ".parquet")
    fault = Trouble(trouble.step, trouble.what, wipes=trouble.wipes)
    cluster = SortMachines(*NODES, troubles={"b": [fault]})
    want = job(disk, inputs, TableOrder(by=BY, file_bytes=50_000), durability=durability)
    record = run_two_pass(cluster, disk / "job", want)
    assert fault.happened and {node.node: node.lost for node in record.nodes}["b"]
    listed = json.loads((disk / "job" / "sorted.json").read_text())
    found = rows_of([Path(each["path"]) for each in listed])
    assert sorted(found["row"].to_pylist()) == list(range(18_000))
    assert found.sort_by("row").equals(pa.concat_tables(given))
    assert record.records == record.written_records == 18_000
    if durability == "replicated":
        has_copies(disk, record, "sorted.json")


@pytest.mark.slow
@pytest.mark.parametrize("step", ["sample", "pass_one", "pass_two", "seal"])
def test_a_killed_driver_goes_on_with_the_same_command(disk: Path, step: str) -> None:
    given = [table(seed, 5000, 5000 * seed) for seed in range(3)]
    inputs = files(disk, given, ".arrow")
    want = job(disk, inputs, TableOrder(by=BY, stable=True))
    with driver(dies=step):
        run_two_pass(SortMachines(*NODES), disk / "job", want)
    with driver() as steps:
        record = run_two_pass(SortMachines(*NODES), disk / "job", want)
    judged(disk, given, record, ".arrow")
    assert ("pass_one" in steps) == (step in ("sample", "pass_one"))
    # A round whose end the driver did not hear of is done again, and none that is on file.
    assert rows_of(parts(disk)).equals(
        rows_of(on_one_machine(disk, inputs, TableOrder(by=BY, stable=True)))
    )


@pytest.mark.slow
def test_a_byte_that_flips_in_scratch_costs_its_node_the_disk_and_nothing_else(disk: Path) -> None:
    given = [table(seed, 6000, 6000 * seed) for seed in range(3)]
    inputs = files(disk, given, ".parquet")
    want = job(disk, inputs, TableOrder(by=BY))
    with driver(dies="pass_two", before=True):
        run_two_pass(SortMachines(*NODES), disk / "job", want)
    (device,) = (disk / "b" / "scratch").glob("tonnage-*/round-00000.device")
    content = bytearray(device.read_bytes())
    content[100] ^= 4
    device.write_bytes(content)
    record = run_two_pass(SortMachines(*NODES), disk / "job", want)
    lost = {node.node: node.lost for node in record.nodes}
    assert lost["a"] is None and lost["c"] is None
    assert "the block at offset 0 is not as it was written" in str(lost["b"])
    listed = json.loads((disk / "job" / "sorted.json").read_text())
    assert {each["node"] for each in listed} == {"a", "c"}
    found = rows_of([Path(each["path"]) for each in listed])
    assert Counter(found["row"].to_pylist()) == Counter(range(18_000))


@pytest.mark.slow
@pytest.mark.parametrize("by", ["user,-ts", "all_equal"])
def test_nodes_stay_within_their_memory(disk: Path, by: str) -> None:
    rows, memory = 1_000_000, 48 << 20
    draw = np.random.default_rng(1)
    (disk / "in").mkdir()
    for number in range(3):
        columns = {
            "user": pa.array(draw.integers(0, rows, rows)).cast(pa.string()),
            "ts": draw.integers(0, 2**40, rows),
            "all_equal": np.zeros(rows, np.int8),
            "payload": draw.random(rows),
        }
        pq.write_table(pa.table(columns), disk / "in" / f"{number}.parquet")
    words = (str(disk), str(memory), by, "a", "b")
    done = subprocess.run(
        [sys.executable, "-m", "support.cluster.table_memory", *words],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        capture_output=True,
        check=True,
        text=True,
    )
    before, peak = map(int, done.stdout.split())
    assert peak - before <= 2 * memory
    assert rows_of(parts(disk)).num_rows == 3 * rows
