"""`sort`: tables of any size by columns, from files or from Arrow data, on this machine."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import weakref
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import pyarrow as pa
import pyarrow.dataset as pa_dataset

from tonnage.api.argument_checks import count, paths, size, text, texts
from tonnage.base import core
from tonnage.base.clock import utc_now
from tonnage.measure.trial import environment
from tonnage.run.sort.dialect import Dialect
from tonnage.run.sort.order import join_order
from tonnage.run.sort.table_input import AUTO
from tonnage.run.sort.tables import COLUMN_FORMATS, FILE_BYTES, TableOrder, sort_table
from tonnage.run.storage.earlier_output import manifest_parts
from tonnage.run.storage.object_store import ObjectStoreOptions

if TYPE_CHECKING:
    from tonnage.base.records import RunRecord

STAGED = "input.arrows"
"""Arrow data on its way."""
BATCH_ROWS = 1 << 16
"""Rows of a batch that goes to disk: the core divides files by batches."""


class ArrowStream(Protocol):
    """What gives batches: tables and readers of PyArrow, frames of Polars, results of DuckDB."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...


Table = str | Path | Sequence[str | Path] | ArrowStream | pa_dataset.Dataset | pa_dataset.Scanner


@dataclass(frozen=True)
class SortedTable:
    """Sorted files in order, and the record of the run.

    With folders, ``folders_in`` is the directory in which their names tell columns.

    Without an ``output`` of its own they are in a temporary directory, which is removed with
    `close`, at the end of a ``with`` block, or with this object.
    """

    files: list[str]
    format: str
    record: RunRecord = field(repr=False)
    folders_in: str | None = None
    temporary: Path | None = None

    def __post_init__(self) -> None:
        if self.temporary is not None:
            weakref.finalize(self, shutil.rmtree, self.temporary, ignore_errors=True)

    def __enter__(self) -> SortedTable:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def dataset(self) -> pa_dataset.Dataset:
        """The files as a dataset; scanners keep the order if they use one thread.

        Columns that the names of folders tell are text, or int32 where all values are.

        Raises:
            UsageError: The files are text, whose types would have to be guessed, or removed.
        """
        if self.temporary is not None and not self.temporary.exists():
            raise core.UsageError("the result is closed; read it before, or give it an output")
        if self.format not in COLUMN_FORMATS:
            raise core.UsageError(
                f"the output is {self.format}; read its files yourself, or sort into Parquet or "
                "Arrow",
                setting="output_format",
            )
        return pa_dataset.dataset(
            self.files,
            format="parquet" if self.format == "parquet" else "arrow",
            partitioning=None if self.folders_in is None else "hive",
            partition_base_dir=self.folders_in,
        )

    def reader(self) -> pa.RecordBatchReader:
        """The rows in order, a batch at a time; raises as `dataset` does."""
        dataset = self.dataset()
        return pa.RecordBatchReader.from_batches(dataset.schema, self._batches(dataset))

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self.reader().__arrow_c_stream__(requested_schema)  # type: ignore[no-untyped-call]

    def _batches(self, dataset: pa_dataset.Dataset) -> Iterator[pa.RecordBatch]:
        for file in dataset.get_fragments():
            yield from file.to_batches(dataset.schema, use_threads=False)

    def close(self) -> None:
        """Removes the files, if nobody has asked for them by ``output``."""
        if self.temporary is not None:
            shutil.rmtree(self.temporary, ignore_errors=True)


