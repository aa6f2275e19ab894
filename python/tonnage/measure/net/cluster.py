"""The network between machines: Themis' NetBench on a fleet.

In each round machines come in a random order. Each sends to the next in it while nobody else
does, which is what a pair can carry; the first two also both ways at once. Each sends alone to
all others, and receives alone from all, as much as each takes: what its own link carries, whoever
its partners are. Then the first 2, 4, 8 .. and all of them send all to all over so many
connections a pair: what a shuffle gets, which ends with its slowest node.

A machine that is lost has its row; the others go on without it. What fails although all machines
answer is tried again; then whom more could not speak to than anybody else is given up. If that is
nobody, those that took part lack it, and their rows say so.
"""

from __future__ import annotations

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
from tonnage.cluster.ray_adapter import Cluster, WorkerLost
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
from tonnage.measure.net.cluster_worker import ENDING_SECONDS, NetworkAgent, TestPart, take_part
from tonnage.measure.net.endpoint_round import (
    RoundSpec,
    all_to_all,
    all_to_one,
    core_configs,
    one_to_all,
    warm_up,
)
from tonnage.measure.trial import repetition
from tonnage.measure.trial.repetition import RepetitionPlan

MEETING_SECONDS = 10.0
"""Within this all machines of a round have to be there."""
TRIES = 2
"""How often it is tried what fails although all machines answer."""
STARTING_SECONDS = 10.0
"""Within this an endpoint's process has started."""
PEER = re.compile(r"endpoint (\d+) \(")
"""What the core calls a peer."""
NOBODY_ELSE = "no other machine is there, and a network takes two"
MOST_ALONE = 16
"""So many pairs at most are measured in each round, and each machine alone if there are no more; of
more all links are told apart all at once."""
MOST_ALONE_BRIEFLY = 8
"""The same where it is to be brief."""


@dataclass(frozen=True)
class ClusterNetSettings:
    """How to measure."""

    connections: tuple[int, ...]
    """From each machine to each other, all to all."""
    sizes: tuple[int, ...] | None
    """How many machines, all to all; ``None`` for 2, 4, 8 .. and all."""
    block_bytes: int
    """What a connection is handed at a time."""
    seconds: float
    """That machines send for."""
    rounds: int
    seed: int
    brief: bool = False
    """Only what each link carries, and all machines all to all."""

    @property
    def rule(self) -> str:
        """When it ends."""
        return (
            f"rounds in which machines send for {self.seconds:g} s (the first "
            f"{warm_up(self.seconds):g} s are not counted): {repetition.stopping_rule(RepetitionPlan(self.rounds))}"
        )

    def sizes_of(self, nodes: int) -> list[int]:
        """How many of so many nodes send all to all."""
        if self.brief:
            return [nodes]
        usual = [2**power for power in range(1, nodes.bit_length()) if 2**power < nodes] + [nodes]
        return sorted({size for size in self.sizes or usual if 2 <= size <= nodes})


@dataclass(frozen=True)
class NetworkTest:
    """Something that machines are to do at once."""

    pattern: str
    nodes: tuple[str, ...]
    ways: tuple[tuple[str, ...], ...]
    """What is kept of each one's part."""
    spec: RoundSpec

    @property
    def key(self) -> tuple[Any, ...]:
        """Tells it from all else that is wanted; its trials tell it too."""
        round_ = self.spec
        return round_.number, self.pattern, self.nodes, round_.connections


def round_tests(
    number: int, order: Sequence[str], settings: ClusterNetSettings
) -> Iterator[NetworkTest]:
    """What is wanted in a round of machines in this order."""
    nodes, few = len(order), MOST_ALONE_BRIEFLY if settings.brief else MOST_ALONE
    none: tuple[str, ...] = ()

    def wanted(
        pattern: str,
        of: Sequence[str],
        ways: Sequence[tuple[str, ...]],
        sends_to: tuple[tuple[int, ...], ...],
        connections: int = 1,
    ) -> NetworkTest:
        block, seconds = settings.block_bytes, settings.seconds
        evenly = pattern not in (ALONE, UNEVENLY)
        together = RoundSpec(number, sends_to, connections, block, seconds, evenly)
        return NetworkTest(pattern, tuple(of), tuple(ways), together)

    if not settings.brief:
        for place in range(min(nodes, few)):
            pair = order[place], order[(place + 1) % nodes]
            yield wanted(PAIR, pair, [(SEND,), (RECEIVE,)], one_to_all(2))
        yield wanted(BOTH_WAYS, order[:2], [DIRECTIONS] * 2, all_to_all(2))
    if nodes > few:
        yield wanted(UNEVENLY, order, [DIRECTIONS] * nodes, all_to_all(nodes))
    for place in range(nodes if nodes <= few else 0):
        rotated = [*order[place:], *order[:place]]
        others = [none] * (nodes - 1)
        yield wanted(ALONE, rotated, [(SEND,), *others], one_to_all(nodes))
        yield wanted(ALONE, rotated, [(RECEIVE,), *others], all_to_one(nodes))
    for size in settings.sizes_of(nodes):
        for connections in settings.connections:
            name = f"{ALL_TO_ALL} of {size}, {connections} a pair"
            yield wanted(name, order[:size], [DIRECTIONS] * size, all_to_all(size), connections)


