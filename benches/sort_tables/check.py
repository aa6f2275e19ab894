"""Whether an output is the input, sorted: its order, its number of rows, and its rows.

Rows are compared by the sums and the exclusive or of DuckDB's hashes of whole rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv
import pyarrow.dataset as ds


@dataclass(frozen=True)
class Rows:
    """What rows there are, in any order."""

    count: int
    hashes: int
    xor: int


def rows_in(directory: Path, case_format: str) -> Rows:
    """The rows of all files of a directory."""
    if case_format == "parquet":
        source = f"read_parquet('{directory}/*.parquet')"
    elif case_format == "csv":
        # By value: some programs write numbers in other words.
        source = f"read_csv('{directory}/*.csv', header = true, sample_size = -1)"
    else:
        options = "header = false, sep = '\\1', quote = '', columns = {'line': 'VARCHAR'}"
        source = f"read_csv('{directory}/*.txt', {options})"
    query = f"SELECT count(*), sum(hash(t)::HUGEINT), bit_xor(hash(t)) FROM {source} t"
    connection = duckdb.connect()
    connection.execute("SET memory_limit = '4GiB'")
    found = connection.execute(query).fetchone()
    assert found is not None
    return Rows(int(found[0]), int(found[1] or 0), int(found[2] or 0))


def is_sorted(directory: Path, case_format: str, keys: Sequence[str]) -> bool:
    """Whether the files of a directory, by name, are in the order of the keys, nulls last."""
    last: tuple[object, ...] | None = None
    for batch in batches(directory, case_format, keys):
        columns = [plain(batch.column(place)) for place in range(batch.num_columns)]
        indices = pc.sort_indices(
            pa.table(columns, names=[str(place) for place in range(len(columns))]),
            sort_keys=[(str(place), "ascending") for place in range(len(columns))],
        )
        in_order = [column.take(indices).equals(column) for column in columns]
        if not all(in_order):
            return False
        first = tuple(comparable(column[0]) for column in columns)
        if last is not None and first < last:
            return False
        last = tuple(comparable(column[-1]) for column in columns)
    return True


def plain(column: pa.Array) -> pa.Array:
    """Values that PyArrow's sort takes, in the same order."""
    if pa.types.is_dictionary(column.type):
        return plain(column.dictionary_decode())
    if pa.types.is_string_view(column.type) or pa.types.is_binary_view(column.type):
        return column.cast(pa.large_binary())
    return column


def comparable(value: pa.Scalar) -> tuple[bool, object]:
    """Nulls last."""
    found = value.as_py()
    return (found is None, 0 if found is None else found)


def batches(directory: Path, case_format: str, keys: Sequence[str]) -> Iterator[pa.RecordBatch]:
    endings = {"parquet": "*.parquet", "csv": "*.csv", "lines": "*.txt"}
    for path in sorted(directory.glob(endings[case_format])):
        if case_format == "parquet":
            reader = ds.dataset(path).to_batches(columns=list(keys), batch_size=1 << 17)
        elif case_format == "csv":
            options = pa_csv.ConvertOptions(include_columns=list(keys))
            reader = pa_csv.open_csv(path, convert_options=options)
        else:
            reader = pa_csv.open_csv(
                path,
                read_options=pa_csv.ReadOptions(column_names=["line"]),
                parse_options=pa_csv.ParseOptions(delimiter="\1", quote_char=False),
                convert_options=pa_csv.ConvertOptions(column_types={"line": pa.binary()}),
            )
        yield from (batch for batch in reader if batch.num_rows)
