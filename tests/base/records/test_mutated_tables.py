"""One wrong value in a file that is not JSON: a catalog, a lab's file, an index, a manifest.

Each is refused in one line that names the file and the place, or is a value that the file may have.
"""

import csv
import io
import json
import math
import shutil
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from support.cli.command import Tonnage
from support.data.mutations import Mutation, mutations, shown
from support.lab.configs import FILE
from tonnage.base import core
from tonnage.catalog import CatalogError, load_catalog
from tonnage.catalog.load import SNAPSHOTS
from tonnage.provision.lab.config import parse
from tonnage.run.formats.registry import chunk_format
from tonnage.run.reduce import index as indexes
from tonnage.run.storage.sources import InputFile

SNAPSHOT = "aws-us-east-1-2014"
WRONG_CELLS = ("", "many", "-1", "nan", "inf", "1e300", "0", "1_000", "1.5")


def toml(value: Any) -> str:
    """A value as TOML, tables inline; TOML has no null."""
    match value:
        case dict():
            return "{" + ", ".join(f"{name} = {toml(each)}" for name, each in value.items()) + "}"
        case list():
            return "[" + ", ".join(map(toml, value)) + "]"
        case float() if not math.isfinite(value):
            return "nan" if math.isnan(value) else "inf"
    return json.dumps(value)


def written(document: dict[str, Any]) -> str:
    return "\n".join(f"{name} = {toml(value)}" for name, value in document.items())


def lab_mutations() -> Iterator[Mutation]:
    for mutation in mutations(tomllib.loads(FILE)):
        if mutation.what != "null":
            yield mutation


@pytest.mark.parametrize("mutation", list(lab_mutations()), ids=lambda each: each.name)
def test_a_wrong_value_of_a_lab_is_one_line_or_allowed(mutation: Mutation) -> None:
    try:
        found = parse(written(mutation.document), "lab.toml")
    except core.UsageError as why:
        key = shown(mutation.path).removeprefix("$.")
        place = str(why).removeprefix("lab.toml: ").partition(":")[0]
        assert str(why).startswith("lab.toml: ") and "\n" not in str(why)
        assert key.startswith(place) or place.startswith(key.rpartition(".")[0]), str(why)
    else:
        # A key that has a default, or a fraction of a rate.
        is_rate = str(mutation.path[-1]).endswith("_mb_per_s")
        assert mutation.what == "deleted" or (mutation.what == "part" and is_rate), found


@pytest.mark.parametrize("table", sorted(each.name for each in SNAPSHOTS.glob(f"{SNAPSHOT}*.csv")))
def test_a_wrong_cell_of_a_catalog_is_one_line_or_a_figure_of_its_own(
    table: str, tmp_path: Path
) -> None:
    for each in SNAPSHOTS.glob(f"{SNAPSHOT}*.csv"):
        shutil.copy(each, tmp_path / each.name)
    file, catalog = tmp_path / table, tmp_path / f"{SNAPSHOT}.csv"
    header, first, *rest = list(csv.reader(file.read_text().splitlines()))
    as_it_is = load_catalog(catalog)
    for at, column in enumerate(header):
        for cell in WRONG_CELLS:
            if cell == first[at]:
                continue
            save(file, [header, [*first[:at], cell, *first[at + 1 :]], *rest])
            try:
                found = load_catalog(catalog)
            except CatalogError as why:
                assert str(why).startswith(f"{file}, row ") and "\n" not in str(why), str(why)
            else:
                # A column that nothing reads, or a cell that the column may have.
                is_number = first[at].replace(".", "").isdigit()
                may_be = cell in ("", "0", "1.5") or not is_number
                assert found == as_it_is or may_be, (column, cell)
    for header_without, row in ((header[1:], first[1:]), ([*header, "more"], [*first, "1"])):
        save(file, [header_without, row])
        with pytest.raises(CatalogError, match=r"row 1"):
            load_catalog(catalog)


def save(file: Path, rows: list[list[str]]) -> None:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    file.write_text(text.getvalue())


def test_a_wrong_cell_of_an_index_is_one_line() -> None:
    format = chunk_format("rows", "f8")
    files = [InputFile("a", 800, None), InputFile("b", 80, "v1")]
    chunks = [indexes.Chunk(0, 0, 400, 50, 0), indexes.Chunk(0, 400, 400, 50, 1)]
    content = indexes.to_bytes(
        indexes.Index(format, files, [*chunks, indexes.Chunk(1, 0, 80, 10, 0)])
    )
    assert indexes.from_bytes(content, "in.parquet").files == files
    table = pq.read_table(io.BytesIO(content))
    rows = table.to_pylist()
    changed = 0
    for mutation in mutations(rows):
        try:
            wrong = pa.Table.from_pylist(mutation.document, schema=table.schema)
        except (pa.ArrowException, OverflowError, TypeError, ValueError, AttributeError):
            continue  # The type of the column does not hold it.
        if wrong.equals(table):
            continue
        changed += 1
        sink = io.BytesIO()
        pq.write_table(wrong, sink)
        with pytest.raises(core.UsageError, match=r"^in\.parquet: [^\n]*index again$"):
            indexes.from_bytes(sink.getvalue(), "in.parquet")
    assert changed > 10


def test_a_wrong_value_of_a_manifest_is_one_line(tonnage: Tonnage, disk: Path) -> None:
    out = disk / "out"
    tonnage.run("gensort", "10", disk / "in", check=True)
    tonnage.run(
        *("run", "sort", disk / "in", "--output", out, "--scratch", disk / "scratch"),
        *("--memory", "64MiB"),
        check=True,
    )
    manifest = out / "_tonnage.json"
    document = json.loads(manifest.read_text())
    for mutation in mutations(document):
        if mutation.path[-1] not in ("no_such_field", "records", "parts", "format"):
            continue
        manifest.write_text(json.dumps(mutation.document))
        done = tonnage.run("valsort", out)
        if done.returncode:
            assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
            assert f"{manifest}" in done.stderr, (mutation.name, done.stderr)
        else:
            assert mutation.document == document, mutation.name
