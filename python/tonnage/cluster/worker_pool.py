"""The agents of a job: has them do steps together, hears how far they are, and ends them.

A step is done when every agent that was asked has come to its end, or is gone: its process or its
machine died, it does not answer, or it hangs. Who waits for a peer that hangs moves nothing either,
and the network gives the peer up within patience; so only if nobody moves anything for twice as
long does somebody hang: the first of them that fell silent. The others get as long again. Who asks
an object store for something small moves nothing until it is answered, or has tried so often that
it says itself that it failed: that it answers is enough.

Ray takes its time to find that a machine is gone, but its peers see at once that its connections
are broken: who is silent and so accused is not waited for.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from tonnage.base import core
from tonnage.cluster import version_check
from tonnage.cluster.ray_adapter import RemoteWorker, Call, Cluster, WorkerLost, Machine, installed_here
from tonnage.cluster.step_worker import StepResult, Part, StepWorker, Heartbeat
from tonnage.cluster.version_check import InstalledVersion
from tonnage.run.two_pass.output import object_store

ASK_SECONDS = 1.0
"""So long an agent that is asked may wait for news."""
READY_SECONDS = 60.0
"""An agent is ready within this, or within patience, if that is more."""
ANSWER_SECONDS = 10.0
"""Within this an answer that is there has come."""
SLOWEST_BYTES_PER_SECOND = 10e6
"""An answer that has bytes is waited for longer, as if a network carried no more than this."""
ACCUSED_SECONDS = 3.0
"""So long one may say nothing, at most, whose connections others have found broken."""
CLEANING_SECONDS = 10.0
"""Within this an agent that is told to end has cleaned up, or is ended."""
AGAIN_SECONDS = 0.1
TRIES = 3
"""How often a step is asked for again that an agent knows nothing of."""

LOST = "gone"
"""The kind of an end that an agent did not tell: there is none, or none that answers."""

OnTold = Callable[[str, Heartbeat], None]
Accuses = Callable[[StepResult], Collection[str]]
"""Names those with whom a node that has come to an end could not exchange data."""


class WorkerHandle:
    """A machine with its agent."""

    def __init__(self, machine: Machine) -> None:
        self.machine, self.node = machine, machine.name
        self.actor: RemoteWorker | None = None
        self.call: Call | None = None
        self.heard_at = 0.0
        """When it last had answered, or was asked again."""
        self.known = 0
        """How many of the files that its step has finished are known here."""
        self.told: Heartbeat | None = None
        self.busy = False
        """Whether it does a step of which the end is not known."""
        self.begun: tuple[int, str, Any] | None = None
        """The step that it was last asked for, which may have got lost on the way."""
        self.asked_again = 0
        self.gone: str | None = None
        """Why it is not asked any more."""

    def ask(self, method: str, *arguments: Any) -> Call:
        """Calls a method of its agent."""
        assert self.actor is not None
        return self.actor.ask(method, *arguments)

    def listen(self) -> None:
        """Asks how far it is: from now on it owes an answer."""
        self.call = self.ask("tell", self.known, ASK_SECONDS)
        self.heard_at = time.monotonic()


class WorkerPool:
    """The agents; a context manager, after which none of them is at work.

    Args:
        cluster: Whose machines they are on.
        machines: Which of them.
        patience_seconds: How long one may say nothing; twice as long it may move nothing.
        kind: What they are.
    """

    def __init__(
        self,
        cluster: Cluster,
        machines: Sequence[Machine],
        patience_seconds: float,
        kind: type[StepWorker] = StepWorker,
    ) -> None:
        self._cluster, self._patience, self._kind = cluster, patience_seconds, kind
        self.workers = {machine.name: WorkerHandle(machine) for machine in machines}
        self._step = 0
        self._moves = True
        """Whether who does the step and moves nothing hangs."""

    def __enter__(self) -> WorkerPool:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    @property
    def nodes(self) -> list[str]:
        """Who is there, in order."""
        return sorted(node for node, each in self.workers.items() if each.gone is None)

    @property
    def labels(self) -> dict[str, dict[str, str]]:
        """Those of each machine, gone or not, as its cluster has them."""
        return {node: dict(each.machine.labels) for node, each in self.workers.items()}

    def ready(self, place: Callable[[str], Part]) -> None:
        """Has an agent, in its place, on each machine that has what it needs.

        Args:
            place: The place of a node.
        """
        here, looks = installed_here(), {}
        for member in self._left:
            member.actor = self._cluster.place(member.machine, self._kind)
            looks[member.node] = member.actor.look()
        for member, answer in self._answers(looks):
            if lacking := version_check.difference(here, InstalledVersion(*answer)):
                self.lose(member.node, lacking)
        self._settle(self._left, place)

    def restart(self, nodes: Iterable[str], place: Callable[[str], Part]) -> list[str]:
        """Has a new agent on each of these machines, whose own is gone; gives those that have one.

        Args:
            nodes: Which.
            place: The place of a node.
        """
        renewed = [WorkerHandle(self.workers[node].machine) for node in nodes]
        self.workers |= {member.node: member for member in renewed}
        self._settle(renewed, place)
        return [member.node for member in renewed if member.gone is None]

    def _settle(self, workers: Sequence[WorkerHandle], place: Callable[[str], Part]) -> None:
        for member in workers:
            member.actor = member.actor or self._cluster.place(member.machine, self._kind)
            member.actor.become()
        taken = {each.node: each.ask("take", place(each.node)) for each in workers}
        for _ in self._answers(taken):
            pass

    def reserve_addresses(self, nodes: Sequence[str]) -> dict[str, str]:
        """A free address on each of these nodes; those that do not tell are gone."""
        there = set(self.nodes).intersection(nodes)
        return self.ask("listen", {node: [self.workers[node].machine.address] for node in there})

    def ask(
        self, method: str, arguments: Mapping[str, Sequence[Any]], bytes_: int = 0
    ) -> dict[str, Any]:
        """What a method of these nodes' agents answers; those that do not answer are gone.

        Args:
            method: Which; no step is under way.
            arguments: Of each node.
            bytes_: About how many are on their way to a node, or from it.
        """
        calls = {node: self.workers[node].ask(method, *of) for node, of in arguments.items()}
        return {member.node: answer for member, answer in self._answers(calls, bytes_)}

    def hand(
        self,
        givers: Mapping[str, str],
        gives: str,
        takes: str,
        arguments: Sequence[Any],
        bytes_: int,
    ) -> None:
        """Has nodes take what others give, which goes from there to here, not by this process.

        Of two of which one is gone the other one is not: it took nothing, or gave in vain.

        Args:
            givers: Who gives, of each node that takes.
            gives: The method of a giver's agent.
            takes: That of a taker's, which gets what the giver's answers, after the arguments.
            arguments: Of both.
            bytes_: About how many are on their way to a node.
        """
        calls = {
            node: self.workers[node].ask(
                takes, *arguments, self.workers[giver].ask(gives, *arguments)
            )
            for node, giver in givers.items()
        }
        failed: dict[str, str] = {}
        for _ in self._answers(calls, bytes_, failed.__setitem__):
            pass
        # Givers first: a taker waits for one that hangs, until that is ended.
        for nodes in ([givers[node] for node in failed], [*failed]):
            self.ask("there", {node: [] for node in nodes})
        for node, why in failed.items():
            if {node, givers[node]} <= {*self.nodes}:
                self.lose(givers[node], f"did not give what it had: {why}")

    def run_step(
        self,
        step: str,
        asked: Mapping[str, Any],
        on_told: OnTold = lambda *_: None,
        accuses: Accuses = lambda _: (),
    ) -> dict[str, StepResult]:
        """Has each of these nodes do a step; gives how it ended on each.

        Args:
            step: Which of `site.STEPS`.
            asked: What each node is given for it.
            on_told: Called with how far a node is, and with what it has finished since.
            accuses: Whom a node that has come to an end has lost.
        """
        self._step += 1
        self._moves = step not in object_store.STEPS
        ended: dict[str, StepResult] = {}
        doing = []
        for node in sorted(asked):
            member = self.workers.get(node)
            if member is None or member.gone is not None:
                why = "is not in the cluster" if member is None else member.gone
                ended[node] = StepResult(kind=LOST, reason=why or "")
                continue
            member.begun, member.asked_again = (self._step, step, asked[node]), 0
            member.ask("begin", *member.begun)
            member.told, member.known, member.busy = None, 0, True
            doing.append(member)
        for member in doing:
            member.listen()
        patient_until = 0.0
        accused: set[str] = set()
        while doing:
            heard_until = self._hear(doing, on_told)
            patient_until = self._judge(doing, accused, heard_until, patient_until)
            for member in list(doing):
                if member.gone is not None:
                    ended[member.node] = StepResult(kind=LOST, reason=member.gone)
                elif member.told and member.told.result:
                    ended[member.node] = member.told.result
                    accused.update(accuses(member.told.result))
                else:
                    continue
                doing.remove(member)
        return ended

    def lose(self, node: str, why: str) -> None:
        """Ends a node's agent, and asks it no more."""
        member = self.workers[node]
        if member.gone is None:
            member.gone = why
            if member.actor:
                member.actor.kill()

    def stop(self) -> None:
        """Has all end what they do; after it they only clean up."""
        for member in self._left:
            if member.actor:
                member.ask("stop")

    def halt(self, node: str) -> None:
        """Has a node end its step early; it is there for others afterwards."""
        member = self.workers[node]
        if member.gone is None and member.actor:
            member.ask("halt", self._step)

    def end(self) -> None:
        """Has all end and clean up; who has not within `CLEANING_SECONDS` is ended."""
        there = [each for each in self._left if each.actor]
        with suppress(KeyboardInterrupt):  # A second one: then they are ended at once.
            self.stop()
            going = [each for each in there if each.busy]
            deadline = time.monotonic() + CLEANING_SECONDS
            while going and time.monotonic() < deadline:
                self._hear(going, lambda *_: None)
                going = [each for each in going if each.gone is None and each.busy]
        for member in there:
            if member.actor:
                member.actor.kill()

    @property
    def _left(self) -> list[WorkerHandle]:
        return [each for each in self.workers.values() if each.gone is None]

    def _hear(self, doing: Sequence[WorkerHandle], on_told: OnTold) -> float:
        """What these have to tell, as soon as one of them has something, or nobody for a while.

        Gives until when was listened: what is done with the answers takes its time, too, and who
        answers meanwhile is not silent.
        """
        for member in doing:
            if member.call is None:  # The last one got lost on the way.
                member.call = member.ask("tell", member.known, ASK_SECONDS)
        answered = {*self._cluster.wait([each.call for each in doing], ASK_SECONDS)}
        until = time.monotonic()
        for member in doing:
            if member.call not in answered:
                continue
            call, member.call = member.call, None
            try:
                told: Heartbeat = self._cluster.answer(call, ANSWER_SECONDS)
            except TimeoutError:
                time.sleep(AGAIN_SECONDS)
                continue
            except WorkerLost as why:
                self.lose(member.node, str(why))
                continue
            member.heard_at = until
            if told.number == self._step:
                member.told, member.busy = told, told.result is None
                member.known += len(told.news)
                on_told(member.node, told)
            elif member.begun:
                member.asked_again += 1
                if member.asked_again > TRIES:
                    self.lose(member.node, "does not begin what it is asked for")
                else:
                    member.ask("begin", *member.begun)
            if member.gone is None and member.busy:
                member.listen()
        return until

    def _judge(
        self,
        doing: Sequence[WorkerHandle],
        accused: Collection[str],
        now: float,
        patient_until: float,
    ) -> float:
        """Gives up who says nothing, or hangs; gives until when nobody else is said to hang."""
        silent: list[tuple[float, WorkerHandle]] = []
        for member in doing:
            if member.gone is not None:
                continue
            patience = self._patience
            if member.node in accused:
                patience = min(patience, ACCUSED_SECONDS)
            if now - member.heard_at > patience + ASK_SECONDS:  # It may wait for news.
                self.lose(member.node, f"hangs: it did not answer for {patience:g} s")
                patient_until = now + 2 * self._patience
            elif self._moves and member.told and not member.told.result:
                quiet = member.told.idle_seconds + now - member.heard_at
                silent.append((quiet, member))
        # Who waits for one that is at work is quiet, too: only if all are does somebody hang.
        if silent and now > patient_until and min(each[0] for each in silent) > 2 * self._patience:
            quiet, member = max(silent, key=lambda each: each[0])
            self.lose(member.node, f"hangs: it moved nothing for {quiet:.0f} s")
            patient_until = now + 2 * self._patience
        return patient_until

    def _answers(
        self,
        calls: Mapping[str, Call],
        bytes_: int = 0,
        on_lost: Callable[[str, str], None] | None = None,
    ) -> Iterator[tuple[WorkerHandle, Any]]:
        """What each answered; who did not is gone, or whatever else is to become of it."""
        lose, longer = on_lost or self.lose, bytes_ / SLOWEST_BYTES_PER_SECOND
        seconds = max(READY_SECONDS, self._patience) + longer
        deadline = time.monotonic() + seconds
        left = dict(calls)
        while left and time.monotonic() < deadline:
            done = self._cluster.wait(list(left.values()), ASK_SECONDS)
            for node in [node for node, call in left.items() if call in done]:
                within = ANSWER_SECONDS + longer
                try:
                    yield self.workers[node], self._cluster.answer(left.pop(node), within)
                except TimeoutError:
                    lose(node, f"did not answer within {within:.0f} s")
                except WorkerLost as why:
                    lose(node, str(why))
        for node in left:
            lose(node, f"was not ready within {seconds:.0f} s")


def first_failure(ended: Mapping[str, StepResult], *kinds: str) -> tuple[str, StepResult] | None:
    """The first node whose end was of these kinds."""
    return next(((node, ended[node]) for node in sorted(ended) if ended[node].kind in kinds), None)


def raise_refusal(ended: Mapping[str, StepResult], kind: str) -> None:
    """Refuses what a node has refused, naming it."""
    if found := first_failure(ended, kind):
        node, why = found
        raise core.UsageError(f"{node}: {why.reason}")
