"""The driver of a reduction on a fleet: hands out chunks as they are asked for, round by round.

::

    index            each node: the chunks of what it has; one of them: of object storage
    sample           if the reduction is made of some rows
    learn            all: the reduction, and the files
    reduce           all at once, each as it comes; a `Ledger` has who has what
    merge            objects two by two, from node to node (`merging`); the last comes here

A node that is lost has its chunks reduced again by others, but those in objects that it had sent
before, and it takes part again if its machine is there. What a round has finished with is on file
before the next begins (`home`), so the same command goes on from there.
"""

from __future__ import annotations

import pickle
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from tonnage.base import core, formatting
from tonnage.base.records import ReductionRecord
from tonnage.cluster.failures import Failure
from tonnage.cluster.protocol import StepResult
from tonnage.cluster.ray_adapter import Cluster
from tonnage.cluster.worker_pool import WorkerPool, raise_refusal
from tonnage.run.reduce.cluster.assignment import IN_TRANSIT, ChunkAssignment
from tonnage.run.reduce.cluster.chunk_ledger import ChunkLedger
from tonnage.run.reduce.cluster.inputs import ClusterInput, find_input, input_from_json
from tonnage.run.reduce.cluster.job_dir import INDEX, ROUND, SAMPLE, ReduceJobDir, open_job_dir
from tonnage.run.reduce.cluster.job_spec import ReduceJob
from tonnage.run.reduce.cluster.messages import (
    LEARN,
    REDUCE,
    Learn,
    SampleRows,
)
from tonnage.run.reduce.cluster.messages import SAMPLE as SAMPLE_ROWS
from tonnage.run.reduce.cluster.round_state import RoundStateCodec
from tonnage.run.reduce.cluster.run_record import NodeReports, make_record
from tonnage.run.reduce.cluster.tree_merge import MergeAttempts, tree_merge
from tonnage.run.reduce.index import to_bytes
from tonnage.run.reduce.local import OnRound
from tonnage.run.reduce.reduction import Reduction
from tonnage.run.reduce.result_json import summary
from tonnage.run.reduce.sampling import FromSample
from tonnage.run.two_pass import admission
from tonnage.run.two_pass.job_dir import FatalJobError
from tonnage.run.user_errors import call_reduction, user_code

CHECKPOINT_BYTES = 256 << 20
"""Of objects that workers have sent: what is longer than a worker's share of it is not sent, and a
lost machine's chunks are all reduced again."""


def reduce_on_cluster(
    cluster: Cluster,
    out: Path,
    asked: ReduceJob,
    on_round: OnRound = lambda *_: None,
) -> tuple[Any, ReductionRecord]:
    """Reduces on all machines of a cluster, or goes on with what an earlier command began.

    Gives what the last round finished with, and how it went.

    Args:
        cluster: Whose machines.
        out: Where what rounds came to is kept.
        asked: What to reduce, and how.
        on_round: Called with the number of a round, bytes reduced in it, and those there are.

    Raises:
        UsageError: Arguments, a machine, or the input cannot be used.
        RunError: A part of the input cannot be read any more, or no node is left; the same command
            goes on.
        Over: The input is not what it was, or what a user wrote fails: the same command would, too.
        KeyboardInterrupt: Ctrl-C; the same command goes on.
    """
    with open_job_dir(out, asked.settings) as kept:
        if kept.record.exists():
            done = kept.read_state(ROUND, _codec(asked, asked.reduction))
            if done is not None:  # Otherwise its result cannot be stored, so it is done again.
                return done[1], ReductionRecord.read(kept.record)
        try:
            machines = admission.machines(cluster, asked.instances)
            with WorkerPool(cluster, machines, asked.patience_seconds, "ReduceWorker") as crew:
                return _Driver(kept, crew, asked, on_round).run()
        except core.UsageError:
            if kept.read(ROUND) is None:
                kept.forget()
            raise


