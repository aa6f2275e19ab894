"""Measure the network between the nodes of a cluster (Themis' NetBench).

In each round the nodes are in a random order. Each sends to the next one while nobody else sends:
the rate of a pair. The first two also send in both directions at once. Each node sends alone to all
others, and receives alone from all, without waiting for the slowest peer: the rate of its own link.
Then the first 2, 4, 8 ... and all nodes send all to all over several connections per pair: the rate
of a shuffle, which ends with its slowest node.

A lost node is recorded as such, and the others continue without it. A test that fails although all
nodes answer is tried again; then the node that most others blame is given up. If there is no such
node, the test is left out, and recorded as missing for the nodes that took part.
"""

import dataclasses
import math
import random
import re
import secrets
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from tonnage.base import core, formatting
from tonnage.base.records import ClusterNode, Trial
from tonnage.base.records.cluster_measurement import UNKNOWN_TYPE
from tonnage.base.records.network_rounds import (
    ALL_TO_ALL,
    ALONE,
    BOTH_WAYS,
    DIRECTIONS,
    NET,
    PAIR,
    RECEIVE,
    SEND,
    UNEVENLY,
)
from tonnage.cluster import time_limits
from tonnage.cluster.ray_adapter import Cluster
from tonnage.measure.cluster.driver import (
    MeasurementEvents,
    MeasurementRequest,
    MeasurementRun,
    MeasuringNode,
    OnStatus,
    TrialDone,
    measurement_run,
)
from tonnage.measure.cluster.measure_worker import RoundResult
from tonnage.measure.net.cluster_worker import (
    DESCRIBE,
    MEASURE_NETWORK,
    NetworkTask,
    NoMoreParts,
    RoundPart,
    take_part,
)
from tonnage.measure.net.endpoint_round import (
    RoundSpec,
    all_to_all,
    all_to_one,
    one_to_all,
    warm_up,
)
from tonnage.measure.trial import repetition
from tonnage.measure.trial.repetition import RepetitionPlan

ATTEMPTS = 2
"""How often a test is tried that fails although all nodes answer."""
PEER = re.compile(r"endpoint (\d+) \(")
"""How the core names a peer in errors."""
NO_PEER = "no other node is left, but a network needs two"
MAX_ALONE = 16
"""The most pairs measured in each round. Up to this many nodes, each link is measured alone; with
more nodes, all links at once."""
MAX_ALONE_BRIEFLY = 8


@dataclass(frozen=True)
class ClusterNetSettings:
    connections: tuple[int, ...]
    """From each node to each other, all to all."""
    sizes: tuple[int, ...] | None
    """Numbers of nodes, all to all; ``None`` for 2, 4, 8 ... and all."""
    block_bytes: int
    seconds: float
    rounds: int
    seed: int
    brief: bool = False
    """Only single links, and all nodes all to all."""

    @property
    def rule(self) -> str:
        stop = repetition.stopping_rule(RepetitionPlan(self.rounds))
        return (
            f"rounds in which nodes send for {self.seconds:g} s (the first "
            f"{warm_up(self.seconds):g} s are not counted): {stop}"
        )

    def sizes_of(self, nodes: int) -> list[int]:
        if self.brief:
            return [nodes]
        powers = [2**power for power in range(1, nodes.bit_length()) if 2**power < nodes] + [nodes]
        return sorted({size for size in self.sizes or powers if 2 <= size <= nodes})


@dataclass(frozen=True)
class NetworkTest:
    pattern: str
    nodes: tuple[str, ...]
    ways: tuple[tuple[str, ...], ...]
    """The directions to record, for each node."""
    spec: RoundSpec

    @property
    def key(self) -> tuple[Any, ...]:
        """Identifies the test; its trials contain the same."""
        return self.spec.number, self.pattern, self.nodes, self.spec.connections


