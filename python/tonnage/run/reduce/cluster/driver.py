"""The driver of a reduction on a cluster: assigns chunks to nodes, round by round.

::

    index            each node finds the chunks of its input, one node those of object storage
    sample           one node samples rows, if the reduction is made from a sample
    learn            all nodes get the reduction and the list of files
    reduce           nodes reduce chunks as they are assigned; a `ChunkLedger` notes which has which
    merge            nodes merge their objects in a tree (`tree_merge`); the driver gets the last

The chunks of a lost node are reduced again by others, except those in its checkpoints, and the node
takes part again if its machine is reachable. A round's result is in the job directory before the
next round begins (`job_dir`), so the same command resumes from there.
"""

import pickle
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from tonnage.base import core, formatting
from tonnage.base.records import ReductionRecord
from tonnage.cluster.failure_kinds import Failure
from tonnage.cluster.protocol import StepResult
from tonnage.cluster.ray_adapter import Cluster
from tonnage.cluster.worker_pool import WorkerPool, raise_refusal
from tonnage.run.reduce.cluster.assignment import IN_TRANSIT, ChunkAssignment
from tonnage.run.reduce.cluster.chunk_ledger import ChunkLedger
from tonnage.run.reduce.cluster.inputs import ClusterInput, find_input, input_from_json
from tonnage.run.reduce.cluster.job_dir import INDEX, ROUND, SAMPLE, ReduceJobDir, open_job_dir
from tonnage.run.reduce.cluster.job_spec import ReduceJob
from tonnage.run.reduce.cluster.messages import LEARN, REDUCE, Learn, SampleRows
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
"""For all workers' checkpoints. An object that exceeds a worker's share is not sent, so if its node
is lost, all the node's chunks are reduced again."""


def reduce_on_cluster(
    cluster: Cluster, job_dir: Path, job: ReduceJob, on_round: OnRound = lambda *_: None
) -> tuple[Any, ReductionRecord]:
    """Run a reduction on a cluster, or resume it; gives the result and the record.

    Args:
        on_round: Called with a round's number, its bytes reduced and its total.

    Raises:
        UsageError: Arguments, a node, or the input cannot be used.
        RunError: A part of the input cannot be read any more, or no node is left; the same command
            resumes.
        FatalJobError: The input has changed, or a user's function failed: the same command would
            fail, too.
        KeyboardInterrupt: Ctrl-C; the same command resumes.
    """
    with open_job_dir(job_dir, job.job_settings) as state:
        if state.record.exists():
            done = state.read_state(ROUND, _codec(job, job.reduction))
            if done is not None:  # Otherwise its result cannot be stored, so it is done again.
                return done[1], ReductionRecord.read(state.record)
        try:
            machines = admission.machines(cluster, job.nodes)
            with WorkerPool(cluster, machines, job.patience_seconds, "ReduceWorker") as pool:
                return _Driver(state, pool, job, on_round).run()
        except core.UsageError:
            if state.read(ROUND) is None:
                state.forget()
            raise


