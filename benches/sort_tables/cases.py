"""The tables that are sorted: each a directory of files, made once, the same every time."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

GROUP_ROWS = 128 << 10
Make = Callable[[np.random.Generator, int], pa.Table]


@dataclass(frozen=True)
class Case:
    """A table: `rows` at full size, in `files`, sorted by `keys`."""

    name: str
    format: str
    rows: int
    keys: tuple[str, ...]
    make: Make
    files: int = 8
    group_rows: int = GROUP_ROWS


def users(rng: np.random.Generator, rows: int) -> pa.Array:
    return pa.array(np.char.add("user-", (rng.zipf(1.3, rows) % 1_000_000).astype("U7")))


def times(rng: np.random.Generator, rows: int) -> pa.Array:
    span = (1_700_000_000_000_000, 1_731_000_000_000_000)
    return pa.array(rng.integers(*span, rows), pa.timestamp("us"))


def payloads(rng: np.random.Generator, rows: int, bytes_each: int) -> pa.Array:
    data = pa.py_buffer(rng.bytes(bytes_each * rows))
    fixed = pa.FixedSizeBinaryArray.from_buffers(pa.binary(bytes_each), rows, [None, data])
    return fixed.cast(pa.binary())


def events(rng: np.random.Generator, rows: int) -> pa.Table:
    """Users, a few of which have most rows, times, amounts, and payloads that do not compress."""
    return pa.table(
        {
            "user": users(rng, rows),
            "ts": times(rng, rows),
            "amount": rng.normal(100, 30, rows),
            "payload": payloads(rng, rows, 48),
        }
    )


def wide(rng: np.random.Generator, rows: int) -> pa.Table:
    """60 columns of numbers, of which two are keys."""
    columns: dict[str, object] = {
        "k1": rng.integers(0, 10_000, rows),
        "k2": rng.integers(0, 1 << 60, rows),
    }
    for number in range(29):
        columns[f"i{number}"] = rng.integers(0, 1 << 20, rows).astype(np.int32)
        columns[f"f{number}"] = rng.normal(0, 1, rows)
    return pa.table(columns)


def mostly_null(rng: np.random.Generator, rows: int) -> pa.Table:
    """Columns of which nine values in ten are null, the first key among them."""

    def some(values: np.ndarray) -> pa.Array:
        return pa.array(values, mask=rng.random(rows) < 0.9)

    columns = {"k": some(rng.integers(0, 1 << 40, rows)), "id": rng.permutation(rows)}
    for number in range(8):
        columns[f"f{number}"] = some(rng.normal(0, 1, rows))
        columns[f"s{number}"] = some(np.char.add("value ", rng.integers(0, 999, rows).astype("U3")))
    return pa.table(columns)


def dictionaries(rng: np.random.Generator, rows: int) -> pa.Table:
    """Countries, devices and agents as dictionaries, and a time."""

    def of(count: int, text: str) -> pa.Array:
        values = [f"{text} number {number}, with a long name" for number in range(count)]
        codes = pa.array(rng.integers(0, count, rows).astype(np.int32))
        return pa.DictionaryArray.from_arrays(codes, values)

    return pa.table(
        {
            "country": of(200, "country"),
            "ts": times(rng, rows),
            "device": of(1000, "device"),
            "agent": of(20_000, "agent"),
            "bytes": rng.integers(0, 1 << 30, rows),
        }
    )


def nested(rng: np.random.Generator, rows: int) -> pa.Table:
    """A list of numbers and a struct behind each key."""
    lengths = rng.integers(0, 8, rows)
    offsets = pa.array(np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32))
    items = pa.array(rng.integers(0, 1 << 40, int(lengths.sum())))
    place = pa.StructArray.from_arrays(
        [pa.array(rng.normal(0, 1, rows)), users(rng, rows)], ["weight", "name"]
    )
    return pa.table(
        {
            "id": rng.integers(0, 1 << 60, rows),
            "items": pa.ListArray.from_arrays(offsets, items),
            "place": place,
        }
    )


def measurements(rng: np.random.Generator, rows: int) -> pa.Table:
    """Names and numbers as text."""
    return pa.table(
        {
            "station": users(rng, rows),
            "value": np.round(rng.normal(0, 1000, rows), 6),
            "note": pa.array(
                np.char.add("measured by hand, ", rng.integers(0, 1 << 30, rows).astype("U10"))
            ),
            "count": rng.integers(0, 1 << 30, rows),
        }
    )


CASES = (
    Case("parquet", "parquet", 20_000_000, ("user", "ts"), events),
    Case("wide", "parquet", 3_000_000, ("k1", "k2"), wide, group_rows=64 << 10),
    Case("nulls", "parquet", 8_000_000, ("k", "id"), mostly_null),
    Case("dictionaries", "parquet", 20_000_000, ("country", "ts"), dictionaries),
    Case("nested", "parquet", 8_000_000, ("id",), nested),
    Case("one-group", "parquet", 16_000_000, ("user", "ts"), events, files=1, group_rows=1 << 30),
    Case("csv", "csv", 32_000_000, ("value",), measurements),
    Case("lines", "lines", 32_000_000, (), measurements),
)


def chunks(case: Case, rows: int) -> Iterator[tuple[int, pa.Table]]:
    """The table in pieces of a million rows, each with the number of its file."""
    rng = np.random.default_rng(1)
    each = -(-rows // case.files)
    for number in range(case.files):
        left = min(each, rows - number * each)
        while left > 0:
            count = min(1_000_000, left)
            yield number, case.make(rng, count)
            left -= count


def make(case: Case, rows: int, root: Path) -> Path:
    """The directory of the case, made if it is not there."""
    directory = root / f"{case.name}-{rows}"
    done = directory / "_made.json"
    if done.exists():
        return directory
    directory.mkdir(parents=True, exist_ok=True)
    writers: dict[int, pq.ParquetWriter | pa_csv.CSVWriter] = {}
    if case.group_rows > GROUP_ROWS:
        whole = pa.concat_tables(piece for _, piece in chunks(case, rows))
        pq.write_table(whole, directory / "0.parquet", row_group_size=case.group_rows)
    else:
        for number, piece in chunks(case, rows):
            if number not in writers:
                writers[number] = open_writer(case, directory, number, piece.schema)
            if case.format == "parquet":
                writers[number].write_table(piece, row_group_size=case.group_rows)
            else:
                writers[number].write_table(piece)
        for writer in writers.values():
            writer.close()
    done.write_text(json.dumps({"rows": rows, "bytes": size(directory)}))
    return directory


def open_writer(
    case: Case, directory: Path, number: int, schema: pa.Schema
) -> pq.ParquetWriter | pa_csv.CSVWriter:
    if case.format == "parquet":
        return pq.ParquetWriter(directory / f"{number}.parquet", schema, compression="snappy")
    suffix = "csv" if case.format == "csv" else "txt"
    options = pa_csv.WriteOptions(include_header=case.format == "csv", quoting_style="needed")
    return pa_csv.CSVWriter(directory / f"{number}.{suffix}", schema, write_options=options)


def size(directory: Path) -> int:
    return sum(path.stat().st_size for path in directory.iterdir() if path.name[0] not in "._")
