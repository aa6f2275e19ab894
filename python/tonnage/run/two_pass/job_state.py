"""The state of a running two-pass job, and what happens when a node is lost.

A node is lost in one way, whatever it did: what it held for others is missing again, apart from
finished partitions that another node sees on a file system that they share. That node, its
surviving reader, completes the directories for it. What is in object storage all nodes see.
"""

import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from tonnage.base import core
from tonnage.cluster import time_limits
from tonnage.cluster.failure_kinds import BadInput, DeterministicError, Failure
from tonnage.cluster.protocol import Heartbeat, Step, StepResult
from tonnage.cluster.worker_pool import WorkerPool, first_failure
from tonnage.run.storage.object_store import is_url
from tonnage.run.two_pass import lost_peers, messages
from tonnage.run.two_pass.job_dir import FatalJobError, JobDir, lost_event
from tonnage.run.two_pass.job_spec import TwoPassJob, WorkerConfig
from tonnage.run.two_pass.output.names import adopted_path, partition_of
from tonnage.run.two_pass.run_record import step_report
from tonnage.run.two_pass.schedule import Copy, Finished, NoNodeLeft, Schedule, Split
from tonnage.run.two_pass.sizing import usual_connections
from tonnage.run.two_pass.splits import FileId
from tonnage.run.two_pass.stragglers import StragglerDetector

Q = TypeVar("Q")
R = TypeVar("R")

STRAGGLER = "straggler: its remaining work was reassigned"
FATAL: dict[Failure, type[DeterministicError]] = {
    Failure.DETERMINISTIC: DeterministicError,
    Failure.BAD_INPUT: BadInput,
}
"""Failures that end the job, since any node would fail."""


@dataclass
class PartitionFiles:
    files: dict[str, messages.FinishedFile] = field(default_factory=dict)
    """By path: a file that is listed twice is one file."""
    ids: list[FileId] = field(default_factory=list)

    def add(self, file: messages.FinishedFile) -> None:
        self.files[file.path] = file
        if file.file_id is not None:
            self.ids.append(file.file_id)

    @property
    def in_order(self) -> list[Finished]:
        ordered = sorted(self.files.values(), key=lambda file: (file.place, Path(file.path).name))
        return [file.finished for file in ordered]


