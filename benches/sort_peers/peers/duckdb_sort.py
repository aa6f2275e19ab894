"""DuckDB: ORDER BY over a stream of Arrow batches; the conversion both ways is timed.

DuckDB's limit is half of the memory: the rest is Arrow batches, what it does not account for, and
page cache. Insertion order is preserved (the default), for only then is the result's order safe.
"""

import duckdb
import pyarrow as pa
from records import BATCH_RECORDS, WHOLE, job, whole_batches, write
import os
from records import KEY_VALUE, key_value_batches

task = job("duckdb")
connection = duckdb.connect(
    config={
        "memory_limit": f"{int(task.memory_mb * float(os.environ.get('FR','0.5')))}MiB",
        "threads": task.cpus,
        "temp_directory": str(task.scratch),
    }
)
if os.environ.get("MODE") == "kv":
    source = pa.RecordBatchReader.from_batches(KEY_VALUE, key_value_batches(task.input, 0, task.records))
    q="FROM source ORDER BY key"
else:
    source = pa.RecordBatchReader.from_batches(WHOLE, whole_batches(task.input, 0, task.records))
    q="FROM source ORDER BY record"
result = connection.sql(q).to_arrow_reader(BATCH_RECORDS)
with (task.output / "sorted").open("wb", buffering=0) as file:
    write(file, result)
