"""Ray Data: read raw records, Dataset.sort, write raw records; the conversion both ways is timed.

A fifth of the memory is the object store (shared memory, so the cgroup counts it), which spills to
the scratch directory; the rest is Ray's daemons and a worker a CPU with the blocks in its hands.
"""

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
from records import Job, job, key_value_batches, write

BLOCK_BYTES = 32 << 20


def load(task: Job, slices: pa.Table) -> Iterator[pa.Table]:
    for row in slices.to_pylist():
        yield pa.Table.from_batches(key_value_batches(task.input, row["start"], row["count"]))


def store(task: Job, block: pa.Table) -> pa.Table:
    """Write a sorted block to a file that is named for its first key: names sort as blocks do."""
    block = block.combine_chunks()
    if block.num_rows:
        with (task.output / block["key"][0].as_py().hex()).open("wb", buffering=0) as file:
            write(file, block.to_batches())
    return pa.table({"records": [block.num_rows]})


def main() -> None:
    task = job("ray")
    os.environ["PYTHONPATH"] = str(Path(__file__).parent)
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    import ray

    with tempfile.TemporaryDirectory(prefix="ray-") as sockets:  # a socket's path must be short
        ray.init(
            num_cpus=task.cpus,
            object_store_memory=int(task.memory_mb * float(os.environ.get("FR", "0.2"))) << 20,
            object_spilling_directory=str(task.scratch),
            include_dashboard=False,
            _temp_dir=sockets,
        )
        ray.data.DataContext.get_current().enable_progress_bars = False
        slices = task.slices(max(task.cpus, -(-task.input.stat().st_size // int(os.environ.get("BB", BLOCK_BYTES)))))
        rows = [{"start": start, "count": count} for start, count in slices]
        sorted_blocks = (
            ray.data.from_items(rows, override_num_blocks=len(rows))
            .map_batches(lambda rows: load(task, rows), batch_format="pyarrow", batch_size=1)
            .sort("key")
            .map_batches(lambda block: store(task, block), batch_format="pyarrow", batch_size=None)
        )
        print(sum(row["records"] for row in sorted_blocks.iter_rows()), "records")
        ray.shutdown()


if __name__ == "__main__":
    main()
