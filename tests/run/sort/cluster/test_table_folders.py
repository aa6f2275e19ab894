"""Folders of columns on a cluster of threads: what one machine makes of them, whatever is lost."""

from __future__ import annotations

import io
import json
import os
import random
from collections import defaultdict
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest

import tonnage
from support.cluster.sorters import SortMachines, Trouble, directories, driver, has_copies
from support.stores.s3 import BUCKET, Bucket
from tonnage.base import core
from tonnage.run.sort.cluster.tables import TableSortJob, table_sort_job
from tonnage.run.sort.tables import TableOrder
from tonnage.run.storage.object_store import ObjectStoreOptions
from tonnage.run.two_pass.driver import run_two_pass

NODES = ("a", "b", "c")
ROWS = 20_000
Folders = dict[str, list[Any]]
ORDER = TableOrder(by="k", stable=True, partition_by=["p", "q"], file_bytes=30_000)


def write(room: Path, suffix: str) -> tuple[list[str], list[dict[str, Any]]]:
    """Rows in files that all nodes see; one of five has the same folder."""
    draw = random.Random(3)
    countries = ["DE", "a/b", "é=%", "x", "x", "x", None]
    table = pa.table(
        {
            "p": draw.choices(countries, k=ROWS),
            "q": [draw.choice([1, 20, 3]) for _ in range(ROWS)],
            "k": [draw.randrange(300) for _ in range(ROWS)],
            "row": range(ROWS),
        }
    )
    (room / "in").mkdir()
    for number in range(4):
        part = table.slice(number * ROWS // 4, ROWS // 4)
        path = room / "in" / f"{number}{suffix}"
        if suffix == ".parquet":
            pq.write_table(part, path, row_group_size=1000)
        else:
            pa_csv.write_csv(part, path, pa_csv.WriteOptions(quoting_style="needed"))
    return [str(room / "in")], table.to_pylist()


def wanted(rows: list[dict[str, Any]], unique: bool = False) -> Folders:
    """The rows of each folder, in order."""
    names = {"a/b": "a%2Fb", "é=%": "é%3D%25", None: "__HIVE_DEFAULT_PARTITION__"}
    found = defaultdict(list)
    for row in sorted(rows, key=lambda row: row["k"]):
        folder = f"p={names.get(row['p'], row['p'])}/q={row['q']}"
        if not unique or not found[folder] or found[folder][-1][0] != row["k"]:
            found[folder].append((row["k"], row["row"]))
    return dict(found)


def job(room: Path, inputs: list[str], order: TableOrder = ORDER, **more: Any) -> TableSortJob:
    fields: dict[str, Any] = {
        "output": directories(room, "out"),
        "scratch": directories(room, "scratch"),
        "memory_bytes": 32 << 20,
        "connections": 1,
        "patience_seconds": 5.0,
        "command": ["test"],
    }
    return table_sort_job(order, inputs=inputs, **fields | more)


def rows_of(name: str, file: Any) -> list[Any]:
    read = pq.read_table if name.endswith(".parquet") else pa_csv.read_csv
    table = read(file, **({"partitioning": None} if name.endswith(".parquet") else {}))
    assert table.column_names == ["k", "row"]
    assert table.num_rows
    return list(zip(table["k"].to_pylist(), table["row"].to_pylist(), strict=True))


def folders(room: Path) -> Folders:
    """The rows of each folder on all nodes, of its files by name; nothing else is there."""
    listed = json.loads((room / "job" / "sorted.json").read_text())
    manifests = set()
    for node in {each["node"] for each in listed}:
        manifests.add((room / node / "out" / "_tonnage.json").read_text())
    (manifest,) = manifests
    names = json.loads(manifest)["parts"]
    places = {}
    for name, each in zip(names, listed, strict=True):
        places[name] = Path(each["path"])
        assert places[name] == room / each["node"] / "out" / name
    found = defaultdict(list)
    for name in sorted(names):
        found[os.path.dirname(name)] += rows_of(name, places[name])
    # The manifest's order is that of all rows.
    seen = list(dict.fromkeys(os.path.dirname(name) for name in names))
    assert seen == sorted(seen, key=order_of_folder)
    assert [*names] == sorted(names, key=lambda name: (seen.index(os.path.dirname(name)), name))
    return dict(found)


def order_of_folder(folder: str) -> tuple[bool, str, int]:
    first, second = folder.split("/")
    value = first.removeprefix("p=").replace("a%2Fb", "a/b").replace("é%3D%25", "é=%")
    return value.startswith("__HIVE"), value, int(second.removeprefix("q="))


def nothing_else(room: Path, nodes: tuple[str, ...] = NODES) -> None:
    """No node has a file that is not listed, or an empty folder."""
    listed = {
        path
        for each in json.loads((room / "job" / "sorted.json").read_text())
        for path in (each["path"], each["copy"] and each["copy"]["path"])
    }
    for node in nodes:
        for place, inside, names in os.walk(room / node / "out"):
            assert inside or names or place == str(room / node / "out"), place
            for name in names:
                assert name == "_tonnage.json" or os.path.join(place, name) in listed
        assert not [*(room / node / "scratch").iterdir()]


def test_one_machine_reads_the_folders_of_all_nodes(disk: Path) -> None:
    inputs, rows = write(disk, ".parquet")
    run_two_pass(SortMachines(*NODES), disk / "job", job(disk, inputs))
    outputs = [str(disk / node / "out") for node in NODES]
    back = tonnage.sort(outputs, "row", scratch=disk).reader().read_all()
    assert back.select(["p", "q", "k", "row"]).to_pylist() == rows


@pytest.mark.parametrize("suffix", [".parquet", ".csv"])
@pytest.mark.parametrize("unique", [False, True])
def test_a_cluster_makes_the_folders_of_one_machine(disk: Path, suffix: str, unique: bool) -> None:
    inputs, rows = write(disk, suffix)
    order = TableOrder(
        by="k", stable=True, unique=unique, partition_by=["p", "q"], file_bytes=30_000
    )
    record = run_two_pass(SortMachines(*NODES), disk / "job", job(disk, inputs, order))
    assert folders(disk) == wanted(rows, unique)
    nothing_else(disk)
    assert record.records == ROWS
    assert all(node.written_bytes for node in record.nodes)


LOSSES = [
    Trouble("pass_two", "dies in the middle"),
    Trouble("pass_two", "dies at the end", wipes=True),
    Trouble("pass_two", "is full in the middle"),
]


@pytest.mark.slow
@pytest.mark.parametrize("durability", ["none", "replicated"])
@pytest.mark.parametrize("trouble", LOSSES, ids=lambda each: each.what)
def test_what_a_lost_node_had_others_do_again(
    disk: Path, trouble: Trouble, durability: str
) -> None:
    inputs, rows = write(disk, ".parquet")
    fault = Trouble(trouble.step, trouble.what, wipes=trouble.wipes)
    cluster = SortMachines(*NODES, troubles={"b": [fault]})
    want = job(disk, inputs, durability=durability)
    record = run_two_pass(cluster, disk / "job", want)
    assert fault.happened and {node.node: node.lost for node in record.nodes}["b"]
    listed = json.loads((disk / "job" / "sorted.json").read_text())
    found = defaultdict(list)
    for each in sorted(listed, key=lambda each: os.path.basename(each["path"])):
        path = Path(each["path"])
        found["/".join(path.parts[-3:-1])] += rows_of(path.name, path)
    assert dict(found) == wanted(rows)
    nothing_else(disk, ("a", "c"))
    if durability == "replicated":
        has_copies(disk, record, "sorted.json")


@pytest.mark.parametrize("step", ["pass_two", "seal"])
def test_a_killed_driver_goes_on_with_the_same_command(disk: Path, step: str) -> None:
    inputs, rows = write(disk, ".parquet")
    want = job(disk, inputs)
    with driver(dies=step):
        run_two_pass(SortMachines(*NODES), disk / "job", want)
    with driver() as steps:
        run_two_pass(SortMachines(*NODES), disk / "job", want)
    assert folders(disk) == wanted(rows)
    nothing_else(disk)
    assert "pass_one" not in steps and "pass_two" not in steps


@pytest.mark.parametrize("what", [None, "dies in the middle"])
def test_a_store_has_the_same_folders(disk: Path, s3: Bucket, what: str | None) -> None:
    inputs, rows = write(disk, ".parquet")
    store = ObjectStoreOptions(endpoint=s3.endpoint, requests=4)
    output = [f"s3://{BUCKET}/out/"]
    want = job(disk, inputs, output=output, object_store=store)
    troubles = {"b": [Trouble("pass_two", what, wipes=True)] if what else []}
    run_two_pass(SortMachines(*NODES, troubles=troubles), disk / "job", want)
    content = s3.content("out")
    names = json.loads(content.pop("_tonnage.json"))["parts"]
    assert sorted(names) == sorted(content)
    assert s3.uploads() == []
    found = defaultdict(list)
    for name in sorted(names):
        found[os.path.dirname(name)] += rows_of(name, io.BytesIO(content[name]))
    assert dict(found) == wanted(rows)


def test_the_first_rows_of_folders_are_refused(disk: Path) -> None:
    inputs, _ = write(disk, ".parquet")
    order = TableOrder(by="k", partition_by=["p"], limit=3)
    with pytest.raises(core.UsageError, match="cannot be found in folders") as refusal:
        run_two_pass(SortMachines(*NODES), disk / "job", job(disk, inputs, order))
    assert refusal.value.setting == "limit"