def round_tests(
    number: int, order: Sequence[str], settings: ClusterNetSettings
) -> Iterator[NetworkTest]:
    nodes, few = len(order), MAX_ALONE_BRIEFLY if settings.brief else MAX_ALONE
    none: tuple[str, ...] = ()

    def test(
        pattern: str,
        members: Sequence[str],
        ways: Sequence[tuple[str, ...]],
        sends_to: tuple[tuple[int, ...], ...],
        connections: int = 1,
    ) -> NetworkTest:
        block, seconds = settings.block_bytes, settings.seconds
        evenly = pattern not in (ALONE, UNEVENLY)
        spec = RoundSpec(number, sends_to, connections, block, seconds, evenly)
        return NetworkTest(pattern, tuple(members), tuple(ways), spec)

    if not settings.brief:
        for place in range(min(nodes, few)):
            pair = order[place], order[(place + 1) % nodes]
            yield test(PAIR, pair, [(SEND,), (RECEIVE,)], one_to_all(2))
        yield test(BOTH_WAYS, order[:2], [DIRECTIONS] * 2, all_to_all(2))
    if nodes > few:
        yield test(UNEVENLY, order, [DIRECTIONS] * nodes, all_to_all(nodes))
    for place in range(nodes if nodes <= few else 0):
        rotated = [*order[place:], *order[:place]]
        others = [none] * (nodes - 1)
        yield test(ALONE, rotated, [(SEND,), *others], one_to_all(nodes))
        yield test(ALONE, rotated, [(RECEIVE,), *others], all_to_one(nodes))
    for size in settings.sizes_of(nodes):
        for connections in settings.connections:
            name = f"{ALL_TO_ALL} of {size}, {connections} a pair"
            yield test(name, order[:size], [DIRECTIONS] * size, all_to_all(size), connections)


def measure_cluster_net(
    cluster: Cluster, out: Path, settings: ClusterNetSettings, on_status: OnStatus, **more: Any
) -> MeasurementEvents:
    """Measure the network between nodes; `UsageError` if there are fewer than ``sizes`` need."""
    request = _request(settings, **more)
    available = min(request.nodes or len(cluster.machines), len(cluster.machines))
    if settings.sizes and max(settings.sizes) > available:
        raise core.UsageError(
            f"the cluster has only {available} nodes, fewer than the requested "
            f"{max(settings.sizes)}",
            setting="sizes",
        )
    with measurement_run(cluster, out, request, on_status) as run:
        yield from run.ready()
        types = run.pool.run_step(DESCRIBE, {node.node: None for node in run.remaining})
        run.begin(run.remaining)
        shuffle = _ShuffleRun(
            run, settings, {node: each.value.name for node, each in types.items() if each.value}
        )
        for number in range(settings.rounds):
            yield from shuffle.round(number)
        for node in run.remaining:
            node.late_seconds = shuffle.late.get(node.node)
            node.lacks = shuffle.lacking.get(node.node)
            run.pool.notify(node.node, NoMoreParts())
        while run.remaining:
            yield from run.events()
        yield run.close_measurement()


def _request(settings: ClusterNetSettings, **more: Any) -> MeasurementRequest:
    """The request for these settings; ``more`` are its other fields."""
    recorded = dataclasses.asdict(settings)
    work = partial(take_part, settings=recorded, stopping_rule=settings.rule)
    # Until a part times out by itself, perhaps because of a peer that sends nothing.
    pause = (
        time_limits.NETWORK_START_SECONDS
        + time_limits.NETWORK_MEETING_SECONDS
        + settings.seconds
        + time_limits.NETWORK_DRAIN_SECONDS
    )
    return MeasurementRequest(
        kind=NET,
        work=lambda _: work,
        settings=recorded,
        pause_seconds=pause,
        late_seconds=math.inf,  # They connect before each test.
        in_step=True,
        step=MEASURE_NETWORK,
        task=NetworkTask,
        **more,
    )


