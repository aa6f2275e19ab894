"""Simulate a job of two passes: query the real schedule for the next step, and report the
simulated result.

Splits, partitions, owners, blocks and assignments are those of a real job (`division`,
`run.two_pass.schedule`). The partition of an input byte depends on its position only. So data that
is read again after a loss goes to the same partition, and all sizes add up to the byte. Sizes are
bytes of input: a MapReduce's map output is in proportion to them.
"""

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from tonnage.base import core
from tonnage.base.records.durability import Durability
from tonnage.base.records.job import Job
from tonnage.run.two_pass import sizing
from tonnage.run.two_pass.schedule import (
    Finished,
    InputLost,
    NoNodeLeft,
    Outcome,
    Round,
    Schedule,
    Split,
    Total,
)
from tonnage.simulate import events
from tonnage.simulate.cluster import SimulatedCluster, SimulationError
from tonnage.simulate.division import Division
from tonnage.simulate.flow import Array

Result = TypeVar("Result")


@dataclass(frozen=True)
class JobRequest:
    data_bytes: int
    durability: Durability = "none"
    map_share: float = 1.0  # Bytes that are shuffled, for each byte of input
    reduce_share: float = 1.0  # Bytes of output, for each that is shuffled
    input_copies: int | None = 1
    """The number of nodes that have each part of the input; ``None``: all, as in object storage."""
    deaths: Mapping[int, float] = field(default_factory=dict)
    """Failures by node, in seconds from the start."""
    even: bool = False  # Whether all partitions are equal, as with a perfect sample
    seed: int = 0

    @classmethod
    def of(cls, job: Job, data_bytes: int, **more: Any) -> "JobRequest":
        """A request for a job of two passes."""
        made, out = (float(job.settings.get(f"{name}_share", 1.0)) for name in ("map", "reduce"))
        return cls(data_bytes, job.durability, map_share=made, reduce_share=out, **more)


@dataclass(frozen=True)
class SimulatedStep:
    name: str
    seconds: float
    nodes: int
    splits: int
    partitions: int
    lost: list[str]  # Nodes that failed during this step; failures between two steps are in none
    read_bytes: float
    sent_bytes: float
    written_bytes: float


@dataclass(frozen=True)
class SimulatedJob:
    nodes: int
    seconds: float  # From when all nodes run
    steps: list[SimulatedStep]
    lost: list[str]  # Nodes that failed before the end, in the order of detection
    splits: int
    partitions: int
    block_bytes: int  # In the first round
    keys_per_partition: float | None  # ``None``: partitions are by hash, and equal
    repartitioned_bytes: int
    bytes_in: int  # Of the input, as readers reported
    bytes_out: int  # Of all finished partitions
    driver_cpu_seconds: float  # CPU time of schedule and sizing in this run

    def seconds_of(self, name: str) -> float:
        return sum(step.seconds for step in self.steps if step.name == name)

    @property
    def carried_bytes(self) -> float:
        return sum(each.read_bytes + each.sent_bytes + each.written_bytes for each in self.steps)


def simulate(cluster: SimulatedCluster, division: Division, request: JobRequest) -> SimulatedJob:
    """Simulate a job; a `SimulationError` if too much is lost."""
    return _Simulation(cluster, division, request).run()


def node_names(nodes: int) -> list[str]:
    width = len(str(nodes - 1))
    return [f"node-{number:0{width}}" for number in range(nodes)]


