"""Scalability limits: what breaks first as a cluster grows, by the demands of the real code.

Sizes follow the core's division of memory. Connections, threads and buffers are counted as its mesh
and stages create them: each endpoint connects to every other one, with a thread for each connection
and direction, and a block for each receiver. The driver's work is done here, with as many splits
and partitions, and timed.
"""

import math
import pickle
import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tonnage.base import core
from tonnage.base.core.sockets import DESCRIPTORS, sockets
from tonnage.base.stats.distributions import gamma_quantiles
from tonnage.cluster import time_limits
from tonnage.plan.resources.engine_memory import MIN_BLOCK, MIN_VOLUME_BLOCK
from tonnage.run.two_pass import sizing
from tonnage.run.two_pass.schedule import Schedule
from tonnage.simulate.division import Division, Machine
from tonnage.simulate.two_pass import input_splits, node_names

SIZES = (10, 30, 100, 300, 1_000, 3_000)
THREADS = 32_768  # Threads of a machine, by the kernel's default ``pid_max`` (proc(5))
PORTS = 60_999 - 32_768 + 1
"""Ports for connections to one address, by the kernel's default range (ip(7))."""
SOCKET_BYTES = 131_072 + 16_384
"""Of the kernel, for one that receives and one that sends, as they begin (tcp(7))."""
MTBF_SECONDS = 183 * 86_400.0
"""In a new cluster's first year each machine crashes at least twice (Dean, LADIS 2009)."""
HARM = 0.1
"""The limit of the driver's share of the sort's time, and of the probability of a node failure."""


@dataclass(frozen=True)
class Limit:
    """A quantity that depends on the size of the cluster, and its bound."""

    name: str
    value: float
    bound: float | None  # ``None``: unknown
    unit: str  # ``bytes``, ``seconds``, ``share`` or what is counted
    least: bool = False  # Whether the bound is a minimum
    means: str = ""  # The consequence of exceeding it

    @property
    def hit(self) -> bool:
        if self.bound is None:
            return False
        return self.value < self.bound if self.least else self.value > self.bound


@dataclass(frozen=True)
class ClusterLimits:
    nodes: int
    data_bytes: int
    bound_seconds: float
    limits: list[Limit]
    refused: str | None = None  # Why the core cannot divide its memory

    @property
    def hit(self) -> list[str]:
        return [each.name for each in self.limits if each.hit]


def cluster_limits(
    nodes: int,
    data_bytes: int,
    division: Division,
    network: float,
    bound_seconds: float,
    mtbf_seconds: float = MTBF_SECONDS,
    descriptors: int = DESCRIPTORS,
) -> ClusterLimits:
    """All limits of a cluster of this many nodes; ``network`` is bytes a second of each."""
    machine = division.machine
    links = machine.links(nodes)
    counted = [
        socket_limit(machine, nodes, descriptors),
        Limit("threads", 2 * links + 2 * machine.cores, THREADS, "threads", means="none start"),
        Limit(
            "ports", links / max(nodes - 1, 1), PORTS, "ports", means="a peer cannot be connected"
        ),
        Limit("kernel's buffers", links * SOCKET_BYTES, None, "bytes"),
        Limit("messages to the driver", nodes / time_limits.HEARTBEAT_SECONDS, None, "a second"),
        Limit("workers to start", nodes / time_limits.WORKER_START_SECONDS, None, "a second"),
        Limit(
            "node failure",
            -math.expm1(-nodes * bound_seconds / mtbf_seconds),
            HARM,
            "share",
            means="its data, and its remaining input, is read and sent again",
        ),
    ]
    share = -(-data_bytes // nodes)
    try:
        partitions = division.partitions(share, nodes)
        slot = division.slot_bytes(share, nodes)
        block = division.first_block_bytes(share, nodes)
    except core.UsageError as why:
        return ClusterLimits(nodes, data_bytes, bound_seconds, counted, str(why))
    cpu, message_bytes = _driver_cost(nodes, data_bytes, division, partitions)
    keys = division.keys_per_partition(nodes, partitions)
    largest = largest_partition(keys, partitions) * data_bytes / partitions
    return ClusterLimits(
        nodes,
        data_bytes,
        bound_seconds,
        [
            Limit("block", block, MIN_VOLUME_BLOCK, "bytes", True, "writes of pass one cost seeks"),
            Limit("least block", block, MIN_BLOCK, "bytes", True, "none shorter is planned"),
            Limit(
                "largest partition",
                largest,
                float(slot),
                "bytes",
                means="partitions above it are read and written a third time",
            ),
            *([Limit("sampled keys", keys, None, "a partition")] if math.isfinite(keys) else []),
            Limit(
                "driver",
                cpu + message_bytes * nodes / network,
                HARM * bound_seconds,
                "seconds",
                means="nodes wait for it",
            ),
            Limit("driver's processor", cpu, None, "seconds"),
            Limit("driver's messages of a round", message_bytes * nodes, None, "bytes"),
            *counted,
        ],
    )


def socket_limit(machine: Machine, nodes: int, descriptors: int) -> Limit:
    """Of a node's process, by its connections to all others."""
    needed = sockets(machine.links(nodes))
    return Limit("sockets", needed, descriptors, "sockets", means="no round can start")


def first_limit(rows: Sequence[ClusterLimits]) -> tuple[int, list[str]] | None:
    """The smallest cluster that hits a limit, and which."""
    for each in sorted(rows, key=lambda one: one.nodes):
        if each.refused:
            return each.nodes, ["memory"]
        if each.hit:
            return each.nodes, each.hit
    return None


def largest_partition(keys: float, partitions: int) -> float:
    """The ratio of the largest of this many partitions to the mean.

    Sizes follow Gamma(k) / k for k keys; the largest of P is about the quantile 1 - 1 / P.
    """
    if math.isinf(keys):
        return 1.0
    share = np.array([1 - 1 / max(partitions, 2)])
    return float(gamma_quantiles(keys, share)[0]) / keys


def _driver_cost(
    nodes: int, data_bytes: int, division: Division, partitions: int
) -> tuple[float, float]:
    """CPU seconds of a first round's schedule and messages; bytes of one message."""
    layout = division.machine.layout
    record, key = layout.record_bytes, layout.key_bytes
    called = node_names(nodes)
    splits = input_splits(called, data_bytes, record)
    began = time.process_time()
    schedule = Schedule(splits, partitions, dict.fromkeys(called, 1.0))
    each = schedule.next_round()
    if each is None:
        return time.process_time() - began, 0.0
    division.block_bytes(each, schedule)
    sizing.space_needed(each, schedule)
    deciding = time.process_time() - began
    # As `run.two_pass.driver` sends it to each node: where all partitions begin, and their owners.
    number = {node: place for place, node in enumerate(each.nodes)}
    mine = max(each.reads.values(), key=len)
    message = {
        "bounds": [{"key": f"{place:0{2 * key}x}", "after": False} for place in range(partitions)],
        "owners": [number[each.owners[place]] for place in range(partitions)],
        "mesh": {"endpoints": ["255.255.255.255:65535"] * nodes},
        "splits": [
            {"path": splits[one].path, "offset": splits[one].offset, "bytes": splits[one].bytes}
            for one in mine
        ],
    }
    began = time.process_time()
    size = len(pickle.dumps(message, protocol=5))  # As Ray does.
    telling = time.process_time() - began
    return deciding + telling * nodes, float(size)