def measure_cluster_net(
    cluster: Cluster, out: Path, settings: ClusterNetSettings, on_rows: OnStatus, **more: Any
) -> MeasurementEvents:
    """As `measure_fleet`, of the network between machines; ``more`` is what else `Asked` takes.

    Raises:
        UsageError: Also if more machines are to send all to all than there are.
    """
    asked = _asked(settings, **more)
    there = min(asked.instances or len(cluster.machines), len(cluster.machines))
    if settings.sizes and max(settings.sizes) > there:
        raise core.UsageError(
            f"--sizes {max(settings.sizes)}: the fleet has {there} machines: give no more"
        )
    with measurement_run(cluster, out, asked, on_rows) as run:
        yield from run.ready(NetworkAgent)
        run.begin(run.left)
        shuffle = _ShuffleRun(run, settings)
        for number in range(settings.rounds):
            yield from shuffle.round(number)
        for member in run.left:
            member.late_seconds = shuffle.late.get(member.node)
            member.lacks = shuffle.lacking.get(member.node)
            run.give(member, None)
        while run.left:
            yield from run.hear(run.left)
        yield run.whole()


def _asked(settings: ClusterNetSettings, **more: Any) -> MeasurementRequest:
    """What is asked of a fleet for these settings; ``more`` is what they say nothing of."""
    told = dataclasses.asdict(settings)
    work = partial(take_part, settings=told, stopping_rule=settings.rule)
    # Until a part is given up by itself, which may be for a peer that moves nothing.
    pause = STARTING_SECONDS + MEETING_SECONDS + settings.seconds + ENDING_SECONDS
    return MeasurementRequest(
        kind=NET,
        work=lambda _: work,
        settings=told,
        pause_seconds=pause,
        late_seconds=math.inf,  # They meet before each thing that they do.
        in_step=True,
        **more,
    )


