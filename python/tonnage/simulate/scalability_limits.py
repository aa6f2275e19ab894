"""What breaks first as a fleet grows: what the real code asks of nodes and of its driver.

Sizes are the core's own division of memory; connections, threads and buffers are counted as its
mesh and stages make them (``net/mesh.rs``, ``passes.rs``: each endpoint dials every other one, a
thread a connection each way, a block in the hands of each that receives); what the driver does is
done here, with as many splits and partitions, and timed.
"""

from __future__ import annotations

import math
import pickle
import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tonnage.base import core
from tonnage.base.stats.distributions import gamma_quantiles
from tonnage.run.two_pass import sizing
from tonnage.run.two_pass.schedule import Schedule
from tonnage.simulate.cluster import Machine
from tonnage.simulate.sort import input_splits, keys_per_partition, node_names

SIZES = (10, 30, 100, 300, 1_000, 3_000)
"""Fleets that are tabulated."""
LONG_BLOCK, LEAST_BLOCK = 64 << 10, 16 << 10
"""Shorter blocks cost seeks; than the second no block is planned shorter (``plan.rs``)."""
DESCRIPTORS = 1024
"""Files and sockets that a process may have open, if nobody raised that (getrlimit(2))."""
THREADS = 32_768
"""Of a machine, by the kernel's usual ``pid_max`` (proc(5))."""
PORTS = 60_999 - 32_768 + 1
"""For connections to one address, by the kernel's usual range (ip(7))."""
SOCKET_BYTES = 131_072 + 16_384
"""Of the kernel, for one that receives and one that sends, as they begin (tcp(7))."""
ASKED_EVERY_SECONDS = 1.0
"""How long a node lets the driver wait for news: `fleet.crew.ASK_SECONDS`."""
READY_SECONDS = 60.0
"""Within which all agents have to start: `fleet.crew.READY_SECONDS`."""
MTBF_SECONDS = 183 * 86_400.0
"""Of one machine: in a new cluster's first year each crashes at least twice (Dean, LADIS 2009)."""
HARM = 0.1
"""A driver that takes more of the sort's time is a limit; so is a death that is more likely."""


@dataclass(frozen=True)
class Limit:
    """Something that grows with the fleet, and how far it can."""

    name: str
    value: float
    bound: float | None
    """``None``: it is told, and nobody knows how far it can grow."""
    unit: str
    """``bytes``, ``seconds``, ``share`` or what is counted."""
    least: bool = False
    """Whether the bound is the least that is good."""
    means: str = ""
    """What comes of it if it is hit."""

    @property
    def hit(self) -> bool:
        """Whether it is beyond its bound."""
        if self.bound is None:
            return False
        return self.value < self.bound if self.least else self.value > self.bound


@dataclass(frozen=True)
class ClusterLimits:
    """A fleet of one size."""

    nodes: int
    data_bytes: int
    bound_seconds: float
    """What no sort can be faster than."""
    limits: list[Limit]
    refused: str | None = None
    """Why the core refuses to divide its memory."""

    @property
    def hit(self) -> list[str]:
        """The limits that are hit."""
        return [each.name for each in self.limits if each.hit]


def cluster_limits(
    nodes: int,
    data_bytes: int,
    machine: Machine,
    network: float,
    bound_seconds: float,
    mtbf_seconds: float = MTBF_SECONDS,
    descriptors: int = DESCRIPTORS,
) -> ClusterLimits:
    """All limits of a fleet of so many nodes.

    Args:
        nodes: How many.
        data_bytes: Of all.
        machine: What each is to the driver.
        network: What a node, and the driver, sends in a second.
        bound_seconds: What no sort can be faster than.
        mtbf_seconds: Mean time between two failures of a machine.
        descriptors: What a process may have open.
    """
    links = (nodes - 1) * machine.connections
    counted = [
        Limit("sockets", 2 * links, descriptors, "sockets", means="no round can begin"),
        Limit("threads", 2 * links + 2 * machine.cores, THREADS, "threads", means="none start"),
        Limit("ports", machine.connections, PORTS, "ports", means="a peer cannot be dialled"),
        Limit("kernel's buffers", links * SOCKET_BYTES, None, "bytes"),
        Limit("messages to the driver", nodes / ASKED_EVERY_SECONDS, None, "a second"),
        Limit("agents to start", nodes / READY_SECONDS, None, "a second"),
        Limit(
            "a node dies",
            -math.expm1(-nodes * bound_seconds / mtbf_seconds),
            HARM,
            "share",
            means="what it held, and was to read, is read and sent again",
        ),
    ]
    share = -(-data_bytes // nodes)
    try:
        plan = sizing.plan(share, machine.cores, nodes, *machine.memory)
    except core.UsageError as why:
        return ClusterLimits(nodes, data_bytes, bound_seconds, counted, str(why))
    partitions = int(plan["partitions"]) * nodes
    cpu, told = _driving(nodes, data_bytes, machine, partitions)
    keys = keys_per_partition(nodes, partitions, machine.layout.record_bytes)
    largest = largest_partition(keys, partitions) * data_bytes / partitions
    block = int(plan["block_bytes"])
    return ClusterLimits(
        nodes,
        data_bytes,
        bound_seconds,
        [
            Limit("block", block, LONG_BLOCK, "bytes", True, "writes of pass one cost seeks"),
            Limit("least block", block, LEAST_BLOCK, "bytes", True, "none shorter is planned"),
            Limit(
                "largest partition",
                largest,
                float(plan["slot_bytes"]),
                "bytes",
                means="it is divided once more: read and written a third time",
            ),
            Limit("sampled keys", keys, None, "a partition"),
            Limit(
                "driver",
                cpu + told * nodes / network,
                HARM * bound_seconds,
                "seconds",
                means="nodes wait for it",
            ),
            Limit("driver's processor", cpu, None, "seconds"),
            Limit("driver's messages of a round", told * nodes, None, "bytes"),
            *counted,
        ],
    )


def first_limit(rows: Sequence[ClusterLimits]) -> tuple[int, list[str]] | None:
    """The smallest fleet that hits a limit, and which."""
    for each in sorted(rows, key=lambda one: one.nodes):
        if each.refused:
            return each.nodes, ["memory"]
        if each.hit:
            return each.nodes, each.hit
    return None


def largest_partition(keys: float, partitions: int) -> float:
    """The largest of so many partitions, over a middling one.

    Each is as Gamma(k) / k of k keys; of P of them the largest is about at the quantile 1 - 1 / P.
    """
    share = np.array([1 - 1 / max(partitions, 2)])
    return float(gamma_quantiles(keys, share)[0]) / keys


def _driving(nodes: int, data_bytes: int, machine: Machine, partitions: int) -> tuple[float, float]:
    """Seconds of the processor for a first round's schedule and messages; bytes of one message."""
    record, key = machine.layout.record_bytes, machine.layout.key_bytes
    called = node_names(nodes)
    splits = input_splits(called, data_bytes, record)
    workers = dict.fromkeys(called, machine.cores)
    began = time.process_time()
    schedule = Schedule(splits, partitions, dict.fromkeys(called, 1.0))
    each = schedule.next_round()
    if each is None:
        return time.process_time() - began, 0.0
    sizing.block_bytes(each, schedule, workers, *machine.memory)
    sizing.space_needed(each, schedule)
    deciding = time.process_time() - began
    # As `fleet.sorting` has it for each node: where all partitions begin, and who owns them.
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
    size = len(pickle.dumps(message, protocol=5))  # As Ray has it
    telling = time.process_time() - began
    return deciding + telling * nodes, float(size)
