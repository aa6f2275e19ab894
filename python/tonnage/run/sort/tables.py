"""The sort of tables on this machine, as ``crates/graphs/src/tables/table_sort.rs`` runs it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tonnage.base import core
from tonnage.base.core import process_usage, stage_stats
from tonnage.base.records import Environment, RunRecord
from tonnage.run.sort.compression import parse_compression
from tonnage.run.sort.dialect import DELIMITERS, Dialect
from tonnage.run.sort.order import ColumnOrder, folders_first, is_column_or_field, parse_order
from tonnage.run.sort.schema import parse_schema, schema_message
from tonnage.run.sort.table_input import AUTO, TableInput, find_tables, input_format
from tonnage.run.storage.object_store import ObjectStoreOptions, sum_requests

FILE_BYTES = 1 << 30
"""Bytes of rows in a file of the output, by default."""
COLUMN_FORMATS = ("parquet", "arrow")
OUTPUT_FORMATS = (*COLUMN_FORMATS, "csv", "tsv", "json")
"""Formats that columns can be written in."""


@dataclass(frozen=True, kw_only=True)
class TableOrder:
    """What a table is sorted by, and what becomes of its rows.

    ``by`` is the order, such as ``user,-ts,amount:nulls-first``: descending with a minus, nulls
    last by default. ``stable`` keeps the order of rows with equal keys, ``unique`` only
    the first of them (of any order, unless stable). Only the first ``limit`` rows are written;
    which of those with the last row's key, is open, unless stable. ``columns`` are kept, in this
    order; all by default. Those in ``schema``, as ``user:int64,ts:timestamp[ms]``, are read as
    these types, and null where a file lacks them. A file of the output has about ``file_bytes``
    bytes of rows at most. ``format`` is one of `FORMATS`, or inferred from the names of the
    files; ``output_format`` one of `OUTPUT_FORMATS`, or that of the input. ``dialect`` is how text
    is written. ``compression`` is one of the output format's `CODECS`, such as ``zstd`` or
    ``zstd:9``; by default snappy for Parquet, and none for others. Files are in folders by the
    columns of ``partition_by``, as ``country=DE/day=2026-01-01``, and leave these columns out; rows
    are sorted, and unique, within a folder.
    """

    by: str
    stable: bool = False
    unique: bool = False
    limit: int | None = None
    columns: Sequence[str] | None = None
    schema: str | None = None
    file_bytes: int = FILE_BYTES
    format: str = AUTO
    output_format: str | None = None
    dialect: Dialect = field(default_factory=Dialect)
    compression: str | None = None
    partition_by: Sequence[str] | None = None


def sort_table(
    inputs: Sequence[Path | str],
    output: Sequence[Path | str],
    scratch: Sequence[Path],
    *,
    order: TableOrder,
    memory_bytes: int,
    environment: Environment,
    began_at: str,
    command: list[str],
    object_store: ObjectStoreOptions | None = None,
    on_progress: Callable[[int, int], None] | None = None,
) -> RunRecord:
    """Sorts tables into files ``part-00000.parquet`` and so on in ``output``.

    Inputs are not changed. An output appears whole or not at all; scratch has no names and is gone
    with the job, however it ends.

    Args:
        inputs: Files, directories of files, urls of objects or of folders, or globs of these.
        output: Empty directories, one for each device; or the url of a folder, as a string.
        scratch: Directories, one for each device.
        memory_bytes: For all buffers, what is decoded, and what is encoded.
        began_at: When the command was given, ISO 8601.
        on_progress: Called with bytes that are done, about, and those of all files.

    Raises:
        UsageError: Arguments or input cannot be used.
        RunError: It failed while it ran.
        KeyboardInterrupt: Ctrl-C; everything is cleaned up by then.
    """
    store = object_store or ObjectStoreOptions()
    found = find_tables(inputs, store)
    settings = {
        "inputs": [str(path) for path in inputs],
        "output": [str(path) for path in output],
        "scratch": [str(path) for path in scratch],
        "format": format_config(found, order),
        "stable": order.stable,
        "unique": order.unique,
        "limit": order.limit,
        "file_bytes": order.file_bytes,
        "memory_bytes": memory_bytes,
        "volumes": store.to_json(),
    }
    cpu_before = process_usage.cpu_seconds()
    halved = None if on_progress is None else lambda done: on_progress(done // 2, found.bytes)
    outcome = core.run("table_sort", settings | {"inputs": found.to_json()}, halved)
    return RunRecord(
        job="sort",
        began_at=began_at,
        command=command,
        environment=environment,
        settings=settings | {"plan": outcome["plan"]},
        records=outcome["rows"],
        bytes=outcome["input_bytes"],
        checksum=outcome["checksum"],
        seconds=outcome["seconds"],
        cpu_seconds=process_usage.cpu_seconds() - cpu_before,
        peak_memory_bytes=process_usage.peak_memory_bytes(),
        repartitioned_bytes=outcome["repartitioned_bytes"],
        spilled_bytes=outcome["spilled_bytes"],
        requests=sum_requests([*found.requests, outcome["requests"]]),
        shuffled_records=outcome["rows"],
        shuffled_bytes=outcome["rows_bytes"],
        written_records=outcome["written_rows"],
        written_bytes=outcome["output_bytes"],
        phases=[stage_stats.phase_record(phase) for phase in outcome["phases"]],
    )


def format_config(inputs: TableInput, order: TableOrder) -> dict[str, Any]:
    """The core's configuration of the format, and of what the rows are sorted by.

    Raises:
        UsageError: The input is of no such format, or cannot be sorted like this.
    """
    name = input_format(inputs.names, order.format)
    output = order.output_format or name
    if order.partition_by and order.limit is not None:
        raise core.UsageError(
            "the first rows cannot be found in folders; sort with it alone, then into folders",
            setting="limit",
        )
    [(kind, config)] = _uncompressed(inputs, order, name, output).items()
    _refuse_dropped_keys(parse_order(order.by), order.columns)
    compression = parse_compression(
        order.compression, output if output in COLUMN_FORMATS else "text"
    )
    config |= {"compression": compression}
    if order.partition_by:
        config |= {"folder_columns": len(order.partition_by)}
    return {kind: config}


def _uncompressed(
    inputs: TableInput, order: TableOrder, name: str, output: str
) -> dict[str, dict[str, Any]]:
    by = parse_order(order.by)
    columns = folders_first(by, order.partition_by or [])
    if order.output_format not in (None, *OUTPUT_FORMATS):
        raise core.UsageError(
            f"{order.output_format} is not one of {', '.join(OUTPUT_FORMATS)}",
            setting="output_format",
        )
    _refuse_dialect(name, output, order.dialect)
    schema = None if order.schema is None else parse_schema(order.schema)
    if name in COLUMN_FORMATS:
        return {
            "columns": {
                "input": name,
                "output": order.dialect.output_config(output),
                "order": [each.to_json() for each in columns],
                "columns": None if order.columns is None else list(order.columns),
                "schema": None if schema is None else schema_message(schema),
            }
        }
    from tonnage.run.sort.text_config import text_config

    return text_config(
        inputs,
        name,
        columns,
        columns=order.columns,
        given=schema,
        output=output,
        dialect=order.dialect,
        folders=order.partition_by or [],
    )


def _refuse_dropped_keys(keys: Sequence[ColumnOrder], kept: Sequence[str] | None) -> None:
    dropped = [
        key.name for key in keys if kept is not None and not is_column_or_field(key.name, kept)
    ]
    if dropped:
        raise core.UsageError(
            f"the rows are ordered by the column {dropped[0]!r}; keep it, too", setting="columns"
        )


def _refuse_dialect(name: str, output: str, dialect: Dialect) -> None:
    """Refuse a dialect of what has none."""
    if {name, output}.isdisjoint(DELIMITERS):
        for setting, given in (
            ("delimiter", dialect.delimiter is not None and name != "lines"),
            ("header", not dialect.has_header),
        ):
            if given:
                raise core.UsageError(f"{name} has none; leave it out", setting=setting)
    if dialect.encoding is not None and name not in (*DELIMITERS, "json"):
        raise core.UsageError(f"{name} has its own; leave it out", setting="encoding")