class _ShuffleRun:
    """The rounds of one run."""

    def __init__(self, run: MeasurementRun, settings: ClusterNetSettings) -> None:
        self._run, self._settings = run, settings
        self.late: dict[str, float] = {}
        """How much later than the first each began, of what began furthest apart."""
        self.lacking: dict[str, str] = {}
        """Why machines that are there could not do all."""
        self._have: dict[str, dict[Key, set[str]]] = {member.node: {} for member in run.left}
        """The attempts of which a machine has a trial on file, by what was done."""
        for member in run.left:
            for trial in run.trials(member):
                self._note(member.node, trial)
        self._addresses: dict[str, str] = {}
        self._types: dict[str, str] = {}
        self._blame: Counter[str] = Counter()
        self._parts = 0

    def round(self, number: int) -> Iterator[TrialDone | ClusterNode]:
        """One round: all that is wanted of the machines that are there."""
        failed: set[frozenset[str]] = set()
        while True:
            there = {each.node for each in self._run.left}
            if len(there) < 2:
                for member in self._run.left:
                    member.lacks = NOBODY_ELSE
                    yield self._run.close(member, member.lacks)
                return
            order = sorted(there, key=lambda node: self._place(number, node))
            for each in round_tests(number, order, self._settings):
                # Of what fails between some, all that they have a part in does.
                hopeless = any(some <= set(each.nodes) for some in failed)
                if not hopeless and not self._is_done(each):
                    yield from self._do(each)
                    if not self._is_done(each):
                        failed.add(frozenset(each.nodes))
                    if there != {each.node for each in self._run.left}:
                        break  # Without one of them other things are wanted.
            else:
                return

    def _place(self, number: int, node: str) -> tuple[float, str]:
        """Where a machine comes in a round; that another is lost does not change the order."""
        return random.Random(f"{self._settings.seed} {number} {node}").random(), node

    def _is_done(self, wanted: NetworkTest) -> bool:
        """Whether all trials that it is to give are there, also from an earlier command."""
        attempts = [
            self._have[node].get((*wanted.key, way), set())
            for node, ways in zip(wanted.nodes, wanted.ways, strict=True)
            for way in ways
        ]
        return bool(set.intersection(*attempts))

    def _note(self, node: str, trial: Trial) -> None:
        """Takes note of a trial that is on file."""
        assert trial.reading
        attempts = self._have[node].setdefault(_key(trial), set())
        attempts.add(trial.reading.details["attempt"])

    def _do(self, wanted: NetworkTest) -> Iterator[TrialDone | ClusterNode]:
        """Has machines do it; gives what came of it, and who is lost."""
        members = {each.node: each for each in self._run.left}
        taking = [members[node] for node in wanted.nodes]
        for _ in range(TRIES):
            yield from self._find_addresses(taking)
            if any(member.row for member in taking):
                return
            self._give(wanted, taking)
            waiting = taking
            while waiting := [each for each in waiting if not self._has_said(each)]:
                for heard in self._run.hear(waiting):
                    if isinstance(heard, TrialDone):
                        self._note(heard.node, heard.trial)
                    yield heard
            if any(member.row for member in taking):
                return
            said = {each.node: each.told.said[self._parts] for each in taking if each.told}
            if all(each.why is None for each in said.values()):
                self._note_skew(taking, said)
                return
            self._addresses.clear()
        yield from self._give_up(wanted, members, said)

    def _find_addresses(self, taking: Sequence[MeasuringNode]) -> Iterator[ClusterNode]:
        """Where each will listen."""
        asked = {
            each: each.ask("listen", each.machine.address)
            for each in taking
            if each.node not in self._addresses
        }
        for member, answer in self._run.answers(asked):
            if isinstance(answer, WorkerLost):
                yield self._run.close(member, str(answer), answer.error)
            else:
                host, port, self._types[member.node] = answer
                name = f"[{host}]" if ":" in host else host
                self._addresses[member.node] = f"{name}:{port}"

    def _give(self, wanted: NetworkTest, taking: Sequence[MeasuringNode]) -> None:
        """Gives each its part; the secret is new each time."""
        self._parts += 1
        addresses = [self._addresses[node] for node in wanted.nodes]
        configs = core_configs(addresses, wanted.spec, MEETING_SECONDS)
        types = {self._types[node] for node in wanted.nodes}
        attempt = secrets.token_hex(4)
        for endpoint, (member, config) in enumerate(zip(taking, configs, strict=True)):
            self._run.give(
                member,
                TestPart(
                    number=self._parts,
                    attempt=attempt,
                    pattern=wanted.pattern,
                    nodes=wanted.nodes,
                    endpoint=endpoint,
                    machine_types=tuple(sorted(types)),
                    ways=wanted.ways[endpoint],
                    spec=wanted.spec,
                    config=config,
                    patience_seconds=MEETING_SECONDS,
                ),
            )

    def _has_said(self, member: MeasuringNode) -> bool:
        """Whether a member has said how its part went, or never will."""
        return member.row is not None or bool(member.told and self._parts in member.told.said)

    def _note_skew(self, taking: Sequence[MeasuringNode], said: Mapping[str, RoundResult]) -> None:
        """How much later than the first each began, if never before they began so far apart."""
        began = {
            each.node: each.clock.ours(moment)
            for each in taking
            if each.clock and (moment := said[each.node].began) is not None
        }
        late = {node: moment - min(began.values()) for node, moment in began.items()}
        if max(late.values(), default=0.0) > max(self.late.values(), default=0.0):
            self.late = late

    def _give_up(
        self,
        wanted: NetworkTest,
        members: Mapping[str, MeasuringNode],
        said: Mapping[str, RoundResult],
    ) -> Iterator[ClusterNode]:
        """Gives up whom more could not speak to than anybody else; if nobody, all lack this."""
        whys = {node: each.why for node, each in said.items() if each.why is not None}
        peers = {node: PEER.search(why) for node, why in whys.items()}
        # Who names nobody has failed by itself, if it is the only one; else nobody knows.
        by_itself = [node for node, peer in peers.items() if not peer]
        reasons: dict[str, str] = {}
        for node, peer in peers.items():
            if peer or len(by_itself) == 1:
                blamed = wanted.nodes[int(peer[1])] if peer else node
                reasons[blamed] = f"{node}: {whys[node]}"
                self._blame[blamed] += 1
        ranked = [*self._blame.most_common(2), ("", 0), ("", 0)]
        (most, times), (_, next_times) = ranked[:2]
        if times > max(next_times, 1) and most in reasons:
            yield self._run.close(members[most], f"cannot be measured with: {reasons[most]}")
            return
        said_by = [f"{node}: {why}" for node, why in whys.items()]
        why = f"{wanted.pattern} failed: {formatting.listing(said_by)}"
        self.lacking |= dict.fromkeys(wanted.nodes, why)


Key = tuple[Any, ...]


def _key(trial: Trial) -> Key:
    """What a trial is of, as `Wanted.key` with its way."""
    assert trial.reading and trial.step
    details = trial.reading.details
    nodes, connections = tuple(details["node_names"]), details["connections_per_pair"]
    return trial.step.round, details["pattern"], nodes, connections, trial.step.operation
