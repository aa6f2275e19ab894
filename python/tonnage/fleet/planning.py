"""How a sort on a fleet is laid out: who takes part, how many partitions, blocks and room.

Memory is divided by the core's own plan, for the node with most threads; a block is as long as the
node that has least room for it can have, since all have to be able to take what any sends.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from tonnage import engine
from tonnage.fleet.cluster import Cluster, Machine
from tonnage.fleet.share import ALIGNMENT
from tonnage.fleet.site import Look
from tonnage.run.schedule import Round, Schedule, Split
from tonnage.run.sort import Layout

CHUNKS_PER_PARTITION = 4
CHUNKS = (64, 4096)
"""Chunks that are sampled, at least and at most: as the sort on one machine has them."""
SLACK = 1.1
"""Partitions are not all alike, and blocks end at multiples of a page."""


def machines(cluster: Cluster, instances: int | None) -> list[Machine]:
    """The machines that take part.

    Raises:
        Refused: There are too few.
    """
    found = cluster.machines
    if instances is not None and len(found) < instances:
        raise engine.Refused(
            f"--instances {instances}: the fleet has {len(found)} machines: add some, or ask for "
            "fewer"
        )
    return found[:instances]


def weights(nodes: Sequence[str], given: Mapping[str, float] | None) -> dict[str, float]:
    """The share of partitions that each node is to own.

    Raises:
        Refused: One was not measured.
    """
    if given is None:
        return dict.fromkeys(nodes, 1.0)
    if missing := [node for node in nodes if node not in given]:
        raise engine.Refused(
            f"--capacities: {missing[0]} was not measured there: measure all nodes, or leave it out"
        )
    return {node: given[node] for node in nodes}


def refuse_absent(inputs: Sequence[str], absent: Mapping[str, Collection[str]]) -> None:
    """Refuses an input that no node has; ``absent`` are those that each lacks, by their paths."""
    for path in inputs:
        lacking = [node for node in absent if path.replace("{node}", node) in absent[node]]
        if len(lacking) == len(absent):
            raise engine.Refused(f"input {path} is on no node: name what is on one of them")


def refuse_parts(looks: Mapping[str, Look]) -> None:
    """Refuses inputs that are a part of an output only."""
    names = {os.path.basename(file.path) for look in looks.values() for file in look.files}
    for node, look in sorted(looks.items()):
        for part in look.parts:
            if part not in names:
                raise engine.Refused(
                    f"the input on {node} is a part of an output only: {part} is missing; give all "
                    "directories that it was written to"
                )


def refuse_full(
    looks: Mapping[str, Look], shares: Mapping[str, float], total_bytes: int, copies: int
) -> None:
    """Refuses if a node has too little room for its share of scratch and of so many outputs."""
    whole = sum(shares.values())
    for node, look in sorted(looks.items()):
        share = total_bytes * shares[node] / whole
        output = sum(room.output for room in look.rooms) or 1
        scratch = sum(room.scratch for room in look.rooms) or 1
        for room in look.rooms:
            needs = int(share * (copies * room.output / output + room.scratch / scratch))
            if room.free_bytes < needs:
                raise engine.Refused(
                    f"{node} has {room.free_bytes} bytes free on a device for --output or "
                    f"--scratch, its share needs {needs} there: free some, or add nodes"
                )


def partitions(
    splits: Sequence[Split],
    workers: Mapping[str, int],
    layout: Layout,
    memory_bytes: int,
    devices: int,
    connections: int,
) -> int:
    """How many partitions to aim for."""
    nodes = len(workers)
    share = -(-sum(split.bytes for split in splits) // nodes)
    plan = _plan(share, max(workers.values()), nodes, layout, memory_bytes, devices, connections)
    return int(plan["partitions"]) * nodes


def chunks(count: int) -> int:
    """How many chunks to sample for so many partitions."""
    least, most = CHUNKS
    return min(max(CHUNKS_PER_PARTITION * count, least), most)


def block_bytes(
    each: Round,
    schedule: Schedule,
    workers: Mapping[str, int],
    layout: Layout,
    memory_bytes: int,
    devices: int,
    connections: int,
) -> int:
    """The size of a block in a round, with which every node keeps its memory."""
    nodes = each.nodes
    found = []
    for node in nodes:
        reads = sum(schedule.splits[number].bytes for number in each.reads.get(node, ()))
        plan = _plan(reads, workers[node], len(nodes), layout, memory_bytes, devices, connections)
        # Half of the memory is for blocks that are open: one a partition and thread.
        open_blocks = max(workers[node] * len(each.owners), 1)
        most = memory_bytes // 2 // open_blocks // ALIGNMENT * ALIGNMENT
        found.append(min(int(plan["block_bytes"]), most))
    least = -(-layout.record_bytes // ALIGNMENT) * ALIGNMENT
    return max(min(found), least)


def rooms(each: Round, schedule: Schedule) -> dict[str, int]:
    """About how much comes to each node in a round."""
    reads = sum(schedule.splits[number].bytes for one in each.reads.values() for number in one)
    comes: dict[str, float] = {}
    for place, node in each.owners.items():
        of_input = schedule.bytes_of[place] / max(schedule.input_bytes, 1)
        comes[node] = comes.get(node, 0.0) + reads * of_input
    return {node: int(size * SLACK) for node, size in comes.items()}


def blamed(why: str, nodes: Sequence[str]) -> list[str]:
    """The nodes that an error of the network names; endpoints are in the order of nodes."""
    numbers = {int(number) for number in re.findall(r"\bendpoint (\d+) \(", why)}
    return [nodes[number] for number in sorted(numbers) if number < len(nodes)]


def _plan(
    size: int,
    workers: int,
    endpoints: int,
    layout: Layout,
    memory_bytes: int,
    devices: int,
    connections: int,
) -> dict[str, Any]:
    shape = {
        "bytes": size,
        "record_bytes": layout.record_bytes,
        "memory_bytes": memory_bytes,
        "workers": workers,
        "devices": [1, devices, devices],
        "endpoints": endpoints,
        "connections": connections,
    }
    plan: dict[str, Any] = engine.plan(shape)
    return plan
