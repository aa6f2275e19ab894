"""DataFusion: ORDER BY over Arrow files, to which the records are converted first; all is timed.

A stream of batches as its source does not let the sort spill. The files, one for each CPU, are read
through pyarrow, because DataFusion's own reader loads a whole file into memory. A third of the
memory is its pool; the rest is memory that the pool does not account for, and page cache.
"""

import pyarrow as pa
import pyarrow.dataset as ds
from datafusion import RuntimeEnvBuilder, SessionConfig, SessionContext
from records import KEY_VALUE, Job, job, key_value_batches, write


def convert(task: Job) -> list[str]:
    paths = []
    for number, (start, count) in enumerate(task.slices(task.cpus)):
        paths.append(str(task.scratch / f"input-{number}.arrow"))
        with pa.OSFile(paths[-1], "wb") as file, pa.ipc.new_file(file, KEY_VALUE) as writer:
            for batch in key_value_batches(task.input, start, count):
                writer.write_batch(batch)
    return paths


task = job("datafusion")
runtime = (
    RuntimeEnvBuilder()
    .with_disk_manager_specified(str(task.scratch))
    .with_fair_spill_pool((task.memory_mb << 20) // 3)
)
context = SessionContext(SessionConfig().with_target_partitions(task.cpus), runtime)
context.register_dataset("source", ds.dataset(convert(task), format="ipc"))
result = context.sql("SELECT * FROM source ORDER BY key").execute_stream()
with (task.output / "sorted").open("wb", buffering=0) as file:
    write(file, (batch.to_pyarrow() for batch in result))
