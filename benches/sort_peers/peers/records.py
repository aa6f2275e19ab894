"""Raw 100-byte records as Arrow batches and back, and the command line all Python peers share."""

import os
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib.metadata import version
from itertools import pairwise
from pathlib import Path
from typing import BinaryIO

import numpy as np
import pyarrow as pa

RECORD_BYTES = 100
KEY_BYTES = 10
BATCH_RECORDS = 40_000

KEY_VALUE = pa.schema([("key", pa.binary()), ("value", pa.binary())])


@dataclass(frozen=True)
class Job:
    """What the command line asks for: INPUT OUTPUT_DIR SCRATCH_DIR MEMORY_MB."""

    input: Path
    output: Path
    scratch: Path
    memory_mb: int

    @property
    def cpus(self) -> int:
        return len(os.sched_getaffinity(0))

    @property
    def records(self) -> int:
        return self.input.stat().st_size // RECORD_BYTES

    def slices(self, count: int) -> list[tuple[int, int]]:
        """The input in `count` nearly equal parts: first record and number of records of each."""
        edges = [self.records * i // count for i in range(count + 1)]
        return [(start, end - start) for start, end in pairwise(edges)]


def job(package: str) -> Job:
    """The job of the command line; with --version, print the package's version and end."""
    match sys.argv[1:]:
        case ["--version"]:
            print(version(package))
            sys.exit()
        case [source, output, scratch, memory_mb]:
            return Job(Path(source), Path(output), Path(scratch), int(memory_mb))
    sys.exit(f"usage: {sys.argv[0]} INPUT OUTPUT_DIR SCRATCH_DIR MEMORY_MB")


def key_value_batches(path: Path, start: int, count: int) -> Iterator[pa.RecordBatch]:
    """Records in two columns, their key and the rest."""
    for block in _blocks(path, start, count):
        columns = [_column(block[:, :KEY_BYTES]), _column(block[:, KEY_BYTES:])]
        yield pa.record_batch(columns, schema=KEY_VALUE)


def write(file: BinaryIO, batches: Iterable[pa.RecordBatch]) -> None:
    """Append such batches to a file of raw records."""
    for batch in batches:
        if batch.num_rows:
            file.write(np.hstack([_bytes(column) for column in batch.columns]))


def _blocks(path: Path, start: int, count: int) -> Iterator[np.ndarray]:
    with path.open("rb", buffering=0) as file:
        file.seek(start * RECORD_BYTES)
        for at in range(0, count, BATCH_RECORDS):
            data = file.read(min(BATCH_RECORDS, count - at) * RECORD_BYTES)
            yield np.frombuffer(data, np.uint8).reshape(-1, RECORD_BYTES)


def _column(block: np.ndarray) -> pa.Array:
    rows, width = block.shape
    offsets = np.arange(rows + 1, dtype=np.int32) * width
    data = pa.py_buffer(np.ascontiguousarray(block))
    return pa.Array.from_buffers(pa.binary(), rows, [None, pa.py_buffer(offsets), data])


def _bytes(column: pa.Array) -> np.ndarray:
    """Return the column's bytes, one row for each value: all values have one width."""
    if pa.types.is_binary_view(column.type):
        column = column.cast(pa.large_binary())
    wide = pa.types.is_large_binary(column.type)
    _, offsets, data = column.buffers()
    edges = np.frombuffer(offsets, np.int64 if wide else np.int32)
    first, last = edges[column.offset], edges[column.offset + len(column)]
    return np.frombuffer(data, np.uint8)[first:last].reshape(len(column), -1)
