"""A push-based shuffle of Ray tasks: map, merge, reduce, as Exoshuffle describes it.

    push_shuffle_sort.py JOB

Rounds of maps: each map reads a slice on the node that has it, sorts it, and makes one object for
each node. Then each node merges its blocks of a round into one object for each of its partitions,
while the next round's maps run. So blocks are pushed as they are made, and the shuffle spills a few
larger blocks instead of maps times partitions. After all rounds each partition's blocks are merged
on their node and written there. Maps and merges are generators, so no task holds its whole output.
The object store is the budget, and Ray spills it to the node's disk.

Luan et al., Exoshuffle: An Extensible Shuffle Architecture, SIGCOMM 2023; Luan et al.,
Exoshuffle-CloudSort, 2023. Unlike theirs, boundaries are sampled: keys need not be uniform.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import ray
from job import RECORD_BYTES, Job, Slice, connect, output, refuse_elsewhere

SLICES_IN_BUDGET = 32
PARTITIONS_IN_BUDGET = 16
"""So that the working memory of a node's tasks stays well below the budget."""
MAPS_A_SLOT = 2
"""In a round."""
SAMPLED = 1000
"""Records of a slice, from its first on: slices are many, and one read each is cheap."""

Array = np.ndarray[Any, np.dtype[Any]]


def read(slice_: Slice) -> Array:
    """Its records, a row each."""
    refuse_elsewhere(slice_.node)
    found = np.fromfile(
        slice_.path, np.uint8, slice_.count * RECORD_BYTES, offset=slice_.first * RECORD_BYTES
    )
    return found.reshape(-1, RECORD_BYTES)


def high(records: Array) -> Array:
    """The first 8 bytes of each key, as a number of the same order."""
    return np.ascontiguousarray(records[:, :8]).view(">u8").ravel().astype(np.uint64)


def low(records: Array) -> Array:
    """The other 2."""
    return np.ascontiguousarray(records[:, 8:10]).view(">u2").ravel().astype(np.uint16)


def in_order(records: Array) -> Array:
    """Where each record of the sorted whole is. What is in runs already is merged (timsort)."""
    keys = high(records)
    order = np.argsort(keys, kind="stable")
    keys = keys[order]
    if (keys[1:] == keys[:-1]).any():
        return np.lexsort((low(records), high(records)))
    return order


@ray.remote
def sample(slice_: Slice) -> Array:
    """Keys of some of a slice's records."""
    return high(read(replace(slice_, count=min(SAMPLED, slice_.count))))


@ray.remote
def map_(slice_: Slice, bounds: Array, nodes: int) -> Iterator[tuple[Array, Array]]:
    """For each node its records in order, and where each of its partitions begins and ends."""
    records = read(slice_)
    order = in_order(records)
    inner = np.searchsorted(high(records)[order], bounds)
    edges = np.concatenate(([0], inner, [len(records)]))
    each = (len(edges) - 1) // nodes
    for node in range(nodes):
        own = edges[node * each : (node + 1) * each + 1]
        yield records[order[own[0] : own[-1]]], own - own[0]


@ray.remote
def merge(partitions: int, *blocks: tuple[Array, Array]) -> Iterator[Array]:
    """A round's blocks for a node, as one for each partition."""
    for number in range(partitions):
        yield merged([records[at[number] : at[number + 1]] for records, at in blocks])


@ray.remote
def reduce_(number: int, *blocks: Array) -> int:
    """Writes a partition: how many records."""
    records = merged(blocks)
    hidden = output() / f".part-{number:05}"
    records.tofile(hidden)
    hidden.rename(output() / f"part-{number:05}")
    return len(records)


def merged(runs: Sequence[Array]) -> Array:
    """Sorted runs as one."""
    records = np.concatenate(runs)
    return records[in_order(records)]


def boundaries(slices: dict[str, list[Slice]], bound: dict[str, Any], partitions: int) -> Array:
    """Quantiles of the sampled keys: all but the outermost."""
    samples = [
        sample.options(scheduling_strategy=bound[node]).remote(each)
        for node, parts in slices.items()
        for each in parts
    ]
    keys = np.sort(np.concatenate(ray.get(samples)))
    return keys[np.arange(1, partitions) * len(keys) // partitions]


def shuffled(job: Job, bound: dict[str, Any], partitions: int) -> list[list[list[Any]]]:
    """Maps and merges: by node and by its partition, the objects that each round made."""
    slices = job.slices(job.budget_bytes // SLICES_IN_BUDGET)
    nodes = len(slices)
    bounds = ray.put(boundaries(slices, bound, nodes * partitions))
    found: list[list[list[Any]]] = [[[] for _ in range(partitions)] for _ in range(nodes)]
    before: list[Any] = []
    step = MAPS_A_SLOT * job.slots
    for at in range(0, max(map(len, slices.values())), step):
        maps = [
            map_.options(num_returns=nodes, scheduling_strategy=bound[node]).remote(
                each, bounds, nodes
            )
            for node, parts in slices.items()
            for each in parts[at : at + step]
        ]
        now = []
        for number, node in enumerate(slices):
            own = [parts[number] for parts in maps]
            made = merge.options(num_returns=partitions, scheduling_strategy=bound[node]).remote(
                partitions, *own
            )
            for partition, ref in enumerate(made):
                found[number][partition].append(ref)
            now.append(made[-1])
            del own, made
        del maps
        # Maps run ahead of merges by one round, so that blocks in the store stay bounded.
        if before:
            ray.wait(before, num_returns=len(before), fetch_local=False)
        before = now
    return found


def main() -> None:
    """Sorts the job of the command line."""
    job = Job.read(sys.argv[1])
    bound = connect(job)
    most = job.budget_bytes // PARTITIONS_IN_BUDGET
    # Of each node; of several objects a task gives a list.
    partitions = max(2, -(-job.input_bytes // len(job.inputs) // most))
    blocks = shuffled(job, bound, partitions)
    written = []
    # By turns, so that all nodes reduce; each lets go of its blocks when it is done.
    for partition in range(partitions):
        for number, node in enumerate(bound):
            written.append(
                reduce_.options(scheduling_strategy=bound[node]).remote(
                    number * partitions + partition, *blocks[number][partition]
                )
            )
            blocks[number][partition] = []
    print(sum(ray.get(written)), "records")
    ray.shutdown()


if __name__ == "__main__":
    main()