class JobRun:
    """One command's run of a job."""

    def __init__(
        self,
        job_dir: JobDir,
        pool: WorkerPool,
        spec: TwoPassJob,
        on_progress: Callable[[int, int], None],
    ) -> None:
        self.dir, self.pool, self.spec = job_dir, pool, spec
        self._on_progress = on_progress
        self.began = time.monotonic()
        self.lost: dict[str, str] = {}
        """Why each node was lost that was."""
        self.holders: dict[FileId, tuple[str, ...]] = {}
        """The input, with the nodes that have each file."""
        self.schedule: Schedule
        self.workers: dict[str, int] = {}
        self.partition_files: dict[int, PartitionFiles] = {}
        self.copies: dict[int, dict[str, dict[str, messages.FinishedFile]]] = {}
        """Copies, by partition, node, and the file's name."""
        self._out: set[str] = set()  # nodes that are lost, and do nothing any more
        self._gone: set[str] = set()  # those of them whose worker died, or hangs
        self._restarted: set[str] = set()
        self.surviving_readers: dict[str, str] = {}
        """Nodes that see the output of a lost node, by the lost one."""
        self.stored: dict[str, int] = {}
        """Sizes of the parts that object storage had when this command began, by their urls."""
        self.vanished: set[str] = set()
        """Finished parts that were not there any more then, as they were put."""
        self._done: dict[str, int] = {}  # bytes that each node has moved in this step
        self._reports: dict[str, dict[str, Any]] = {}  # of nodes' steps, not on file yet

    @property
    def plan(self) -> dict[str, Any]:
        assert self.dir.plan is not None
        return self.dir.plan

    def connections(self, nodes: int) -> int:
        """From each of so many nodes to each other."""
        usual = usual_connections(nodes, max(self.workers.values(), default=1))
        return self.spec.connections or usual

    def run_step(
        self,
        step: Step[Q, R],
        requests: Mapping[str, Q],
        stragglers: StragglerDetector | None = None,
    ) -> dict[str, StepResult[R]]:
        """Run a step (`WorkerPool.run_step`); notes finished files, and shows progress."""
        detector, began = stragglers or StragglerDetector(), time.monotonic()
        self._done = {}

        def on_heartbeat(node: str, heartbeat: Heartbeat) -> None:
            self._done[node] = heartbeat.done_bytes
            for file in heartbeat.news:
                self.note_finished(node, file)
            self._show(step.name)
            seconds, result = time.monotonic() - began, heartbeat.result
            if result is None and detector.is_straggler(node, heartbeat.done_bytes, seconds):
                self.pool.halt(node)
            if result and result.failure is None:
                detector.note_ended(node, seconds)
            if result and result.failure in FATAL:
                self.pool.stop()  # What the others do would be for nothing.

        nodes = sorted(requests)
        uploads = step is self.spec.PASS_TWO and self.spec.output_url is not None
        patiences = time_limits.UPLOAD_PATIENCES if uploads else 1.0
        results = self.pool.run_step(
            step,
            requests,
            on_heartbeat,
            lambda result: lost_peers.unreachable_peers(result, nodes),
            patiences * self.spec.patience_seconds,
        )
        for node, result in results.items():
            self._reports.setdefault(node, {})[step.name] = step_report(result)
        if first := first_failure(results, *FATAL):
            node, failed = first
            assert failed.failure is not None
            why = f"{node}: {failed.reason}"
            raise FATAL[failed.failure](why) from RuntimeError(failed.error)
        return results

    def run_on_one(self, step: Step[Q, R], request: Q) -> R:
        """Run a step on one node for all, on another one if it is lost; `NoNodeLeft` if all are."""
        why: str | None = None
        for node in self.pool.nodes:
            result = self.run_step(step, {node: request})[node]
            if result.failure is None:
                return result.value  # type: ignore[return-value]
            if result.failure == Failure.REFUSED:
                raise core.UsageError(f"{node}: {result.reason}", setting=result.setting)
            if result.failure == Failure.LOST:
                self.pool.lose(node, result.reason)  # What it held is missed when it is needed.
                self.lost[node] = result.reason
            else:
                why = why or f"{node}: {result.reason}"  # Another one may reach what it does not.
        if why is None:
            raise NoNodeLeft("no node is left")
        raise core.RunError(why)

    def _show(self, step: str) -> None:
        """Progress: bytes that have reached their owners, that are finished, and copies."""
        if step not in (self.spec.PASS_ONE.name, self.spec.PASS_TWO.name, messages.COPY.name):
            return
        schedule, now = self.schedule, sum(self._done.values())
        received, total = schedule.received_bytes, schedule.input_bytes
        copied_after = schedule.copies is not None and not self.spec.COPIED_AS_WRITTEN
        to_move = total * (3 if copied_after else 2)
        if step == self.spec.PASS_ONE.name:
            done = min(received + now, total) + schedule.written.bytes
        elif step == self.spec.PASS_TWO.name or not copied_after:
            done = received + max(schedule.written.bytes, min(now, total))
        else:
            done = 2 * total + now
        self._on_progress(min(done, to_move), to_move)

    def take_reports(self) -> dict[str, dict[str, Any]]:
        reports, self._reports = self._reports, {}
        return reports

    def note_finished(self, node: str, file: messages.FinishedFile) -> None:
        """Notes a file that a node has listed: a partition's, or a copy of one.

        When all files of a partition are there, it is finished, or copied.
        """
        if file.file_id is None:
            return
        place = partition_of(file.path)
        if file.copy:
            copies = self.copies.setdefault(place, {}).setdefault(node, {})
            copies[self.spec.output_name(node, file.path)] = file
        elif self.schedule.owner[place] == node:
            listed = self.partition_files.setdefault(place, PartitionFiles())
            listed.add(file)
            if self.spec.is_complete(listed.in_order, file, self.schedule.received[place]):
                # Of a partition without output there is nothing that could be lost.
                files = [each for each in listed.in_order if each.total.bytes]
                self.schedule.partition_finished(place, files)
                self.vanished -= {each.path for each in files}
        self._note_copies(place)

    def _note_copies(self, place: int) -> None:
        schedule = self.schedule
        files = schedule.finished.get(place)
        if not files or schedule.copies is None or place in schedule.copies:
            return
        owner = schedule.owner[place]
        sizes = {self.spec.output_name(owner, file.path): file.total.bytes for file in files}
        for node, copies in self.copies.get(place, {}).items():
            copied = {name: copies[name].bytes for name in copies if name in sizes}
            if node != owner and copied == sizes:
                paths = tuple(copies[name].path for name in sizes)
                schedule.copy_finished(place, Copy(node, paths))
                return

    def lose_all(
        self,
        results: Mapping[str, StepResult[Any]],
        unreachable: Collection[str] = (),
        blames: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        """Loses nodes that do not answer, whose disk failed, or that others cannot reach."""
        losing = (Failure.LOST, Failure.INPUT, Failure.DISK, Failure.FULL, Failure.STOPPED)
        for node, result in sorted(results.items()):
            if result.failure in losing:
                self._lose_as(node, result)
        for node in unreachable:
            if node not in self._out:
                why = "others cannot exchange data with it"
                if blames is not None and node in blames:
                    why = f"failed twice: {results[node].reason}"
                self.lose(node, why)

    def _lose_as(self, node: str, result: StepResult[Any]) -> None:
        """Loses a node as its failure has it.

        What is finished stays on a full disk, and on a straggler; on a disk that failed nothing is
        trusted.
        """
        straggles, is_full = result.failure == Failure.STOPPED, result.failure == Failure.FULL
        reads = straggles or is_full or result.failure == Failure.DISK
        intact = [file.path for file in self.files_of(node)] if straggles or is_full else []
        self.lose(
            node,
            STRAGGLER if straggles else result.reason,
            reads=reads and node in self.schedule.keepers,
            intact=intact,
        )

    def lose(
        self,
        node: str,
        why: str,
        *,
        reads: bool = False,
        joins: bool = False,
        intact: Collection[str] = (),
    ) -> None:
        """Loses a node, but for finished partitions that can still be seen.

        Args:
            reads: Whether its input, and ``intact``, can still be read.
            joins: Whether it takes part again, with nothing but ``intact``.
            intact: The finished files that it still has.
        """
        schedule = self.schedule
        if not reads and not joins:
            self._out.add(node)
            if worker := self.pool.workers.get(node):
                if worker.lost is not None:
                    self._gone.add(node)
                self.pool.lose(node, why)
        if joins:
            self._out.discard(node)
            self._gone.discard(node)
            self.lost.pop(node, None)
        else:
            self.lost[node] = why
        finished = [place for place in schedule.finished if schedule.owner[place] == node]
        paths = [file.path for place in finished for file in schedule.finished[place]]
        self.surviving_readers.pop(node, None)
        if self.spec.output_url is not None:
            visible = {*paths} - self.vanished
        elif reads or joins:
            visible = {*intact}
        elif schedule.copies is not None:
            visible = set()  # Nobody could make a copy of what another node sees.
        else:
            visible = self._visible_elsewhere(node, paths)
        keeps = {
            place: schedule.finished[place]
            for place in finished
            if visible.issuperset(file.path for file in schedule.finished[place])
        }
        new_owners = self._new_owners(node, [place for place in finished if place not in keeps])
        self.dir.append(lost_event(node, why, reads, joins, keeps, new_owners))
        schedule.lose(node, reads=reads, keeps=keeps, joins=joins, new_owners=new_owners)
        for copies in self.copies.values():
            copies.pop(node, None)
        for place in schedule.finished:
            self._note_copies(place)  # There may be another one.
        self.adopt_copies(new_owners)
        for other in [each for each, reader in self.surviving_readers.items() if reader == node]:
            del self.surviving_readers[other]
            self.find_surviving_reader(other)
        # A failing disk may not remove all of it: at the end it is looked for once more.
        if reads or joins:
            self.pool.run_step(messages.DROP, {node: messages.Drop(list(keeps))})
        elif node in self.surviving_readers:
            output = list(self.spec.paths_on(node, self.spec.output))
            self.pool.run_step(
                messages.DROP, {self.surviving_readers[node]: messages.Drop(list(keeps), output)}
            )

    def restart_lost(self) -> bool:
        """Restarts the workers of machines that are still there, each once; tells whether one is.

        A process dies, or hangs, where its machine does not: then what only that has can be read
        again. The node takes part with the finished partitions that it still has.
        """
        nodes = sorted(self._gone - self._restarted)
        self._restarted.update(nodes)
        restarted = self.pool.restart(nodes, self.worker_config)
        for node in restarted:
            self.lose(node, "had lost its worker", joins=True, intact=self.intact_files(node))
        return bool(restarted)

    def worker_config(self, node: str) -> WorkerConfig:
        return self.spec.worker_config(self.dir.job, node)

    def intact_files(self, node: str) -> set[str]:
        """The finished files of a node that it still has, whole."""
        files = self.files_of(node)
        if self.spec.output_url is not None:
            return {file.path for file in files} - self.vanished
        if not files:
            return set()
        result = self.pool.run_step(
            messages.SEES, {node: messages.Paths([file.path for file in files])}
        )[node]
        there = result.value.files if result.value else []
        sizes = {each.path: each.bytes for each in there}
        return {file.path for file in files if sizes.get(file.path) == file.total.bytes}

    def files_of(self, node: str) -> list[Finished]:
        finished = self.schedule.finished
        places = [place for place in finished if self.schedule.owner[place] == node]
        return [file for place in places for file in finished[place]]

    def _new_owners(
        self, node: str, places: Sequence[int]
    ) -> dict[int, tuple[str, Sequence[Finished]]]:
        """Nodes with copies of a lost node's partitions, and the files as they will be there."""
        new_owners: dict[int, tuple[str, Sequence[Finished]]] = {}
        for place in places:
            copy = (self.schedule.copies or {}).get(place)
            if copy is None or copy.node == node or copy.node not in self.pool.nodes:
                continue
            files = self.schedule.finished[place]
            adopted = [
                Finished(adopted_path(path), file.total)
                for path, file in zip(copy.paths, files, strict=True)
            ]
            new_owners[place] = copy.node, adopted
        return new_owners

    def adopt_copies(self, new_owners: Mapping[int, tuple[str, Sequence[Finished]]]) -> None:
        """Has nodes make copies their own output; repeating it does no harm."""
        adopted: dict[str, list[messages.AdoptedFile]] = {}
        for node, files in new_owners.values():
            of_node = adopted.setdefault(node, [])
            of_node += [
                messages.AdoptedFile(file.path, messages.Sum.of(file.total)) for file in files
            ]
        requests = {node: messages.AdoptCopies(files) for node, files in adopted.items()}
        for node, result in sorted(self.pool.run_step(messages.ADOPT, requests).items()):
            if result.failure is not None and node not in self._out:
                self._lose_as(node, result)

    def _visible_elsewhere(self, node: str, paths: Sequence[str]) -> set[str]:
        """The finished files of a lost node that its surviving reader, found here, sees."""
        ids = {each.path: each for listed in self.partition_files.values() for each in listed.ids}
        if not paths:
            return set()
        others = [each for each in self.pool.nodes if each != node]
        visible = {
            other: {each.path for each in files if ids.get(each.path) == each}
            for other, files in self._seen_by(others, paths).items()
        }
        best = max(visible, key=lambda other: len(visible[other]), default=None)
        if best is None or not visible[best]:
            return set()
        self.surviving_readers[node] = best
        return visible[best]

    def find_surviving_reader(self, node: str) -> None:
        """Finds again who sees the output that a lost node has left, if it is used."""
        schedule = self.schedule
        used = [place for place in schedule.finished if schedule.owner[place] == node]
        sizes = {file.path: file.total.bytes for place in used for file in schedule.finished[place]}
        if self.spec.output_url is not None:
            if self.vanished & {*sizes}:
                self.lose(node, self.lost[node])
            return
        if sizes and node not in self.pool.nodes and not self.has_surviving_reader(node, sizes):
            self.lose(node, self.lost[node])

    def has_surviving_reader(self, node: str, sizes: Mapping[str, int]) -> bool:
        """Whether another node sees these files of a lost node: its reader from now on."""
        for other, files in self._seen_by(self.pool.nodes, [*sizes]).items():
            if {each.path: each.bytes for each in files} == sizes:
                self.surviving_readers[node] = other
                return True
        return False

    def _seen_by(self, nodes: Sequence[str], paths: Sequence[str]) -> dict[str, list[FileId]]:
        results = self.pool.run_step(
            messages.SEES, {node: messages.Paths([*paths]) for node in nodes}
        )
        return {node: each.value.files for node, each in sorted(results.items()) if each.value}

    def why_lost(self, node: str) -> str:
        worker = self.pool.workers.get(node)
        return (worker.lost if worker else None) or "is not in the cluster any more"

    def parts(self, node: str, names: Mapping[str, Collection[str]]) -> dict[str, list[str]]:
        """What is to be in the node's directories, and in those of lost nodes that it reads."""
        lost = [each for each, reader in self.surviving_readers.items() if reader == node]
        parts: dict[str, list[str]] = {}
        for each in (node, *lost):
            for directory in self.spec.paths_on(each, self.spec.output):
                parts.setdefault(directory, []).extend(sorted(names.get(each, ())))
        return parts

    def files(self, splits: Sequence[Split], numbers: Iterable[int]) -> list[FileId]:
        """The files of splits as they have to be; objects the store itself checks."""
        wanted = {
            (splits[each].path, splits[each].holders)
            for each in numbers
            if not is_url(splits[each].path)
        }
        return [each for each, nodes in self.holders.items() if (each.path, nodes) in wanted]

    def refuse_changed(self, node: str, result: StepResult[Any]) -> None:
        """Ends the job if a node has found that the input was changed."""
        if result.failure == Failure.CHANGED:
            raise FatalJobError(f"{node}: {result.reason}; start again with another job directory")
