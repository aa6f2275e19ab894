"""The first rows of tables on a cluster of threads: those of one machine, whatever is lost."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from support.cluster.sorters import SortMachines, Trouble, directories, driver
from tonnage.base import core
from tonnage.base.records import RunRecord
from tonnage.run.sort.cluster.first_rows import first_partitions, last_share, partition_rows
from tonnage.run.sort.cluster.tables import TableSortJob, table_sort_job
from tonnage.run.sort.tables import TableOrder
from tonnage.run.two_pass.driver import run_two_pass
from tonnage.run.two_pass.schedule import Total

NODES = ("a", "b", "c")
FILES, ROWS = 3, 40_000


def keys(kind: str) -> list[int]:
    """Keys of all rows: in no order, in order, or few with ties."""
    draw = random.Random(1)
    if kind == "sorted":
        return list(range(FILES * ROWS))
    return [draw.randrange(3 if kind == "few" else 10**9) for _ in range(FILES * ROWS)]


def files(room: Path, values: Sequence[int], first_bytes: int = 200) -> list[str]:
    """Rows with these keys; those with the least have payloads of ``first_bytes``."""
    place = room / "in"
    place.mkdir()
    draw = random.Random(2)
    for number in range(FILES):
        rows = range(number * ROWS, (number + 1) * ROWS)
        sizes = (first_bytes if values[row] < 10**8 else 200 for row in rows)
        payload = [draw.randbytes(size) for size in sizes]
        columns = {"k": [values[row] for row in rows], "row": list(rows), "payload": payload}
        pq.write_table(pa.table(columns), place / f"f{number}.parquet", row_group_size=3000)
    return [str(place)]


def job(room: Path, inputs: Sequence[str], order: TableOrder, **more: Any) -> TableSortJob:
    fields: dict[str, Any] = {
        "output": directories(room, "out"),
        "scratch": directories(room, "scratch"),
        "memory_bytes": 16 << 20,
        "connections": 1,
        "patience_seconds": 5.0,
        "command": ["test"],
    }
    return table_sort_job(order, inputs=inputs, **fields | more)


def output(room: Path) -> pa.Table:
    listed = json.loads((room / "job" / "sorted.json").read_text())
    return pa.concat_tables(pq.read_table(each["path"]) for each in listed)


def judged(room: Path, values: Sequence[int], limit: int, record: RunRecord) -> None:
    """The output has the first rows, of equal keys those that come first in the input."""
    order = sorted(range(len(values)), key=lambda row: (values[row], row))
    found = output(room)
    assert found["row"].to_pylist() == order[:limit]
    assert found["k"].to_pylist() == [values[row] for row in order[:limit]]
    assert record.records == len(values)
    assert record.written_records == min(limit, len(values))


@pytest.mark.parametrize("limit", [1, 7_000, FILES * ROWS])
@pytest.mark.parametrize("kind", ["random", "sorted", "few"])
def test_the_first_rows_are_those_of_all_nodes(disk: Path, kind: str, limit: int) -> None:
    values = keys(kind)
    order = TableOrder(by="k", stable=True, limit=limit)
    record = run_two_pass(SortMachines(*NODES), disk / "job", job(disk, files(disk, values), order))
    judged(disk, values, limit, record)
    gathered = sum(each.partitions for each in record.rounds)
    assert (gathered < record.settings["partitions"]) == (limit < FILES * ROWS)


def test_ties_fill_the_rest_and_a_partition_of_them_becomes_several_files(disk: Path) -> None:
    values = keys("few")
    limit = 70_000
    order = TableOrder(by="k", limit=limit, file_bytes=1 << 20)
    record = run_two_pass(SortMachines(*NODES), disk / "job", job(disk, files(disk, values), order))
    found = output(disk)
    assert found["k"].to_pylist() == sorted(values)[:limit]
    rows = found["row"].to_pylist()
    assert len({*rows}) == limit and [values[row] for row in rows] == found["k"].to_pylist()
    assert record.written_records == limit


def test_a_partition_that_is_longer_than_memory_is_divided_and_cut(disk: Path) -> None:
    values, limit = keys("random"), 3_000
    inputs = files(disk, values, first_bytes=2_000)
    order = TableOrder(by="k", stable=True, limit=limit)
    record = run_two_pass(SortMachines(*NODES), disk / "job", job(disk, inputs, order))
    assert record.repartitioned_bytes > 0
    judged(disk, values, limit, record)


@pytest.mark.parametrize("stable", [False, True])
def test_of_one_key_in_more_rows_than_memory_holds_one_row_stays(disk: Path, stable: bool) -> None:
    inputs = files(disk, [7] * (FILES * ROWS), first_bytes=400)
    order = TableOrder(by="k", unique=True, stable=stable)
    record = run_two_pass(SortMachines(*NODES), disk / "job", job(disk, inputs, order))
    assert (record.records, record.written_records) == (FILES * ROWS, 1)
    found = output(disk)
    assert found["k"].to_pylist() == [7]
    assert found["row"].to_pylist() == [0] or not stable


def test_a_limit_of_unique_rows_is_refused_before_a_job_begins(disk: Path) -> None:
    order = TableOrder(by="k", unique=True, limit=3)
    want = job(disk, files(disk, keys("few")), order)
    with pytest.raises(core.UsageError, match="with unique, it is not known how many rows"):
        run_two_pass(SortMachines(*NODES), disk / "job", want)
    assert not (disk / "job" / "job.json").exists()


FAULTS = [
    Trouble("pass_one", "dies", wipes=True),
    Trouble("pass_one", "dies at the end", wipes=True),
    Trouble("pass_two", "dies in the middle", wipes=True),
    Trouble("pass_two", "dies at the end"),
]


@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULTS, ids=lambda each: f"{each.what} in {each.step}")
def test_counts_stay_when_a_node_is_lost(disk: Path, fault: Trouble) -> None:
    values, limit = keys("random"), 70_000
    trouble = Trouble(fault.step, fault.what, wipes=fault.wipes)
    cluster = SortMachines(*NODES, troubles={"b": [trouble]})
    order = TableOrder(by="k", stable=True, limit=limit)
    record = run_two_pass(cluster, disk / "job", job(disk, files(disk, values), order))
    assert trouble.happened
    judged(disk, values, limit, record)


@pytest.mark.slow
@pytest.mark.parametrize("step", ["pass_one", "pass_two", "seal"])
def test_a_killed_driver_goes_on_with_what_it_counted(disk: Path, step: str) -> None:
    values, limit = keys("sorted"), 50_000
    order = TableOrder(by="k", stable=True, limit=limit)
    want = job(disk, files(disk, values), order)
    with driver(dies=step):
        run_two_pass(SortMachines(*NODES), disk / "job", want)
    record = run_two_pass(SortMachines(*NODES), disk / "job", want)
    judged(disk, values, limit, record)


def event(reads: dict[str, list[int]], told: Sequence[str], rows: Sequence[int]) -> dict[str, Any]:
    return {
        "event": "round",
        "reads": reads,
        "outcomes": dict.fromkeys(told),
        "partition_rows": [[each, 10 * each, each] for each in rows],
    }


def test_splits_that_are_read_again_are_counted_once() -> None:
    events = [
        event({"a": [0], "b": [1]}, ["a"], [2, 3]),  # b was lost
        event({"a": [1]}, ["a"], [1, 1]),
        {"event": "lost", "node": "b"},
        event({"a": [0]}, ["a"], [2, 3]),  # for the partitions that b had
    ]
    rows = partition_rows(events)
    assert rows == [Total(3, 30, 3), Total(4, 40, 4)]
    assert [first_partitions(rows, limit) for limit in (1, 3, 4, 7, 8)] == [1, 1, 2, 2, 2]
    assert [last_share(rows, limit) for limit in (1, 3, 4, 7, 8)] == [
        (0, 1),
        None,
        (1, 1),
        None,
        None,
    ]