def input_splits(
    nodes: Sequence[str], data_bytes: int, record_bytes: int, copies: int | None = 1
) -> list[Split]:
    """The splits of a file on each node, with copies on the next nodes; ``None``: on all."""
    if copies is not None and not 1 <= copies <= len(nodes):
        raise core.UsageError(
            f"must be from 1 to {len(nodes)} (the number of nodes)", setting="input_copies"
        )
    each, left = divmod(data_bytes // record_bytes, len(nodes))
    sizes = [(each + (number < left)) * record_bytes for number in range(len(nodes))]
    length = sizing.stride(sum(sizes), len(nodes), record_bytes)
    everybody = tuple(sorted(nodes))
    holders = [
        everybody
        if copies is None
        else tuple(sorted(nodes[(number + more) % len(nodes)] for more in range(copies)))
        for number in range(len(nodes))
    ]
    return [
        Split(f"/input/{number}", offset, min(length, size - offset), holders[number])
        for number, size in enumerate(sizes)
        for offset in range(0, size, length)
    ]


def draw_deaths(nodes: int, count: int, within_seconds: float, seed: int) -> dict[int, float]:
    generator = np.random.default_rng([seed, *b"deaths"])
    which = generator.choice(nodes, count, replace=False)
    moments = generator.uniform(0, within_seconds, count)
    return dict(zip(which.tolist(), moments.tolist(), strict=True))


class _Simulation:
    def __init__(self, cluster: SimulatedCluster, division: Division, request: JobRequest) -> None:
        self._cluster, self._division, self._request = cluster, division, request
        self._credits = events.Credits(cluster)
        self._cpu, self._now = 0.0, cluster.outside_seconds
        self._names = node_names(cluster.nodes)
        self._number = {name: number for number, name in enumerate(self._names)}
        record_bytes = division.machine.layout.record_bytes
        splits = input_splits(self._names, request.data_bytes, record_bytes, request.input_copies)
        share = -(-request.data_bytes // cluster.nodes)
        partitions = self._driver(lambda: division.partitions(share, cluster.nodes))
        self._keys = division.keys_per_partition(cluster.nodes, partitions)
        self._ends = self._partition_ends(partitions)
        self._begins = np.cumsum([0, *(split.bytes for split in splits)])
        self._schedule = self._driver(
            lambda: Schedule(splits, partitions, dict.fromkeys(self._names, 1.0))
        )
        self._slot = division.slot_bytes(share, cluster.nodes)
        self._steps: list[SimulatedStep] = []
        self._lost: list[str] = []
        self._blocks = self._repartitioned = 0
        self._deaths = dict(request.deaths)
        self._copy_at: dict[int, str] = {}

    def run(self) -> SimulatedJob:
        schedule = self._schedule
        try:
            while True:
                while each := self._driver(schedule.next_round):
                    self._round(each)
                if not (left := self._driver(schedule.to_sort)):
                    break
                self._pass_two(left)
                self._copy_output()
        except (InputLost, NoNodeLeft) as why:
            raise SimulationError(f"the job fails after {self._now:.0f} s: {why}") from why
        return SimulatedJob(
            nodes=self._cluster.nodes,
            seconds=self._now,
            steps=self._steps,
            lost=self._lost,
            splits=len(schedule.splits),
            partitions=schedule.partitions,
            block_bytes=self._blocks,
            keys_per_partition=self._keys if math.isfinite(self._keys) else None,
            repartitioned_bytes=self._repartitioned,
            bytes_in=schedule.read.bytes,
            bytes_out=schedule.written.bytes,
            driver_cpu_seconds=self._cpu,
        )

    def _driver(self, work: Callable[[], Result]) -> Result:
        """Do work of the driver, and count its CPU time."""
        began = time.process_time()
        done = work()
        self._cpu += time.process_time() - began
        return done

    def _partition_ends(self, partitions: int) -> Array:
        sizes = np.ones(partitions)
        if not self._request.even and math.isfinite(self._keys):
            generator = np.random.default_rng([self._request.seed, *b"partitions"])
            sizes = generator.gamma(self._keys, size=partitions)
        ends = np.cumsum(sizes)
        return np.asarray(ends / ends[-1])

    # Pass one.

    def _round(self, each: Round) -> None:
        schedule = self._schedule
        if self._lose_dead():
            return  # Failures are detected before a round starts.
        blocks = self._driver(lambda: self._division.block_bytes(each, schedule))
        self._driver(lambda: sizing.space_needed(each, schedule))
        self._blocks = self._blocks or blocks
        reads, shares = np.zeros(self._cluster.nodes), np.zeros(self._cluster.nodes)
        for node, numbers in each.reads.items():
            reads[self._number[node]] = sum(schedule.splits[one].bytes for one in numbers)
        places = np.fromiter(each.owners, dtype=np.int64, count=len(each.owners))
        owners = np.array([self._number[each.owners[place]] for place in places.tolist()], int)
        sizes = self._ends - np.concatenate([[0.0], self._ends[:-1]])
        np.add.at(shares, owners, sizes[places])
        open_bytes = self._division.open_bytes(len(each.owners), blocks)
        held = np.full(self._cluster.nodes, open_bytes / 2)
        deaths = self._deaths_from_now()
        result = events.pass_one(self._cluster, self._credits, reads, shares, held, deaths)
        taken = [number for node in each.nodes if result.alive[number := self._number[node]]]
        lost = tuple(node for node in each.reads if not result.complete[self._number[node]])
        complete = [one for node in each.reads if node not in lost for one in each.reads[node]]
        size_of = dict(zip(places.tolist(), self._sizes(complete, places).tolist(), strict=True))
        of_owner: dict[int, dict[int, int]] = {number: {} for number in taken}
        for place, owner in zip(places.tolist(), owners.tolist(), strict=True):
            if owner in of_owner:
                of_owner[owner][place] = size_of[place]
        outcomes = {
            self._names[number]: Outcome(
                Total(bytes=int(reads[number])),
                tuple(node for node in lost if node != self._names[number]),
                of_owner[number],
            )
            for number in taken
        }
        self._end("pass_one", result, sum(map(len, each.reads.values())), len(each.owners))
        judged = self._driver(lambda: schedule.round_ended(each, outcomes))
        assert not judged  # No healthy node is unreachable.
        self._lose_dead()

    def _sizes(self, splits: Sequence[int], places: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        sizes = np.zeros(len(places), dtype=np.int64)
        ends = np.concatenate([[0.0], self._ends])
        numbers = np.sort(np.asarray(splits, dtype=np.int64))
        for run in np.split(numbers, np.flatnonzero(np.diff(numbers) > 1) + 1):
            if len(run):
                for at, sign in ((run[-1] + 1, 1), (run[0], -1)):
                    below = np.floor(ends * float(self._begins[at])).astype(np.int64)
                    sizes += sign * (below[places + 1] - below[places])
        return sizes

    # Pass two.

    def _pass_two(self, left: Mapping[str, Sequence[int]]) -> None:
        schedule, nodes = self._schedule, self._cluster.nodes
        if self._lose_dead():
            return
        sizes, again, first = np.zeros(nodes), np.zeros(nodes), np.zeros(nodes)
        for node, places in left.items():
            number, received = self._number[node], [schedule.received[place] for place in places]
            sizes[number] = sum(received)
            again[number] = sum(size for size in received if size > self._slot)
            first[number] = sum(received) / len(received)
        replicated = self._request.durability == "replicated"
        copies = replicated and self._cluster.copying is None
        ended = events.pass_two(
            self._cluster, self._credits, sizes, again, first, copies, self._deaths_from_now()
        )
        self._repartitioned += int(again.sum())
        living = [name for name, alive in zip(self._names, ended.alive, strict=True) if alive]
        for node, places in left.items():
            number, done = self._number[node], 0
            for place in places:
                done += schedule.received[place]
                if ended.complete[number] or done <= ended.done[number]:
                    files = [Finished(f"part-{place}", Total(bytes=schedule.received[place]))]
                    schedule.partition_finished(place, files)
                    if copies:
                        after = [name for name in living if name > node] or living
                        self._copy_at[place] = after[0]
        self._end("pass_two", ended, 0, sum(map(len, left.values())))
        self._lose_dead()

    def _copy_output(self) -> None:
        """Copy what has no copy yet, where copies are not made as the output is written."""
        schedule = self._schedule
        if self._cluster.copying is None or self._lose_dead():
            return
        sizes = np.zeros(self._cluster.nodes)
        lacking = [place for place in schedule.finished if place not in self._copy_at]
        for place in lacking:
            sizes[self._number[schedule.owner[place]]] += schedule.received[place]
        ended = events.copy_output(self._cluster, self._credits, sizes, self._deaths_from_now())
        living = [name for name, alive in zip(self._names, ended.alive, strict=True) if alive]
        for place in lacking:
            node = schedule.owner[place]
            if ended.complete[self._number[node]]:
                self._copy_at[place] = next((name for name in living if name > node), living[0])
        self._end("copy", ended, 0, len(lacking))
        self._lose_dead()

    # Losses.

    def _deaths_from_now(self) -> dict[int, float]:
        return {node: at - self._now for node, at in self._deaths.items()} | {
            node: 0.0 for name, node in self._number.items() if name not in self._schedule.keepers
        }

    def _end(self, name: str, ended: events.PassResult, splits: int, partitions: int) -> None:
        died = [
            node
            for node, alive in zip(self._names, ended.alive, strict=True)
            if not alive and node in self._schedule.keepers
        ]
        # What a phase takes however many nodes there are, it takes once.
        first = all(step.name != name for step in self._steps)
        fixed = dict(zip(("pass_one", "pass_two"), self._cluster.fixed_seconds, strict=True))
        seconds = ended.seconds + (fixed.get(name, 0.0) if first else 0.0)
        out = self._request.map_share * self._request.reduce_share
        read_share, written_share = {
            "pass_one": (1.0, self._request.map_share),
            "pass_two": (self._request.map_share, out),
        }.get(name, (out, out))
        sent_share = self._request.map_share if name == "pass_one" else out
        self._steps.append(
            SimulatedStep(
                name=name,
                seconds=seconds,
                nodes=len(self._schedule.keepers),
                splits=splits,
                partitions=partitions,
                lost=died,
                read_bytes=ended.read_bytes * read_share,
                sent_bytes=ended.sent_bytes * sent_share,
                written_bytes=ended.written_bytes * written_share,
            )
        )
        self._now += seconds

    def _lose_dead(self) -> bool:
        """Report nodes that have failed by now as lost; return whether there are new ones."""
        schedule = self._schedule
        dead = [self._names[node] for node, at in self._deaths.items() if at <= self._now]
        new = [node for node in dead if node in schedule.keepers]
        self._lost += new
        # Also those lost before: the newly lost may have had the last copies of theirs.
        for node in [*new, *(set(dead) - set(new))] if new else []:
            self._driver(partial(schedule.lose, node, keeps=self._replicated(node, dead)))
        return bool(new)

    def _replicated(self, node: str, dead: Sequence[str]) -> set[int]:
        """The finished partitions of a node of which a living node has a copy."""
        return {
            place
            for place in self._schedule.finished
            if self._schedule.owner[place] == node and self._copy_at.get(place, node) not in dead
        }
