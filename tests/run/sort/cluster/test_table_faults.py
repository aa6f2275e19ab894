"""Faults of a table sort on a cluster, drawn from a seed: the output is right all the same.

A case is a fault of one of four nodes, a driver that is killed, or both; a format; unique rows, the
first ones, or all; copies of the output or none. The nodes are threads: real machines fail in
``tests/e2e/faults``, by the same driver.
"""

from __future__ import annotations

import csv
import io
import json
import random
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest

from support.cluster.sorters import SortMachines, Trouble, directories, driver, has_copies
from tonnage.run.sort.cluster.tables import table_sort_job
from tonnage.run.sort.tables import TableOrder
from tonnage.run.two_pass.driver import run_two_pass

pytestmark = pytest.mark.slow

NODES = ("a", "b", "c", "d")
SEEDS = range(20)
FILES, ROWS = 3, 4_000
FAULTS = (
    ("pass_one", "dies"),
    ("pass_one", "dies in the middle"),
    ("pass_one", "dies at the end"),
    ("pass_one", "loses its agent"),
    ("pass_one", "is cut off"),
    ("pass_two", "dies"),
    ("pass_two", "dies in the middle"),
    ("pass_two", "dies at the end"),
    ("pass_two", "fails in the middle"),
    ("pass_two", "is full in the middle"),
    ("seal", "dies"),
)
STEPS = ("sample", "pass_one", "pass_two", "seal")

Row = tuple[int, str]


@dataclass(frozen=True)
class Case:
    seed: int
    fault: tuple[str, str] | None
    node: str
    wipes: bool
    killed_at: str | None
    """The step of the driver at which it is killed."""
    before: bool
    """Whether that is before the step, not after it."""
    suffix: str
    order: TableOrder
    durability: str


def drawn(seed: int) -> Case:
    draw = random.Random(seed)
    fault = None if seed % 4 == 3 else FAULTS[seed % len(FAULTS)]
    kind = draw.choice(["all", "all", "unique", "first"])
    return Case(
        seed=seed,
        fault=fault,
        node=draw.choice(NODES),
        wipes=draw.random() < 0.5,
        killed_at=draw.choice(STEPS) if fault is None or draw.random() < 0.3 else None,
        before=draw.random() < 0.5,
        suffix=draw.choice([".parquet", ".arrow", ".csv"]),
        order=TableOrder(
            by="k",
            stable=True,
            unique=kind == "unique",
            limit=draw.randrange(1, FILES * ROWS) if kind == "first" else None,
            file_bytes=draw.choice([20_000, 10**9]),
        ),
        durability=draw.choice(["none", "replicated"]),
    )


def write(path: Path, rows: list[Row], suffix: str) -> None:
    columns = pa.table({"k": [k for k, _ in rows], "text": [text for _, text in rows]})
    if suffix == ".parquet":
        pq.write_table(columns, path, row_group_size=700)
    elif suffix == ".arrow":
        feather.write_feather(columns, path, compression="uncompressed", chunksize=500)
    else:
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows([("k", "text"), *rows])
        path.write_text(text.getvalue())


def read(path: Path) -> list[Row]:
    if path.suffix == ".csv":
        rows = [*csv.reader(io.StringIO(path.read_text(), newline=""))]
        return [(int(k), text) for k, text in rows[1:]]
    found = (pq.read_table if path.suffix == ".parquet" else feather.read_table)(path)
    return [(row["k"], row["text"]) for row in found.to_pylist()]


def expected(rows: list[Row], order: TableOrder) -> list[Row]:
    found = sorted(rows, key=lambda row: row[0])
    if order.unique:
        first: dict[int, Row] = {}
        for row in found:
            first.setdefault(row[0], row)
        found = [*first.values()]
    return found[: order.limit]


@pytest.mark.parametrize("case", [drawn(seed) for seed in SEEDS], ids=lambda each: each.seed)
def test_the_output_is_right_whatever_fails(disk: Path, case: Case) -> None:
    draw = random.Random(case.seed)
    rows = [
        (draw.randrange(5_000), f'{at}\n"{"x" * draw.randrange(90)}') for at in range(FILES * ROWS)
    ]
    (disk / "in").mkdir()
    for number in range(FILES):
        part = rows[number * ROWS : (number + 1) * ROWS]
        write(disk / "in" / f"f{number}{case.suffix}", part, case.suffix)
    want = table_sort_job(
        case.order,
        inputs=[str(disk / "in")],
        output=directories(disk, "out"),
        scratch=directories(disk, "scratch"),
        memory_bytes=32 << 20,
        connections=1,
        patience_seconds=5.0,
        command=["test"],
        durability=case.durability,
    )
    troubles = {case.node: [Trouble(*case.fault, wipes=case.wipes)] if case.fault else []}
    if case.killed_at:
        with driver(dies=case.killed_at, before=case.before):
            run_two_pass(SortMachines(*NODES), disk / "job", want)
    record = run_two_pass(SortMachines(*NODES, troubles=troubles), disk / "job", want)
    if case.killed_at is None and case.order.limit is None:  # Else it may have nothing to do.
        assert all(each.happened for each in troubles[case.node])
    listed = json.loads((disk / "job" / "sorted.json").read_text())
    found = [row for each in listed for row in read(Path(each["path"]))]
    right = expected(rows, case.order)
    assert found == right, case
    assert (record.records, record.written_records) == (len(rows), len(right))
    if case.durability == "replicated":
        has_copies(disk, record, "sorted.json")
