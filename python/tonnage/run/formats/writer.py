"""Parts of the output, durable before they get their names, unless they are uploaded then."""

import os
import threading
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pyarrow as pa

from tonnage.base import core
from tonnage.run.formats.format import cast_rows
from tonnage.run.formats.registry import OUTPUTS


class OutputSchema:
    """The output's columns: those of the first rows, to which all others are cast."""

    def __init__(self) -> None:
        self._schema: pa.Schema | None = None
        self._lock = threading.Lock()

    def cast(self, rows: pa.RecordBatch, where: str) -> pa.RecordBatch:
        """The rows in the output's columns; `RunError` names ``where`` these cannot hold them."""
        with self._lock:
            self._schema = self._schema or rows.schema.remove_metadata()
        return cast_rows(rows, self._schema, "reduce", where)


def _culprit(rows: pa.RecordBatch, format: str) -> str:
    """The first column that cannot be written, in words."""
    for field in rows.schema:
        column = rows.select([field.name])
        try:
            with OUTPUTS[format].writer(pa.BufferOutputStream(), column.schema) as writer:
                writer.write_batch(column)
        except pa.ArrowException:
            return f"column {field.name} ({field.type})"
    return "the output"


class PartWriter:
    """Writes a part; its file is created with its first rows, and is flushed if ``durable``."""

    def __init__(self, path: Path, format: str, *, durable: bool = True) -> None:
        self.path, self._format, self._durable = path, format, durable
        self.rows = 0
        self._open = ExitStack()
        self._writer: Any = None

    def write(self, rows: pa.RecordBatch) -> None:
        if not rows.num_rows:
            return
        self.rows += rows.num_rows
        try:
            self._write(rows)
        except pa.ArrowException as why:
            raise core.RunError(
                f"{_culprit(rows, self._format)} cannot be written as {self._format}: {why}; "
                "convert it in reduce, or use another output format",
                "reduce",
            ) from why

    def write_empty(self, schema: pa.Schema) -> None:
        """Write a part that has columns, and no rows."""
        self._write(pa.RecordBatch.from_pylist([], schema))

    def _write(self, rows: pa.RecordBatch) -> None:
        if self._writer is None:
            file = self._open.enter_context(pa.OSFile(str(self.path), "wb"))
            writer = OUTPUTS[self._format].writer(file, rows.schema)
            self._writer = self._open.enter_context(writer)
        self._writer.write_batch(rows)

    def end(self) -> None:
        self._open.close()
        is_written = self._writer is not None
        self._writer = None  # Frees its pages: a job has thousands of parts.
        if is_written and self._durable:
            handle = os.open(self.path, os.O_RDONLY)
            try:
                os.fsync(handle)
            finally:
                os.close(handle)
