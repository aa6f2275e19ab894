"""Which files a sort of tables writes: none without rows, in folders no more than are needed."""

import json
import random
import string
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.feather as feather
import pyarrow.json as pa_json
import pyarrow.parquet as pq
import pytest

import tonnage as package

TABS = pa_csv.ParseOptions(delimiter="\t")
READERS: dict[str, Callable[[Path], pa.Table]] = {
    "parquet": lambda path: pq.read_table(path, partitioning=None),
    "arrow": feather.read_table,
    "csv": pa_csv.read_csv,
    "tsv": lambda path: pa_csv.read_csv(path, parse_options=TABS),
    "json": pa_json.read_json,
}


def tables(output: Path, output_format: str = "parquet") -> dict[str, pa.Table]:
    """The files that the manifest lists, in its order: all that are there; each has rows."""
    listed = json.loads((output / "_tonnage.json").read_text())["parts"]
    there = [str(path.relative_to(output)) for path in output.rglob("part-*")]
    assert sorted(listed) == sorted(there)
    found = {name: READERS[output_format](output / name) for name in listed}
    assert all(each.num_rows for each in found.values())
    return found


@pytest.mark.parametrize("output_format", READERS)
def test_rows_that_are_left_out_leave_no_file(disk: Path, output_format: str) -> None:
    table = pa.table({"k": [row * 7 % 40 for row in range(60_000)], "v": [1] * 60_000})
    package.sort(
        table,
        "k",
        output=disk / "out",
        scratch=disk,
        unique=True,
        output_format=output_format,
        file_bytes=1000,
        memory="8MiB",
    )
    found = tables(disk / "out", output_format)
    assert list(found) == sorted(found)
    assert [key for each in found.values() for key in each["k"].to_pylist()] == [*range(40)]


def test_parts_of_a_key_behind_the_limit_leave_no_file(disk: Path) -> None:
    rows = 400_000
    table = pa.table({"k": [7] * rows, "v": [string.ascii_letters] * rows})
    arguments = {"scratch": disk, "file_bytes": 100_000, "memory": "8MiB"}
    package.sort(table, "k", output=disk / "out", output_format="parquet", limit=9, **arguments)
    assert sum(each.num_rows for each in tables(disk / "out").values()) == 9


def test_partitions_are_joined_in_their_folders(disk: Path) -> None:
    rng = random.Random(1)
    rows, folders = 300_000, 20
    table = pa.table(
        {
            "p": [rng.randrange(folders) for _ in range(rows)],
            "k": [rng.random() for _ in range(rows)],
        }
    )
    arguments = {"output_format": "parquet", "partition_by": ["p"], "memory": "8MiB"}
    package.sort(table, "k", output=disk / "out", scratch=disk, **arguments)
    found = tables(disk / "out")
    folder_of = [name.partition("/")[0] for name in found]
    assert folder_of == [f"p={number}" for number in range(folders)]  # one file in each
    wanted = table.sort_by([("p", "ascending"), ("k", "ascending")])["k"]
    assert pa.concat_tables(found.values())["k"].to_pylist() == wanted.to_pylist()
