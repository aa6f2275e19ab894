"""Has every machine measure, and hears of all of them until each has answered or is given up.

A machine is asked how far it is, again and again, one question at a time. One that does not answer
for as long as patience lasts, or answers but moves nothing for so long, is given up; one whose
process or machine dies is known at once. Either way what it had done by then is kept, its row says
why, and the others go on.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from tonnage.base import core
from tonnage.base.records import ClusterMeasurement, ClusterNode, Trial
from tonnage.base.records.discovery import TRIALS
from tonnage.base.records.environment import HOST, MACHINE_TYPE, PROVIDER
from tonnage.cluster import clock_sync, version_check
from tonnage.cluster.barrier import BarrierWait
from tonnage.cluster.clock_sync import Clock
from tonnage.cluster.ray_adapter import (
    Call,
    Cluster,
    Machine,
    RemoteWorker,
    WorkerLost,
    installed_here,
)
from tonnage.cluster.version_check import InstalledVersion
from tonnage.measure.cluster.measure_worker import MeasureTask, MeasureWorker, Told, Work
from tonnage.measure.cluster.store import ClusterMeasurementDir, open_measurement_dir

ASK_SECONDS = 1.0
"""So long a machine that is asked may wait for news."""
MEETING_SECONDS = 0.2
"""So long one may that waits for the others: what has it go on comes after that."""
READY_SECONDS = 60.0
"""A machine is ready within this, or within patience, if that is more: Ray starts a process there,
which loads what it needs."""
ANSWER_SECONDS = 10.0
"""Within this an answer that is there has come."""
CLEANING_SECONDS = 10.0
"""Within this a machine that is told to end has cleaned up, or is ended."""
LEAVING_SECONDS = 1.0
"""Within this agents have removed their files; those of one that has not go with the next."""
AGAIN_SECONDS = 0.1
LATE_SECONDS = 1.0
"""Later than this is late, unless it does not matter."""


@dataclass(frozen=True)
class MeasurementRequest:
    """What is asked of a fleet."""

    kind: str
    work: Callable[[str], Work]
    """What the node of this name does."""
    settings: Mapping[str, Any]
    """What is kept of it that is the same for all."""
    command: list[str]
    labels: Mapping[str, str]
    instances: int | None
    """How many nodes; ``None`` for all there are."""
    patience_seconds: float
    """How long a node may say nothing, or move nothing."""
    one_at_a_time: bool = False
    pause_seconds: float = 0.0
    """How long a node that is well moves nothing, since it waits for its time."""
    only: Collection[str] | None = None
    """Which nodes; ``None`` for any."""
    late_seconds: float = LATE_SECONDS
    """Who begins so much later than the others did not measure with them."""
    in_step: bool = False
    """Whether nodes do each trial with others, so that what one has not done all do again; who
    meets the others on its own is called by its name."""


class TrialDone(NamedTuple):
    """A trial that is done on a node."""

    node: str
    trial: Trial


class NodeStatus(NamedTuple):
    """How far a node is, to be shown."""

    node: str
    state: str
    trials: int
    done_bytes: int
    why: str | None
    waits: bool = False
    """Whether it moves nothing since others are to come."""


OnStatus = Callable[[Sequence[NodeStatus]], None]
MeasurementEvents = Generator[TrialDone | ClusterNode | ClusterMeasurement, None, None]
"""Each trial and each node when it is done, and at last what all come to."""


class MeasuringNode:
    """A machine on its way from being looked at to its row."""

    def __init__(self, machine: Machine) -> None:
        self.machine, self.node = machine, machine.name
        self.host: str | None = None
        self.actor: RemoteWorker | None = None
        self.clock: Clock | None = None
        self.call: Call | None = None
        self.heard_at = 0.0
        self.files = self.trials = 0
        """How many of its files are here, and how many of those are trials."""
        self.told: Told | None = None
        self.together = 0
        self.late_seconds: float | None = None
        self.met = 0
        self.lacks: str | None = None
        """Why it has not all that was asked for, although it ended well."""
        self.row: ClusterNode | None = None

    def has(self, files: Collection[str]) -> list[str]:
        """Counts files that are here now too; those that are trials, in order."""
        trials = sorted(name for name in files if Path(name).match(TRIALS))
        self.files += len(files)
        self.trials += len(trials)
        return trials

    def ask(self, method: str, *arguments: Any) -> Call:
        """Calls a method of its agent."""
        assert self.actor is not None
        return self.actor.ask(method, *arguments)

    @property
    def measures(self) -> bool:
        """Whether it began, and has not said that it ended."""
        return self.together > 0 and not (self.told and self.told.ended)

    @property
    def waits(self) -> BarrierWait | None:
        """Where it waits for the others, which have not met there yet."""
        waits = self.told.waits if self.told else None
        return waits if waits and waits.number > self.met else None

    @property
    def shown(self) -> NodeStatus:
        """How far it is."""
        told = self.told
        state = "measuring" if told else "ready" if self.clock else "starting"
        why = None
        if self.row:
            state, why = ("done" if self.row.ok else "lost"), self.row.why
        waits = told is not None and (told.waits is not None or not told.done_bytes)
        return NodeStatus(self.node, state, self.trials, told.done_bytes if told else 0, why, waits)


def measure_cluster(
    cluster: Cluster, out: Path, asked: MeasurementRequest, on_rows: OnStatus
) -> MeasurementEvents:
    """Has the machines of a fleet measure; gives what is heard of them.

    Args:
        cluster: Whose machines are the fleet.
        out: Where nodes' files are kept; what an earlier command left there goes on.
        asked: What to do.
        on_rows: Called now and then with how far all are.

    Raises:
        UsageError: There are fewer machines than asked for, or ``out`` holds something else.
        KeyboardInterrupt: Ctrl-C; machines have been told to end, and what came is kept.
    """
    with measurement_run(cluster, out, asked, on_rows) as run:
        yield from run.ready()
        groups = [[each] for each in run.left] if asked.one_at_a_time else [run.left]
        for group in groups:
            yield from run.measure([each for each in group if each.row is None])
        yield run.whole()


@contextmanager
def measurement_run(
    cluster: Cluster, out: Path, asked: MeasurementRequest, on_rows: OnStatus
) -> Iterator[MeasurementRun]:
    """A run on the machines that are left to measure; none of them is at work afterwards.

    Args:
        cluster: Whose machines are the fleet.
        out: As `measure_fleet`.
        asked: What to do.
        on_rows: As `measure_fleet`.
    """
    there = [each for each in cluster.machines if asked.only is None or each.name in asked.only]
    with open_measurement_dir(
        out,
        asked.kind,
        asked.settings,
        [machine.name for machine in there],
        command=asked.command,
        labels=asked.labels,
        one_at_a_time=asked.one_at_a_time,
    ) as keep:
        rows = keep.rows
        done = {node for node, row in rows.items() if row.ok}
        if asked.in_step and not done >= {machine.name for machine in there}:
            done = set()
        machines = [each for each in there if each.name not in done]
        if asked.instances is not None:
            count = len(done) + len(machines)
            if count < asked.instances:
                raise core.UsageError(
                    f"--nodes {asked.instances}: the fleet has {count} machines: add some, or "
                    "ask for fewer"
                )
            machines = machines[: max(asked.instances - len(done), 0)]
        keep.begin()
        begun = {node: row.host for node, row in rows.items() if row.measurement and row.host}
        run = MeasurementRun(
            cluster, keep, asked, [MeasuringNode(each) for each in machines], begun, on_rows
        )
        try:
            yield run
        finally:
            run.end()


def unique_host(node: str, hosts: Mapping[str, str], begun: Mapping[str, str]) -> str:
    """What a node's machine is called, by which machines are told apart wherever they are compared.

    Its host's name; with the node's, if another machine's host is called so too. Once it has begun
    it stays what it is, whoever else is there when a later command goes on.

    Args:
        node: Which one.
        hosts: What hosts are called now, by node.
        begun: What machines were called that earlier commands began on, by node.
    """
    host = hosts[node]
    apart = f"{host}/{node}"
    if begun.get(node) in (host, apart):
        return begun[node]
    others = [name for named in (hosts, begun) for each, name in named.items() if each != node]
    return apart if host in {name.partition("/")[0] for name in others} else host


class MeasurementRun:
    """One command's dealings with the machines that are left to measure."""

    def __init__(
        self,
        cluster: Cluster,
        keep: ClusterMeasurementDir,
        asked: MeasurementRequest,
        members: list[MeasuringNode],
        begun: Mapping[str, str],
        on_rows: OnStatus,
    ) -> None:
        self.cluster, self._keep, self._asked = cluster, keep, asked
        self.members, self._begun, self._on_rows = members, begun, on_rows

    @property
    def left(self) -> list[MeasuringNode]:
        """The members that have no row yet."""
        return [each for each in self.members if each.row is None]

    def ready(self, kind: type[MeasureWorker] = MeasureWorker) -> Iterator[ClusterNode]:
        """Has an agent of this kind on each machine that has what it needs, its task taken."""
        here, looks = installed_here(), {}
        for member in self.left:
            member.actor = self.cluster.place(member.machine, kind)
            looks[member] = member.actor.look()
        for member, answer in self.answers(looks):
            if isinstance(answer, WorkerLost):
                yield self.close(member, str(answer), answer.error)
                continue
            there = InstalledVersion(*answer)
            member.host = there.host
            if lacking := version_check.difference(here, there):
                yield self.close(member, lacking)
        hosts = {each.node: each.host for each in self.left if each.host}
        prepared = {}
        for member in self.left:
            assert member.actor is not None
            member.actor.become()
            labels = {**member.machine.labels, **self._asked.labels}
            if (called := unique_host(member.node, hosts, self._begun)) != member.host:
                labels[HOST] = called
            files = self._keep.files(member.node)
            member.has(files)
            name = member.node if self._asked.in_step else None
            task = MeasureTask(
                self._asked.work(member.node),
                self._asked.command,
                labels,
                files,
                str(self._keep.place(member.node)),
                name,
            )
            prepared[member] = member.ask("prepare", task)
        for member, answer in self.answers(prepared):
            if isinstance(answer, WorkerLost):
                yield self.close(member, str(answer), answer.error)
        for member in self.left:
            try:
                member.clock = clock_sync.read(partial(self._now, member))
            except TimeoutError:
                yield self.close(member, f"did not answer within {ANSWER_SECONDS:g} s")
            except WorkerLost as why:
                yield self.close(member, str(why), why.error)

    def measure(self, group: Sequence[MeasuringNode]) -> Iterator[TrialDone | ClusterNode]:
        """Has these begin at one moment, and hears of them until each has its row."""
        self.begin(group)
        while waiting := [each for each in group if each.row is None]:
            yield from self.hear(waiting)

    def begin(self, group: Sequence[MeasuringNode]) -> None:
        """Has these begin at one moment."""
        at = clock_sync.moment(each.clock for each in group if each.clock)
        for member in group:
            assert member.clock is not None
            member.ask("start", member.clock.at(at))
            member.together, member.heard_at = len(group), at

    def give(self, member: MeasuringNode, part: Any) -> None:
        """Gives a member its next part; None: there is none."""
        member.ask("do", part)
        member.heard_at = time.monotonic()  # It was not asked since its last one.

    def trials(self, member: MeasuringNode) -> list[Trial]:
        """What is on file of a member."""
        return self._keep.trials(member.node)

    def hear(self, waiting: Sequence[MeasuringNode]) -> Iterator[TrialDone | ClusterNode]:
        """What these have to tell, as soon as one of them has something, or nobody for a while."""
        for member in waiting:
            if member.call is None:
                seconds = MEETING_SECONDS if member.waits else ASK_SECONDS
                member.call = member.ask("tell", member.files, seconds)
        answered = self.cluster.wait([each.call for each in waiting], ASK_SECONDS)
        for member in waiting:
            yield from self._hear(member, member.call in answered)
        self._let_go([each for each in waiting if each.row is None])
        self._on_rows([each.shown for each in self.members])

    def whole(self) -> ClusterMeasurement:
        """Writes what all machines come to, those of earlier commands too."""
        return self._keep.close()

    def _let_go(self, group: Sequence[MeasuringNode]) -> None:
        """Has all go on that wait for each other, if all do."""
        if not group or not all(each.waits for each in group):
            return
        said = {each.node: each.waits.says for each in group if each.waits}
        at = clock_sync.moment(each.clock for each in group if each.clock) + MEETING_SECONDS
        for member in group:
            assert member.clock is not None and member.waits is not None
            member.ask("go", member.waits.number, member.clock.at(at), said)
            member.met = member.waits.number

    def end(self) -> None:
        """Has all that still measure end and clean up, and ends those that do not."""
        with suppress(KeyboardInterrupt):  # A second one: then they are ended at once.
            for member in self.left:
                self._stop(member)
            going = [each for each in self.members if each.measures]
            deadline = time.monotonic() + CLEANING_SECONDS
            while going and time.monotonic() < deadline:
                calls = {each: each.ask("tell", each.files, ASK_SECONDS) for each in going}
                self.cluster.wait(list(calls.values()), 2 * ASK_SECONDS, len(calls))
                going = [each for each in going if not self._is_over(calls[each])]
            leaving = [each.ask("leave") for each in self.members if each.actor]
            self.cluster.wait(leaving, LEAVING_SECONDS, len(leaving))
        for member in self.members:
            if member.actor:
                member.actor.kill()

    def _stop(self, member: MeasuringNode) -> None:
        if member.measures:
            member.ask("stop")

    def _hear(self, member: MeasuringNode, answered: bool) -> Iterator[TrialDone | ClusterNode]:
        """Takes what a member has answered, if it has; gives it up if it has not for too long."""
        patience = self._asked.patience_seconds
        told: Told | None = None
        if answered:
            call, member.call = member.call, None
            try:
                told = self.cluster.answer(call, ANSWER_SECONDS)
            except TimeoutError:
                # The question, or its answer, got lost on the way: it is asked again.
                time.sleep(AGAIN_SECONDS)
            except WorkerLost as why:
                yield self.close(member, str(why), why.error)
                return
        if told is None:
            if time.monotonic() - member.heard_at > patience + ASK_SECONDS:  # It may wait for news.
                yield self.close(member, f"hangs: it did not answer for {patience:g} s")
            return
        member.heard_at, member.told = time.monotonic(), told
        if member.late_seconds is None:
            member.late_seconds = told.began_late_seconds
        self._keep.take(member.node, told.files)
        for name in member.has(told.files):
            yield TrialDone(member.node, self._keep.trial(member.node, name))
        late = told.began_late_seconds or 0.0
        if told.ended:
            if told.why is None and member.together > 1 and late > self._asked.late_seconds:
                yield self.close(member, f"began {late:.1f} s later than the others")
            else:
                yield self.close(member, told.why or member.lacks, told.error)
        elif told.quiet_seconds > patience + self._asked.pause_seconds:
            yield self.close(member, f"hangs: it moved nothing for {told.quiet_seconds:.0f} s")

    def close(
        self, member: MeasuringNode, why: str | None, error: str | None = None
    ) -> ClusterNode:
        """Writes how it went on a machine: all well, or why not; then it is to end."""
        self._stop(member)
        told, labels = member.told, {**member.machine.labels, **self._asked.labels}
        row = ClusterNode(
            node=member.node,
            host=member.host,
            provider=labels.get(PROVIDER),
            machine_type=labels.get(MACHINE_TYPE),
            labels=labels,
            ok=why is None,
            why=why,
            error=error,
            faulty=why is not None and why != member.lacks,
            together=member.together,
            skew_seconds=member.late_seconds,
            clock_error_seconds=member.clock.error_seconds if member.clock else None,
            seconds=told.seconds if told else None,
        )
        member.row = self._keep.keep(row)
        self._on_rows([each.shown for each in self.members])
        return member.row

    def answers(self, calls: Mapping[MeasuringNode, Call]) -> Iterator[tuple[MeasuringNode, Any]]:
        """What each answered within `READY_SECONDS`, in the order of answers; or why not.

        Whoever asks more of a member that failed finds it with its row.
        """
        seconds = max(READY_SECONDS, self._asked.patience_seconds)
        deadline = time.monotonic() + seconds
        left = dict(calls)
        while left and time.monotonic() < deadline:
            done = self.cluster.wait(list(left.values()), ASK_SECONDS)
            for member in [each for each, call in left.items() if call in done]:
                call = left.pop(member)
                try:
                    yield member, self.cluster.answer(call, ANSWER_SECONDS)
                except TimeoutError:
                    yield member, WorkerLost(f"did not answer within {ANSWER_SECONDS:g} s")
                except WorkerLost as why:
                    yield member, why
            self._on_rows([each.shown for each in self.members])
        for member in left:
            yield member, WorkerLost(f"was not ready within {seconds:g} s")

    def _now(self, member: MeasuringNode) -> float:
        shown: float = self.cluster.answer(member.ask("clock"), ANSWER_SECONDS)
        return shown

    def _is_over(self, call: Call) -> bool:
        try:
            told: Told = self.cluster.answer(call, 0)
        except TimeoutError:
            return False
        except WorkerLost:
            return True
        return told.ended
