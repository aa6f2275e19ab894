import os
from collections.abc import Iterator
from records import job, key_value_batches, write

task = job("polars")
os.environ["POLARS_MAX_THREADS"] = str(task.cpus)
os.environ["POLARS_OOC_MEMORY_BUDGET_MB"] = os.environ.get("B",str(task.memory_mb // 2))
os.environ["POLARS_OVERRIDE_TOTAL_MEMORY_MB"] = str(task.memory_mb)
os.environ["POLARS_OOC_SPILL_DIR"] = str(task.scratch)
import polars as pl
from polars.io.plugins import register_io_source

def source(with_columns, predicate, n_rows, batch_size) -> Iterator[pl.DataFrame]:
    for batch in key_value_batches(task.input, 0, task.records):
        yield pl.from_arrow(batch)

file = (task.output / "sorted").open("wb", buffering=0)
def sink(df):
    write(file, df.to_arrow(compat_level=pl.CompatLevel.oldest()).to_batches())
lf = register_io_source(source, schema={"key": pl.Binary, "value": pl.Binary})
lf.sort("key").sink_batches(sink, chunk_size=100000, engine="streaming")
