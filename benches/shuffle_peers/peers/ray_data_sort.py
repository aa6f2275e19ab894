"""Ray Data: each node's records read there, Dataset.sort by key, blocks written where they are.

    ray_data_sort.py JOB push|v2

`push` is the push-based shuffle, which Ray Data's authors made for sorts larger than memory
(SORT_SHUFFLE_PUSH_BASED); `v2` is the default of the installed version (SHUFFLE_V2, with batches
sized for the store: their default of 1 GiB would not fit). The object store is the budget and
spills to the node's disk. A block is 1/32 of it, so the working memory of a node's tasks stays well
below. Records are Arrow columns of key and rest; the conversion both ways is timed. The output has
as many blocks as the input.

A Dataset does not know where a file is, so it is a union of one Dataset a node, each read by tasks
that are bound to their node.
"""

import sys
from dataclasses import asdict
from pathlib import Path

import pyarrow as pa
import ray
import ray.data
from job import Job, Slice, connect, output, refuse_elsewhere
from ray.data.context import ShuffleStrategy
from records import key_value_batches, write

STRATEGIES = {
    "push": ShuffleStrategy.SORT_SHUFFLE_PUSH_BASED,
    "v2": ShuffleStrategy.SHUFFLE_V2,
}
BLOCKS_IN_BUDGET = 32


def load(slices: pa.Table) -> pa.Table:
    """The records of one slice, as a block."""
    (row,) = slices.to_pylist()
    refuse_elsewhere(row["node"])
    return pa.Table.from_batches(key_value_batches(Path(row["path"]), row["first"], row["count"]))


def store(block: pa.Table) -> pa.Table:
    """Writes a sorted block to a file that is named for its first key: names sort as blocks do."""
    block = block.combine_chunks()
    if block.num_rows:
        name = block["key"][0].as_py().hex()
        hidden = output() / f".{name}"
        with hidden.open("xb", buffering=0) as file:
            write(file, block.to_batches())
        hidden.rename(output() / name)
    return pa.table({"records": [block.num_rows]})


def dataset(slices: list[Slice], bound: object) -> ray.data.Dataset:
    """One node's records."""
    rows = [asdict(each) for each in slices]
    return ray.data.from_items(rows, override_num_blocks=len(rows)).map_batches(
        load, batch_format="pyarrow", batch_size=1, scheduling_strategy=bound
    )


def main() -> None:
    """Sorts the job of the command line."""
    job, strategy = Job.read(sys.argv[1]), STRATEGIES[sys.argv[2]]
    bound = connect(job)
    block_bytes = job.budget_bytes // BLOCKS_IN_BUDGET
    context = ray.data.DataContext.get_current()
    context.enable_progress_bars = False
    context.shuffle_strategy = strategy
    context.shuffle_input_batch_bytes = block_bytes  # This and the next of v2 alone.
    context.shuffle_compression = "none"  # The benchmark's records are random.
    context.target_max_block_size = 2 * block_bytes  # No slice is split.
    first, *others = (
        dataset(slices, bound[node]) for node, slices in job.slices(block_bytes).items()
    )
    stored = (
        first.union(*others).sort("key").map_batches(store, batch_format="pyarrow", batch_size=None)
    )
    print(sum(row["records"] for row in stored.iter_rows()), "records")
    ray.shutdown()


if __name__ == "__main__":
    main()
