"""DuckDB: ORDER BY over a stream of Arrow batches; the conversion both ways is timed.

Half of the memory is DuckDB's limit; the rest is for Arrow batches, page cache, and memory that
DuckDB does not count. Insertion order is preserved (the default): without it, batches can come out
of order.
"""

import duckdb
import pyarrow as pa
from records import BATCH_RECORDS, KEY_VALUE, job, key_value_batches, write

task = job("duckdb")
connection = duckdb.connect(
    config={
        "memory_limit": f"{task.memory_mb // 2}MiB",
        "threads": task.cpus,
        "temp_directory": str(task.scratch),
    }
)
batches = key_value_batches(task.input, 0, task.records)
source = pa.RecordBatchReader.from_batches(KEY_VALUE, batches)
result = connection.sql("FROM source ORDER BY key").to_arrow_reader(BATCH_RECORDS)
with (task.output / "sorted").open("wb", buffering=0) as file:
    write(file, result)
