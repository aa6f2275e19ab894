"""Parts of the output: Parquet, Arrow IPC files, CSV, JSON lines; durable before they are named."""

from __future__ import annotations

import base64
import json
import os
import threading
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pcsv
import pyarrow.parquet as pq

from tonnage.base import core

SUFFIXES = {"parquet": ".parquet", "arrow": ".arrow", "csv": ".csv", "json": ".jsonl"}
"""What names of parts end with, by format."""


class OutputSchema:
    """The columns of the output: those of what came first, to which the rest is cast."""

    def __init__(self) -> None:
        self._schema: pa.Schema | None = None
        self._lock = threading.Lock()

    def cast(self, rows: pa.RecordBatch, where: str) -> pa.RecordBatch:
        """The rows with the columns of those that came first.

        Raises:
            RunError: They have other columns, or values that these cannot hold.
        """
        with self._lock:
            self._schema = self._schema or rows.schema.remove_metadata()
        if rows.schema.equals(self._schema):
            return rows
        try:
            return rows.select(self._schema.names).cast(self._schema)
        except (pa.ArrowException, KeyError) as why:
            raise core.RunError(
                f"what reduce gave for {where} does not go together with what it gave before "
                f"({why}): cast the columns in reduce",
                "reduce",
                None,
                None,
            ) from why


class PartWriter:
    """A part that is written; its file is made when its first rows come."""

    def __init__(self, path: Path, format: str) -> None:
        self.path, self._format = path, format
        self.rows = 0
        self._open = ExitStack()
        self._writer: Any = None

    def write(self, rows: pa.RecordBatch) -> None:
        """Adds rows."""
        if not rows.num_rows:
            return
        if self._writer is None:
            self._writer = self._begin(rows.schema)
        self.rows += rows.num_rows
        if self._format == "json":
            for record in rows.to_pylist():
                self._writer.write(json.dumps(record, ensure_ascii=False, default=_as_text) + "\n")
        else:
            self._writer.write_batch(rows)

    def end(self) -> None:
        """Makes it durable."""
        self._open.close()
        if self._writer is not None:
            handle = os.open(self.path, os.O_RDONLY)
            try:
                os.fsync(handle)
            finally:
                os.close(handle)

    def _begin(self, schema: pa.Schema) -> Any:
        if self._format == "json":
            return self._open.enter_context(self.path.open("w", encoding="utf-8"))
        file = self._open.enter_context(pa.OSFile(str(self.path), "wb"))
        makers: dict[str, Any] = {
            "parquet": pq.ParquetWriter,
            "arrow": pa.ipc.new_file,
            "csv": pcsv.CSVWriter,
        }
        return self._open.enter_context(makers[self._format](file, schema))


def _as_text(value: Any) -> str:
    """What JSON has no way to say: bytes as Base64, moments and numbers as they are printed."""
    return base64.b64encode(value).decode() if isinstance(value, bytes) else str(value)
