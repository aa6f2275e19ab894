"""Polars: a lazy sort between a Python source of frames and a Python sink; both are timed.

A tenth of the memory is the budget above which the streaming engine spills: the budget counts the
buffered columns only, and with a fifth of the memory the process can be killed in the cgroup.
"""

import os
from collections.abc import Iterator

from records import job, key_value_batches, write

task = job("polars")
os.environ["POLARS_MAX_THREADS"] = str(task.cpus)
os.environ["POLARS_OVERRIDE_TOTAL_MEMORY_MB"] = str(task.memory_mb)
os.environ["POLARS_OOC_MEMORY_BUDGET_MB"] = str(task.memory_mb // 10)
os.environ["POLARS_OOC_SPILL_DIR"] = str(task.scratch)

import polars as pl  # noqa: E402  (reads its environment once, when it is imported)
from polars.io.plugins import register_io_source  # noqa: E402

SINK_RECORDS = 100_000


def source(
    columns: list[str] | None, predicate: pl.Expr | None, rows: int | None, batch_rows: int | None
) -> Iterator[pl.DataFrame]:
    """All records: the plan below asks for nothing less."""
    for batch in key_value_batches(task.input, 0, task.records):
        frame = pl.from_arrow(batch)
        assert isinstance(frame, pl.DataFrame)
        yield frame


def sink(frame: pl.DataFrame) -> None:
    write(file, frame.to_arrow(compat_level=pl.CompatLevel.oldest()).to_batches())


with (task.output / "sorted").open("wb", buffering=0) as file:
    frames = register_io_source(source, schema={"key": pl.Binary, "value": pl.Binary})
    frames.sort("key").sink_batches(sink, chunk_size=SINK_RECORDS, engine="streaming")
