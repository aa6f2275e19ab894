"""Text in folders such as ``year=2024``: columns, as those of Parquet."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from run.sort.test_typed_text import sort_files
from tonnage.base import core
from tonnage.run.sort.tables import TableOrder

ROWS: dict[str, Sequence[tuple[int, str]]] = {
    "year=2024/kind=a%20b": [(3, "007"), (1, "x")],
    "year=2023/kind=__HIVE_DEFAULT_PARTITION__": [(2, "1.50")],
}
EXPECTED = [
    {"k": 2, "v": "1.50", "year": 2023, "kind": None},
    {"k": 1, "v": "x", "year": 2024, "kind": "a b"},
    {"k": 3, "v": "007", "year": 2024, "kind": "a b"},
]


def write(directory: Path, name: str) -> Path:
    for folder, rows in ROWS.items():
        (directory / folder).mkdir(parents=True)
        lines = [
            json.dumps({"k": k, "v": v}) if name.endswith("json") else f"{k},{v}" for k, v in rows
        ]
        header = [] if name.endswith("json") else ["k,v"]
        (directory / folder / name).write_text("\n".join([*header, *lines, ""]))
    return directory


def rows_of(parts: Sequence[Path]) -> list[dict[str, Any]]:
    return [row for part in parts for row in pq.read_table(part).to_pylist()]


@pytest.mark.parametrize("name", ["in.csv", "in.json"])
def test_folders_are_columns(name: str, tmp_path: Path) -> None:
    source = write(tmp_path / "in", name)
    order = TableOrder(
        by="year,k", output_format="parquet", format=name[3:], schema="k:int64,v:string"
    )
    assert rows_of(sort_files(tmp_path, [source], order)[1]) == EXPECTED


def test_csv_gets_the_columns_behind_its_own(tmp_path: Path) -> None:
    source = write(tmp_path / "in", "in.csv")
    order = TableOrder(by="-year,k", format="csv")
    parts = sort_files(tmp_path, [source], order)[1]
    lines = [line for part in parts for line in part.read_text().splitlines()[1:]]
    assert lines == ["1,x,2024,a b", "3,007,2024,a b", "2,1.50,2023,"]
    assert parts[0].read_text().startswith("k,v,year,kind\n")


def test_folders_have_types_and_can_be_left_out(tmp_path: Path) -> None:
    source = write(tmp_path / "in", "in.csv")
    schema = "year:int16,k:int8"
    columns = ["year", "k"]
    order = TableOrder(
        by="k", format="csv", schema=schema, columns=columns, output_format="parquet"
    )
    parts = sort_files(tmp_path, [source], order)[1]
    assert pq.read_schema(parts[0]).remove_metadata().to_string() == "year: int16\nk: int8"
    assert rows_of(parts) == [
        {name: row[name] for name in columns} for row in sorted(EXPECTED, key=lambda row: row["k"])
    ]


@pytest.mark.parametrize(
    ("order", "why"),
    [
        (TableOrder(by="k", schema="year:bool", format="csv"), "its folder year=202[34]: .* is no"),
        (TableOrder(by="day", format="csv"), "there is no column 'day'"),
        (TableOrder(by="year", columns=["year"], format="csv"), "all of them are folders"),
        (TableOrder(by="line", format="lines"), "its folder says what its column 'year' is"),
    ],
)
def test_what_folders_cannot_say_is_refused(order: TableOrder, why: str, tmp_path: Path) -> None:
    source = write(tmp_path / "in", "in.csv")
    with pytest.raises(core.UsageError, match=why):
        sort_files(tmp_path, [source], order)


@pytest.mark.parametrize("name", ["in.csv", "in.json"])
def test_a_file_agrees_with_its_folder_or_is_named(name: str, tmp_path: Path) -> None:
    source = write(tmp_path / "in", name)
    for path in source.rglob(name):
        year = path.parent.parent.name.removeprefix("year=")
        rows = [{"k": 1, "year": int(year)}, {"k": 2, "year": int(year)}]
        lines = [json.dumps(row) if name == "in.json" else f"{row['k']},{year}" for row in rows]
        path.write_text("\n".join([*([] if name == "in.json" else ["k,year"]), *lines, ""]))
    order = TableOrder(by="year,k", format=name[3:], output_format="parquet")
    assert [row["k"] for row in rows_of(sort_files(tmp_path, [source], order)[1])] == [1, 2, 1, 2]
    [wrong] = (source / "year=2024").rglob(name)
    wrong.write_text(wrong.read_text().replace("2024", "2022"))
    again = tmp_path / "again"
    again.mkdir()
    why = rf"input {wrong}: column \"year\" has 2022, but its folder says 2024; correct one"
    with pytest.raises(core.UsageError, match=why):
        sort_files(again, [source], order)