class _ShuffleRun:
    def __init__(
        self, run: MeasurementRun, settings: ClusterNetSettings, types: Mapping[str, str]
    ) -> None:
        self._run, self._settings = run, settings
        self.late: dict[str, float] = {}
        """How much later than the first each node began, in the test with the largest spread."""
        self.lacking: dict[str, str] = {}
        """Why nodes that are still there could not do all tests."""
        self._have: dict[str, dict[Key, set[str]]] = {member.node: {} for member in run.remaining}
        """The attempts of which a node has recorded trials, by test."""
        for member in run.remaining:
            for trial in run.trials(member):
                self._note(member.node, trial)
        self._addresses: dict[str, str] = {}
        self._types = types
        self._blame: Counter[str] = Counter()
        self._parts = 0

    def round(self, number: int) -> Iterator[TrialDone | ClusterNode]:
        failed: set[frozenset[str]] = set()
        while True:
            there = {each.node for each in self._run.remaining}
            if len(there) < 2:
                for member in self._run.remaining:
                    member.lacks = NO_PEER
                    yield self._run.close(member, member.lacks)
                return
            order = sorted(there, key=lambda node: self._place(number, node))
            for each in round_tests(number, order, self._settings):
                # A test that includes nodes between which another failed would fail, too.
                hopeless = any(some <= set(each.nodes) for some in failed)
                if not hopeless and not self._is_done(each):
                    yield from self._do(each)
                    if not self._is_done(each):
                        failed.add(frozenset(each.nodes))
                    if there != {each.node for each in self._run.remaining}:
                        break  # With fewer nodes the tests are others.
            else:
                return

    def _place(self, number: int, node: str) -> tuple[float, str]:
        """A node's place in a round: losing another node does not change the order."""
        return random.Random(f"{self._settings.seed} {number} {node}").random(), node

    def _is_done(self, test: NetworkTest) -> bool:
        """Whether all trials of a test are recorded, perhaps by an earlier command."""
        attempts = [
            self._have[node].get((*test.key, way), set())
            for node, ways in zip(test.nodes, test.ways, strict=True)
            for way in ways
        ]
        return bool(set.intersection(*attempts))

    def _note(self, node: str, trial: Trial) -> None:
        assert trial.reading
        attempts = self._have[node].setdefault(_key(trial), set())
        attempts.add(trial.reading.details["attempt"])

    def _do(self, test: NetworkTest) -> Iterator[TrialDone | ClusterNode]:
        members = {each.node: each for each in self._run.remaining}
        taking = [members[node] for node in test.nodes]
        for _ in range(ATTEMPTS):
            missing = [each.node for each in taking if each.node not in self._addresses]
            self._addresses |= self._run.pool.reserve_addresses(missing)
            if any(member.worker.lost for member in taking):
                yield from self._run.events()
                return
            self._give(test, taking)
            waiting = taking
            while waiting := [
                each for each in waiting if each.row is None and self._parts not in each.results
            ]:
                for event in self._run.events():
                    if isinstance(event, TrialDone):
                        self._note(event.node, event.trial)
                    yield event
            if any(member.row for member in taking):
                return
            results = {each.node: each.results[self._parts] for each in taking}
            if all(each.why is None for each in results.values()):
                self._note_skew(taking, results)
                return
            self._addresses.clear()
        yield from self._give_up(test, members, results)

    def _give(self, test: NetworkTest, taking: Sequence[MeasuringNode]) -> None:
        self._parts += 1
        attempt, secret = secrets.token_hex(4), secrets.token_hex(32)
        for endpoint, node in enumerate(taking):
            part = RoundPart(
                number=self._parts,
                attempt=attempt,
                pattern=test.pattern,
                nodes=test.nodes,
                endpoint=endpoint,
                machine_types=tuple(
                    sorted({self._types.get(node, UNKNOWN_TYPE) for node in test.nodes})
                ),
                ways=test.ways[endpoint],
                spec=test.spec,
                addresses=tuple(self._addresses[node] for node in test.nodes),
                secret=secret,
            )
            self._run.pool.notify(node.node, part)

    def _note_skew(self, taking: Sequence[MeasuringNode], said: Mapping[str, RoundResult]) -> None:
        began = {
            each.node: each.worker.clock.to_local(moment)
            for each in taking
            if each.worker.clock and (moment := said[each.node].began) is not None
        }
        late = {node: moment - min(began.values()) for node, moment in began.items()}
        if max(late.values(), default=0.0) > max(self.late.values(), default=0.0):
            self.late = late

    def _give_up(
        self,
        test: NetworkTest,
        members: Mapping[str, MeasuringNode],
        said: Mapping[str, RoundResult],
    ) -> Iterator[ClusterNode]:
        """Give up the node that most others blame; without one, note that all lack this test."""
        whys = {node: each.why for node, each in said.items() if each.why is not None}
        peers = {node: PEER.search(why) for node, why in whys.items()}
        # A node that blames no peer has failed by itself, if it is the only such node.
        by_itself = [node for node, peer in peers.items() if not peer]
        reasons: dict[str, str] = {}
        for node, peer in peers.items():
            if peer or len(by_itself) == 1:
                blamed = test.nodes[int(peer[1])] if peer else node
                reasons[blamed] = f"{node}: {whys[node]}"
                self._blame[blamed] += 1
        ranked = [*self._blame.most_common(2), ("", 0), ("", 0)]
        (most, times), (_, next_times) = ranked[:2]
        if times > max(next_times, 1) and most in reasons:
            yield self._run.close(
                members[most], f"the tests with this node failed: {reasons[most]}"
            )
            return
        said_by = [f"{node}: {why}" for node, why in whys.items()]
        why = f"{test.pattern} failed: {formatting.listing(said_by)}"
        self.lacking |= dict.fromkeys(test.nodes, why)


Key = tuple[Any, ...]


def _key(trial: Trial) -> Key:
    """The test of a trial, as `NetworkTest.key`, with its direction."""
    assert trial.reading and trial.step
    details = trial.reading.details
    nodes, connections = tuple(details["node_names"]), details["connections_per_pair"]
    return trial.step.round, details["pattern"], nodes, connections, trial.step.operation
