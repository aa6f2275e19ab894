"""Ray Data: read raw records, Dataset.sort, write raw records; the conversion both ways is timed.

A tenth of the memory is the object store (shared memory, so the cgroup counts it), which spills to
the scratch directory. Ray's daemons alone use a third, so little is left for the blocks of the
workers, one for each CPU: blocks and shuffle batches are small, and no worker starts early.
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
    os.environ["RAY_enable_worker_prestart"] = "0"  # noqa: SIM112
    os.environ["RAY_prestart_worker_first_driver"] = "0"  # noqa: SIM112
    import ray  # it reads its environment when it is imported

    ray.init(
        num_cpus=task.cpus,
        object_store_memory=max(task.memory_mb // 10, 80) << 20,  # Ray refuses less than 75 MiB
        object_spilling_directory=str(task.scratch),
        include_dashboard=False,
        _temp_dir=tempfile.mkdtemp(),  # short: the paths of sockets may not be long
    )
    context = ray.data.DataContext.get_current()
    context.enable_progress_bars = False
    context.shuffle_input_batch_bytes = BLOCK_BYTES  # a task's share of the sort; 1 GiB by default
    slices = task.slices(max(task.cpus, -(-task.input.stat().st_size // BLOCK_BYTES)))
    rows = [{"start": start, "count": count} for start, count in slices]
    stored = (
        ray.data.from_items(rows, override_num_blocks=len(rows))
        .map_batches(lambda rows: load(task, rows), batch_format="pyarrow", batch_size=1)
        .sort("key")
        .map_batches(lambda block: store(task, block), batch_format="pyarrow", batch_size=None)
    )
    print(sum(row["records"] for row in stored.iter_rows()), "records")
    ray.shutdown()


if __name__ == "__main__":
    main()