def sort(
    table: Table,
    by: str | Sequence[str],
    *,
    output: str | Path | Sequence[str | Path] | None = None,
    scratch: str | Path | Sequence[str | Path] | None = None,
    memory: str | int = "1GiB",
    stable: bool = False,
    unique: bool = False,
    limit: int | None = None,
    columns: Sequence[str] | None = None,
    schema: str | pa.Schema | None = None,
    input_format: str = AUTO,
    output_format: str | None = None,
    delimiter: str | None = None,
    header: bool = True,
    encoding: str | None = None,
    compression: str | None = None,
    partition_by: Sequence[str] | None = None,
    file_bytes: str | int = FILE_BYTES,
    endpoint: str | None = None,
) -> SortedTable:
    """Sort a table of any size by columns, within ``memory``.

    Args:
        table: Files, directories, globs or ``s3://`` URLs; or Arrow data: a table, a reader, a
            dataset, or anything else with ``__arrow_c_stream__``, which is read once and written
            to ``scratch`` first. For files that lie on disks or in a store, their paths are faster.
        by: The columns, like ``user,-ts,amount:nulls-first`` or a list of these: descending with a
            minus, nulls last by default. -0.0 equals 0.0, and NaN is above all numbers.
        output: Empty or new directories, one for each device, for files ``part-00000`` and so on;
            by default a temporary directory in ``scratch``, as Arrow files.
        scratch: Directories, one for each device; by default where temporary files go.
        memory: For all buffers, what is decoded, and what is encoded: like ``1GiB``, or a number of
            bytes.
        stable: Whether rows with equal keys keep their order.
        unique: Whether of rows with equal keys only one is kept, the first if ``stable``.
        limit: Keep so many rows, the first.
        columns: Keep these, in this order; all by default.
        schema: Types that columns of files are read as, like ``user:int64,ts:timestamp[ms]``; null
            where a file lacks one.
        input_format: ``parquet``, ``arrow``, ``csv``, ``tsv``, ``json`` or ``lines``; by default by
            the files' names.
        output_format: One of these but ``lines``; that of the input by default, and ``arrow`` for
            Arrow data.
        delimiter: Between fields of CSV, ``header`` whether it names its columns, ``encoding`` that
            of text.
        compression: How the output is compressed, like ``zstd`` or ``zstd:9``; by default snappy
            for Parquet, and not at all otherwise.
        partition_by: Files are in folders by these columns, as ``country=DE/day=2026-01-01``, and
            leave them out; rows are sorted, and ``unique``, within a folder.
        file_bytes: Most bytes of rows in a file of the output, about.
        endpoint: The store's address; by default as the environment says.

    Raises:
        UsageError: Arguments or input cannot be used.
        RunError: It failed while it ran.
        KeyboardInterrupt: Ctrl-C.
    """
    scratches = [Path(each) for each in paths(scratch or tempfile.gettempdir(), "scratch")]
    store = ObjectStoreOptions(endpoint=text(endpoint, "endpoint"))
    order = TableOrder(
        by=by if isinstance(by, str) else join_order(texts(by, "by")),
        stable=stable,
        unique=unique,
        limit=count(limit, "limit"),
        columns=None if columns is None else texts(columns, "columns"),
        schema=_schema_text(schema),
        compression=text(compression, "compression"),
        partition_by=None if partition_by is None else texts(partition_by, "partition_by"),
        file_bytes=size(file_bytes, "file_bytes"),
        format=input_format,
        output_format=text(output_format, "output_format"),
        dialect=Dialect(
            delimiter=text(delimiter, "delimiter"),
            has_header=header,
            encoding=text(encoding, "encoding"),
        ),
    )
    memory_bytes, began_at = size(memory, "memory"), utc_now()
    scratches[0].mkdir(parents=True, exist_ok=True)
    temporary = Path(tempfile.mkdtemp(prefix="tonnage-sort-", dir=scratches[0]))
    try:
        inputs, order = _staged(table, temporary, order)
        outputs = [Path(each) for each in paths(output or temporary / "output", "output")]
        if output is None:
            order = replace(order, output_format=order.output_format or "arrow")
        record = sort_table(
            inputs,
            outputs,
            scratches,
            order=order,
            memory_bytes=memory_bytes,
            environment=environment.capture(scratches),
            began_at=began_at,
            command=list(sys.argv),
            object_store=store,
        )
        (temporary / STAGED).unlink(missing_ok=True)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise
    if output is not None:
        temporary.rmdir()
    files = _files(outputs)
    suffix = Path(files[0]).suffix.removeprefix(".")
    folders_in = os.path.commonpath(outputs) if partition_by else None
    return SortedTable(files, suffix, record, folders_in, temporary if output is None else None)


def _staged(table: Table, temporary: Path, order: TableOrder) -> tuple[list[str], TableOrder]:
    """The paths of the input, and the order of its format; Arrow data is written to a file."""
    if isinstance(table, (str, Path, Sequence)):
        return paths(table, "table"), order
    if isinstance(table, pa_dataset.Dataset):
        reader = table.scanner(batch_size=BATCH_ROWS).to_reader()
    elif isinstance(table, pa_dataset.Scanner):
        reader = table.to_reader()
    elif isinstance(table, pa.Table):
        reader = table.to_reader(BATCH_ROWS)
    elif hasattr(table, "__arrow_c_stream__"):
        reader = pa.RecordBatchReader.from_stream(table)
    else:
        kind = type(table).__name__
        raise core.UsageError(f"{kind} is neither paths nor Arrow data", setting="table")
    if order.format not in (AUTO, "arrow"):
        raise core.UsageError("Arrow data has its own format; leave it out", setting="input_format")
    path = temporary / STAGED
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_stream(file, reader.schema) as writer:
        for batch in reader:
            for begin in range(0, batch.num_rows, BATCH_ROWS):
                writer.write_batch(batch.slice(begin, BATCH_ROWS))
    return [str(path)], replace(order, format="arrow")


def _files(outputs: Sequence[Path]) -> list[str]:
    """The parts of an output, in order."""
    parts = manifest_parts(str(outputs[0]))
    return [
        str(next(path for output in outputs if (path := output / part).is_file())) for part in parts
    ]


def _schema_text(schema: str | pa.Schema | None) -> str | None:
    if isinstance(schema, pa.Schema):
        return ",".join(f"{each.name}:{each.type}" for each in schema)
    return text(schema, "schema")