class _Driver:
    """Of one reduction."""

    def __init__(
        self,
        home: ReduceJobDir,
        crew: WorkerPool,
        asked: ReduceJob,
        on_round: OnRound,
    ) -> None:
        self._job_dir, self._pool, self._job = home, crew, asked
        self._on_round = on_round
        self._code = asked.code
        self._reports = NodeReports()
        self._lost: dict[str, str] = {}
        self._renewed: dict[str, int] = {}
        """Bytes that all had reduced when a node was given a new agent."""
        self._orphans: list[bytes] = []
        """Objects of nodes that were lost, of this round."""
        self._assignments: list[ChunkAssignment] = []
        """Of this round: what nodes have sent is wanted until it ends."""
        self._attempt = 0

    def run(self) -> tuple[Any, ReductionRecord]:
        """Does what there is left to do."""
        self._pool.ready(self._job.worker_config)
        self._input = self._load_input()
        self._reduction = self._load_reduction()
        self._learn(self._pool.nodes)
        codec = _codec(self._job, self._reduction)
        before = self._job_dir.read_state(ROUND, codec)
        rounds, known, over = before or (0, None, False)
        reduction, began, here = self._reduction, time.monotonic(), 0
        while not over:
            whole = self._round(rounds, known)
            with _fatal("finish", f"round {rounds + 1}"):
                result = reduction.finish(whole, known)
            rounds, here = rounds + 1, here + 1
            with _fatal("until", f"round {rounds}"):
                over = reduction.until(result, known, rounds)
            known = result
            self._job_dir.write_state(ROUND, codec, (rounds, known, over))
        with _fatal("summary", "the result"):
            told = summary(reduction, known)
        record = make_record(
            self._job,
            self._job_dir.began_at,
            self._input.index,
            self._reports,
            rounds=rounds,
            rounds_here=here,
            seconds=time.monotonic() - began,
            result=told,
            lost=self._lost,
            labels=self._pool.labels,
        )
        record.write(self._job_dir.record)
        return known, record

    def _load_input(self) -> ClusterInput:
        """The chunks there are, and who can read them: as they were when the job began."""
        found, plan = find_input(self._pool, self._job), self._job_dir.plan
        if plan is None:
            self._job_dir.write(INDEX, to_bytes(found.index))
            self._job_dir.begin(found.to_json())
            return found
        before = input_from_json(plan, self._job_dir.read(INDEX) or b"")
        known = {*before.files}
        if missing := [each for each in found.files if each not in known]:
            raise FatalJobError(
                f"input {missing[0].path} is not what it was when the job began: begin again with "
                "another --job-dir"
            )
        return replace(before, workers=found.workers)

    def _load_reduction(self) -> Reduction[Any]:
        """The reduction; if it is made of sampled rows, of those of the job's first command."""
        made = self._job.reduction
        if not isinstance(made, FromSample):
            return made
        codec = RoundStateCodec([])
        rows = self._job_dir.read_state(SAMPLE, codec)
        if rows is None:
            node, index = self._input.node_with_most(self._pool.nodes)
            ended = self._pool.run_step(SAMPLE_ROWS, {node: SampleRows(to_bytes(index), made.rows)})
            raise_refusal(ended)
            result = ended[node]
            if result.value is None:
                is_fatal = result.failure == Failure.DETERMINISTIC
                failed = FatalJobError if is_fatal else core.RunError
                raise failed(f"{node}: {result.reason}")
            rows = pickle.loads(result.value.rows)
            self._job_dir.write_state(SAMPLE, codec, rows)
        with _fatal("sample", "the rows that are looked at first"):
            return made.make(rows)

    def _learn(self, nodes: Collection[str]) -> None:
        """Tells nodes what stays the same in all rounds."""
        learn = Learn(
            reduction=self._code.pickled(self._reduction),
            index=to_bytes(self._input.index),
            chunk_bytes=self._input.chunk_bytes,
            checkpoint_bytes=CHECKPOINT_BYTES // max(self._input.workers, 1),
        )
        for node, end in self._pool.run_step(LEARN, dict.fromkeys(nodes, learn)).items():
            if end.failure is not None:
                self._lose(node, end, None)

    def _round(self, number: int, known: Any) -> Any:
        """All chunks once: what they come to.

        Raises:
            RunError: There are chunks that nobody can read any more, or nobody is left.
        """
        found, packed = self._input, self._code.pickled(known)
        ledger = ChunkLedger(
            found.index.chunks,
            found.holders,
            self._job.assignment,
            found.workers,
            found.index.format.first_rows,
        )
        self._orphans, self._assignments = [], []
        mergings = MergeAttempts(number + 1)
        while True:
            there, unread = ledger.remaining(self._pool.nodes)
            if (unread or not self._pool.nodes) and not self._renew(ledger):
                raise core.RunError(self._why(unread))
            if there:
                self._reduce_chunks(number, packed, ledger)
                self._renew(ledger)
            elif not unread and (whole := self._merged(ledger, known, mergings)) is not None:
                assert ledger.is_complete
                return whole[0]

    def _reduce_chunks(self, number: int, known: bytes, ledger: ChunkLedger) -> None:
        """Has all nodes reduce what nobody has, until it is done or somebody is lost."""
        crew, found = self._pool, self._input
        dealing = ChunkAssignment(
            crew,
            ledger,
            crew.nodes,
            ahead=IN_TRANSIT,
            on_came=lambda: self._on_round(number + 1, ledger.retrieved_bytes, found.index.bytes),
        )
        self._assignments.append(dealing)
        ended = crew.run_step(REDUCE, dealing.first_steps(number, known), dealing.on_heartbeat)
        for node, end in sorted(ended.items()):
            if end.value is not None:
                if {*end.value.chunks} != dealing.numbers(node):
                    raise core.RunError(
                        f"{node} has reduced other chunks than it was given: nothing is called done"
                    )
                self._reports.note_step(node, end, dealing.ended_at.get(node))
            else:
                self._lose(node, end, ledger)
        self._reports.note_waits()

    def _merged(
        self, ledger: ChunkLedger, known: Any, mergings: MergeAttempts
    ) -> tuple[Any] | None:
        """The objects of all nodes in one; ``None`` if a node was lost meanwhile."""
        nodes = [node for node in self._pool.nodes if ledger.chunks_of(node)]
        if not nodes:
            return (self._merged_here(known),)
        self._attempt += 1
        whole = tree_merge(self._pool, nodes, self._orphans, self._attempt)
        self._reports.note_waits()
        if isinstance(whole, bytes):
            return (pickle.loads(whole),)
        for node, end in whole.items():
            self._lose(node, end, ledger)
        mergings.note_failure(
            formatting.listing(f"{node}, which {end.reason}" for node, end in whole.items())
        )
        self._renew(ledger)
        return None

    def _merged_here(self, known: Any) -> Any:
        """What lost nodes have left of a round of which there is nothing else."""
        with _fatal("begin", "a round without rows"):
            whole = self._reduction.begin(known)
        with _fatal("merge", "objects of machines that were lost"):
            for each in self._orphans:
                whole = call_reduction(self._reduction.merge, whole, pickle.loads(each))
        return whole

    def _lose(self, node: str, end: StepResult[Any], ledger: ChunkLedger | None) -> None:
        """Takes a node for lost: what it had is handed out again, but what it has sent.

        Raises:
            Over: What it met all others would meet, too.
        """
        if end.failure == Failure.CHANGED:
            raise FatalJobError(f"{node}: {end.reason}: begin again with another --job-dir")
        if end.failure == Failure.DETERMINISTIC:
            raise FatalJobError(f"{node}: {end.reason}")
        if end.failure == Failure.REFUSED:
            raise core.UsageError(f"{node}: {end.reason}", setting=end.setting)
        self._pool.lose(node, end.reason)
        self._reports.note_lost(node)
        self._lost[node] = end.reason
        if end.failure != Failure.LOST:
            self._renewed[node] = -1  # Its machine is there, and it failed.
        if ledger is not None:
            # In the steps before, too: it may have done others of this round to their ends.
            for dealing in self._assignments:
                self._orphans += dealing.take_checkpoints(node)
            ledger.note_lost(node)

    def _renew(self, ledger: ChunkLedger) -> bool:
        """Gives machines whose agents are gone new ones; tells whether one has one.

        Again and again, as long as some chunk was reduced since the last time.
        """
        done = self._reports.bytes + ledger.retrieved_bytes
        nodes = [node for node in sorted(self._lost) if self._renewed.get(node) not in (-1, done)]
        for node in nodes:
            self._renewed[node] = done
        there = self._pool.restart(nodes, self._job.worker_config)
        for node in nodes:
            if node in there:
                del self._lost[node]
            else:
                self._renewed[node] = -1  # Its machine is gone.
        self._learn(there)
        return bool(there)

    def _why(self, unread: list[Any]) -> str:
        lost = [f"{node} {why}" for node, why in sorted(self._lost.items())]
        because = f" (lost: {formatting.listing(lost)})" if lost else ""
        if not unread:
            return f"no node is left{because}"
        first = unread[0]
        return (
            f"{formatting.several(len(unread), 'chunk')} of input nobody can read any more, first "
            f"{first.bytes} bytes of {self._input.index.files[first.file].name} at offset "
            f"{first.offset}{because}"
        )


def _codec(asked: ReduceJob, reduction: object) -> RoundStateCodec:
    """What encodes results: their classes are the reduction's module's, or sent along with it."""
    return RoundStateCodec({*asked.code.module_names, type(reduction).__module__})


@contextmanager
def _fatal(stage: str, where: str) -> Iterator[None]:
    """What a user's function raises here it would raise again.

    Raises:
        Over: It failed.
    """
    try:
        with user_code(stage, where):
            yield
    except core.RunError as why:
        raise FatalJobError(why.args[0]) from why