class _Driver:
    def __init__(
        self, job_dir: ReduceJobDir, pool: WorkerPool, job: ReduceJob, on_round: OnRound
    ) -> None:
        self._job_dir, self._pool, self._job = job_dir, pool, job
        self._on_round = on_round
        self._code = job.code
        self._reports = NodeReports()
        self._lost: dict[str, str] = {}
        self._renewed: dict[str, int] = {}
        """The bytes that all had reduced when a node's worker was restarted; -1: not again."""
        self._orphans: list[bytes] = []
        """Checkpoints of lost nodes in this round."""
        self._assignments: list[ChunkAssignment] = []
        """Of this round: their checkpoints are needed until it ends."""
        self._attempt = 0

    def run(self) -> tuple[Any, ReductionRecord]:
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
            result_summary = summary(reduction, known)
        record = make_record(
            self._job,
            self._job_dir.began_at,
            self._input.index,
            self._reports,
            rounds=rounds,
            rounds_here=here,
            seconds=time.monotonic() - began,
            result=result_summary,
            lost=self._lost,
            labels=self._pool.labels,
        )
        record.write(self._job_dir.record)
        return known, record

    def _load_input(self) -> ClusterInput:
        """The input as it was when the job began, by the nodes that can read it now."""
        found, plan = find_input(self._pool, self._job), self._job_dir.plan
        if plan is None:
            self._job_dir.write(INDEX, to_bytes(found.index))
            self._job_dir.begin(found.to_json())
            return found
        before = input_from_json(plan, self._job_dir.read(INDEX) or b"")
        known = {*before.files}
        if missing := [each for each in found.files if each not in known]:
            raise FatalJobError(
                f"input {missing[0].path} has changed since the job began; start again with "
                "another job directory"
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
        with _fatal("sample", "the sampled rows"):
            return made.make(rows)

    def _learn(self, nodes: Collection[str]) -> None:
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
        """Reduce all chunks once; `RunError` if no node can read one any more, or none is left."""
        found, packed = self._input, self._code.pickled(known)
        ledger = ChunkLedger(
            found.index.chunks,
            found.holders,
            self._job.assignment,
            found.workers,
            found.index.format.first_rows,
        )
        self._orphans, self._assignments = [], []
        attempts = MergeAttempts(number + 1)
        while True:
            there, unread = ledger.remaining(self._pool.nodes)
            if (unread or not self._pool.nodes) and not self._renew(ledger):
                raise core.RunError(self._why(unread))
            if there:
                self._reduce_chunks(number, packed, ledger)
                self._renew(ledger)
            elif not unread and (whole := self._merged(ledger, known, attempts)) is not None:
                assert ledger.is_complete
                return whole[0]

    def _reduce_chunks(self, number: int, known: bytes, ledger: ChunkLedger) -> None:
        pool, found = self._pool, self._input
        assignment = ChunkAssignment(
            pool,
            ledger,
            pool.nodes,
            ahead=IN_TRANSIT,
            on_retrieved=lambda: self._on_round(
                number + 1, ledger.retrieved_bytes, found.index.bytes
            ),
        )
        self._assignments.append(assignment)
        ended = pool.run_step(
            REDUCE, assignment.first_steps(number, known), assignment.on_heartbeat
        )
        for node, end in sorted(ended.items()):
            if end.value is not None:
                if {*end.value.chunks} != assignment.numbers(node):
                    raise core.RunError(
                        f"{node} reduced chunks other than those assigned to it; the result is "
                        "discarded"
                    )
                self._reports.note_step(node, end, assignment.ended_at.get(node))
            else:
                self._lose(node, end, ledger)
        self._reports.note_waits()

    def _merged(
        self, ledger: ChunkLedger, known: Any, attempts: MergeAttempts
    ) -> tuple[Any] | None:
        """The merged object of all nodes; ``None`` if a node was lost."""
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
        attempts.note_failure(
            formatting.listing(f"{node}, which {end.reason}" for node, end in whole.items())
        )
        self._renew(ledger)
        return None

    def _merged_here(self, known: Any) -> Any:
        """The merged checkpoints of a round of which no node has an object."""
        with _fatal("begin", "a round without rows"):
            whole = self._reduction.begin(known)
        with _fatal("merge", "objects of lost nodes"):
            for each in self._orphans:
                whole = call_reduction(self._reduction.merge, whole, pickle.loads(each))
        return whole

    def _lose(self, node: str, end: StepResult[Any], ledger: ChunkLedger | None) -> None:
        """Lose a node: its chunks wait again, except those in its checkpoints.

        `FatalJobError` if other nodes would fail in the same way.
        """
        if end.failure == Failure.CHANGED:
            raise FatalJobError(f"{node}: {end.reason}; start again with another job directory")
        if end.failure == Failure.DETERMINISTIC:
            raise FatalJobError(f"{node}: {end.reason}")
        if end.failure == Failure.REFUSED:
            raise core.UsageError(f"{node}: {end.reason}", setting=end.setting)
        self._pool.lose(node, end.reason)
        self._reports.note_lost(node)
        self._lost[node] = end.reason
        if end.failure != Failure.LOST:
            self._renewed[node] = -1  # Its machine is reachable, so it would fail again.
        if ledger is not None:
            # From earlier steps of the round, too.
            for assignment in self._assignments:
                self._orphans += assignment.take_checkpoints(node)
            ledger.note_lost(node)

    def _renew(self, ledger: ChunkLedger) -> bool:
        """Restart the workers of lost nodes; gives whether there is one again.

        This is repeated as long as some chunk was reduced since the last time.
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
                self._renewed[node] = -1  # Its machine is not reachable.
        self._learn(there)
        return bool(there)

    def _why(self, unread: list[Any]) -> str:
        lost = [f"{node} {why}" for node, why in sorted(self._lost.items())]
        because = f" (lost: {formatting.listing(lost)})" if lost else ""
        if not unread:
            return f"no node is left{because}"
        first = unread[0]
        return (
            f"{formatting.several(len(unread), 'chunk')} of the input can no longer be read from "
            f"any node (first: {self._input.index.files[first.file].name}, {first.bytes} bytes at "
            f"offset {first.offset}){because}; bring the nodes back, then run the same command"
        )


def _codec(job: ReduceJob, reduction: object) -> RoundStateCodec:
    """Encodes results of classes in the reduction's module, or in modules sent along."""
    return RoundStateCodec({*job.code.module_names, type(reduction).__module__})


@contextmanager
def _fatal(stage: str, where: str) -> Iterator[None]:
    """Make errors of a user's function fatal, since it would fail again."""
    try:
        with user_code(stage, where):
            yield
    except core.RunError as why:
        raise FatalJobError(why.args[0]) from why
