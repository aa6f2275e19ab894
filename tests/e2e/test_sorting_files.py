"""The how-to for sorting files of each format: its commands, on files with its names."""

import json
import random
import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest

from support.cli.command import Tonnage
from support.cli.documented_commands import shown
from support.stores.disk import ROOT

PAGE = ROOT / "docs" / "guide" / "sorting-files.md"
COMMANDS = [
    call.arguments
    for call in shown(PAGE)
    # What a command looks like, and stores (tests/run/sort/objects/test_tables.py).
    if not {"INPUT...", "s3://events/2024/"}.intersection(call.arguments)
]


def events(rows: int = 50) -> pa.Table:
    rng = random.Random(5)
    return pa.table(
        {
            "user": rng.choices(["ann", "bob", "eve"], k=rows),
            "ts": pa.array(rng.choices(range(10**6), k=rows), pa.timestamp("ms")),
            "amount": [rng.uniform(0, 100) for _ in range(rows)],
            "id": pa.array(range(rows), pa.int32()),
            "key": rng.choices(range(99), k=rows),
        }
    )


def write_json(path: Path) -> None:
    rows = [row | {"ts": row["ts"].isoformat(), "extra": "x"} for row in events().to_pylist()]
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))


def write_warehouse(path: Path) -> None:
    for year in (2023, 2024):
        folder = path / f"year={year}" / "month=1"
        folder.mkdir(parents=True)
        pq.write_table(events(), folder / "a.parquet")


FILES: dict[str, Callable[[Path], None]] = {
    "sales.csv": lambda path: pa_csv.write_csv(events(), path),
    "events.jsonl": write_json,
    "warehouse": write_warehouse,
    "table.feather": lambda path: feather.write_feather(events(), path),
    "access.log": lambda path: path.write_text("b 2\na 1\nc 10\n") and None,
    "old.parquet": lambda path: pq.write_table(events().select(["id", "user"]), path),
    "new.parquet": lambda path: pq.write_table(
        pa.table({"user": ["ann"], "note": ["x"], "id": pa.array([2**40])}), path
    ),
}


def test_the_page_has_commands() -> None:
    assert len(COMMANDS) >= 8


@pytest.mark.parametrize("arguments", COMMANDS, ids=lambda each: " ".join(each[2:5]))
def test_a_command_of_the_page_sorts(
    tonnage: Tonnage, disk: Path, arguments: tuple[str, ...]
) -> None:
    for name, write in FILES.items():
        write(disk / name)
    done = tonnage.run(*arguments, "--json", cwd=disk)
    assert done.returncode == 0, done.stderr
    record = json.loads(done.stdout)
    assert record["records"] == record["written_records"] > 0
    assert sorted((disk / "sorted").rglob("part-*"))
    shutil.rmtree(disk / "sorted")
