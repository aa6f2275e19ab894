"""How a sort on a cluster is divided: splits, partitions, blocks and scratch.

Memory is divided by the core's own plan, for the node with most threads. A block is as long as the
node with least memory for it can have, since each node has to take what any other sends.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tonnage.base import core
from tonnage.base.core.sockets import DESCRIPTORS, most_connections
from tonnage.run.sort.local import Layout
from tonnage.run.storage.object_store import usual_requests
from tonnage.run.two_pass.schedule import Round, Schedule, Split

ALIGNMENT = 4096
"""Splits begin at multiples of this where the record's size allows: direct reads want it."""
MAX_BYTES = 256 << 20
MIN_BYTES = 1 << 20
SPLITS_PER_NODE = 16
"""At least so many, unless they would be too short: then the division is even."""
CHUNKS_PER_PARTITION = 4
CHUNKS = (64, 32_768)
"""Chunks to sample, at least and at most. At most: 5 million keys of 100-byte records, 53 MB at the
driver; with fewer, a large cluster's partitions are uneven."""
MOST_CONNECTIONS = 32
MOST_IN_ALL = most_connections(DESCRIPTORS // 2)
"""A node's connections to all others; the other half of what a process may open is for files."""
SLACK = 1.1
"""Partitions differ in size, and blocks end at multiples of a page."""


@dataclass(frozen=True)
class NodeResources:
    """What a sort has of each node, and the layout of its records."""

    layout: Layout
    memory_bytes: int
    connections: int | None
    """To each other node; ``None``: `usual_connections`."""
    devices: tuple[int, int, int] = (1, 1, 1)
    """For input, scratch and output, where these are not in object storage."""
    requests: int | None = None
    """Concurrent requests to object storage; ``None``: `usual_requests`."""
    downloads: bool = False
    """Whether the input's extents are ranges of objects."""
    uploads: bool = False
    """Whether the output's blocks are parts of objects."""


def usual_connections(nodes: int, workers: int) -> int:
    """From each node to each other: in all, as many as threads, if so many sockets may be open.

    A single flow of TCP carries less than a fast link, 5 Gbit/s on EC2 (AWS, Amazon EC2 instance
    network bandwidth).
    """
    peers = max(nodes - 1, 1)
    return min(-(-workers // peers), MOST_CONNECTIONS, max(MOST_IN_ALL // peers, 1))


def stride(total_bytes: int, nodes: int, record_bytes: int) -> int:
    """The length of a split: whole records, and short enough to divide splits evenly."""
    most = total_bytes // max(nodes * SPLITS_PER_NODE, 1)
    most = min(max(most, MIN_BYTES), MAX_BYTES)
    step = math.lcm(record_bytes, ALIGNMENT)
    step = step if step <= most else record_bytes
    return max(most // step, 1) * step


def partitions(splits: Sequence[Split], workers: Mapping[str, int], node: NodeResources) -> int:
    nodes = len(workers)
    share = -(-sum(split.bytes for split in splits) // nodes)
    node = _connected(node, nodes, workers)
    planned = plan(share, max(workers.values()), nodes, node)
    return int(planned["partitions"]) * nodes


def chunks(count: int) -> int:
    least, most = CHUNKS
    return min(max(CHUNKS_PER_PARTITION * count, least), most)


def block_bytes(
    each: Round, schedule: Schedule, workers: Mapping[str, int], resources: NodeResources
) -> int:
    """The size of a block in a round, which fits every node's memory."""
    nodes, found = each.nodes, []
    resources = _connected(resources, len(nodes), workers)
    for node in nodes:
        reads = sum(schedule.splits[number].bytes for number in each.reads.get(node, ()))
        planned = plan(reads, workers[node], len(nodes), resources)
        # Half of the memory is for blocks that are open: one a partition and thread.
        open_blocks = max(workers[node] * len(each.owners), 1)
        most = resources.memory_bytes // 2 // open_blocks // ALIGNMENT * ALIGNMENT
        found.append(min(int(planned["block_bytes"]), most))
    least = -(-resources.layout.record_bytes // ALIGNMENT) * ALIGNMENT
    return max(min(found), least)


def _connected(resources: NodeResources, nodes: int, workers: Mapping[str, int]) -> NodeResources:
    """With the connections that all nodes have, whatever their own number of threads is."""
    usual = usual_connections(nodes, max(workers.values()))
    return replace(resources, connections=resources.connections or usual)


def space_needed(each: Round, schedule: Schedule) -> dict[str, int]:
    """About how many bytes each node receives in a round."""
    reads = sum(schedule.splits[number].bytes for one in each.reads.values() for number in one)
    comes: dict[str, float] = {}
    for place, node in each.owners.items():
        of_input = schedule.bytes_of[place] / max(schedule.input_bytes, 1)
        comes[node] = comes.get(node, 0.0) + reads * of_input
    return {node: int(size * SLACK) for node, size in comes.items()}


def plan(size: int, workers: int, endpoints: int, node: NodeResources) -> dict[str, Any]:
    """How the core divides a node's memory to sort ``size`` bytes; `UsageError` if too small."""
    readers, scratch, writers = node.devices
    requests = node.requests or usual_requests(workers)
    return core.plan(
        {
            "bytes": size,
            "record_bytes": node.layout.record_bytes,
            "memory_bytes": node.memory_bytes,
            "workers": workers,
            "devices": (
                requests if node.downloads else readers,
                scratch,
                requests if node.uploads else writers,
            ),
            "downloads": node.downloads,
            "uploads": node.uploads,
            "endpoints": endpoints,
            "connections": node.connections or usual_connections(endpoints, workers),
        }
    )
