"""What a driver knows of its job while it runs, and what all of its steps have in common.

A node that is lost is lost in one way, whatever it did: what it held for others is missing again,
but for finished partitions that another node sees on a file system that they share. That one, its
witness, finishes the directories for it. What is in object storage all see.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tonnage.base import core
from tonnage.cluster.step_worker import (
    CHANGED,
    DETERMINISTIC,
    DISK,
    FULL,
    INPUT,
    REFUSED,
    STOPPED,
    StepResult,
    Heartbeat,
)
from tonnage.cluster.worker_pool import LOST, WorkerPool, first_failure
from tonnage.run.storage.object_store import is_url
from tonnage.run.two_pass import admission
from tonnage.run.two_pass.job_dir import JobDir, FatalJobError, files_to_json, lost_event
from tonnage.run.two_pass.job_spec import TwoPassJob
from tonnage.run.two_pass.output.names import adopted_path, partition_of
from tonnage.run.two_pass.run_record import step_report
from tonnage.run.two_pass.schedule import Copy, Finished, NoNodeLeft, Schedule, Split, Total
from tonnage.run.two_pass.splits import FileId
from tonnage.run.two_pass.stragglers import StragglerDetector
from tonnage.run.two_pass.worker import DeterministicError, WorkerConfig

STRAGGLER = "is slow: others do sooner what it has left"


@dataclass
class PartitionFiles:
    """What pass two has told of a partition so far."""

    files: dict[str, Finished] = field(default_factory=dict)
    """By path: what is listed twice is one file."""
    seen: list[FileId] = field(default_factory=list)

    def add(self, line: Mapping[str, Any]) -> None:
        """Adds a line."""
        total = Total(line["records"], line["bytes"], int(line["checksum"], 16))
        self.files[line["path"]] = Finished(line["path"], total)
        self.seen.append(line["seen"])

    @property
    def in_order(self) -> list[Finished]:
        """The files in the order of their keys."""
        return sorted(self.files.values(), key=lambda file: Path(file.path).name)


class JobRun:
    """One command's dealings with a job."""

    def __init__(
        self, kept: JobDir, crew: WorkerPool, asked: TwoPassJob, on_progress: Callable[[int, int], None]
    ) -> None:
        self.dir, self.pool, self.asked = kept, crew, asked
        self._on_progress = on_progress
        self.began = time.monotonic()
        self.lost: dict[str, str] = {}
        """Why each node was lost that was."""
        self.holders: dict[FileId, tuple[str, ...]] = {}
        """The input, with who has it."""
        self.schedule: Schedule
        self.workers: dict[str, int] = {}
        """Threads of each node."""
        self.sums: dict[int, PartitionFiles] = {}
        """What was told of each partition."""
        self.copies: dict[int, dict[str, dict[str, Mapping[str, Any]]]] = {}
        """Lines of copies, by partition, node, and the file's name."""
        self._out: set[str] = set()  # nodes that are lost, and do nothing any more
        self._gone: set[str] = set()  # those of them of which the agent is gone, or hangs
        self._renewed: set[str] = set()  # those that had a new agent once
        self.surviving_readers: dict[str, str] = {}
        """Who sees the output of a node that was lost."""
        self.stored: dict[str, int] = {}
        """Sizes of the parts that object storage had when this command began, by their urls."""
        self.vanished: set[str] = set()
        """Finished parts that it did not have any more then, as they were put."""
        self._done: dict[str, int] = {}  # bytes that each node has moved in this step
        self._told: dict[str, dict[str, Any]] = {}  # what is not on file yet of nodes' steps

    def run_step(self, step: str, asked: Mapping[str, Any], pace: StragglerDetector | None = None) -> dict[str, StepResult]:
        """Has nodes do a step, as `WorkerPool.run_step`; hears of finished files, and shows progress.

        Args:
            step: Which.
            asked: What each node is given for it.
            pace: Who is so slow that it is not waited for; nobody by default.
        """
        pace, began = pace or StragglerDetector(), time.monotonic()
        self._done = {}

        def on_told(node: str, said: Heartbeat) -> None:
            self._done[node] = said.done_bytes
            for line in said.news:
                self.finish(node, line)
            self._show(step)
            seconds = time.monotonic() - began
            if said.result is None and pace.is_straggler(node, said.done_bytes, seconds):
                self.pool.halt(node)
            if said.result and said.result.kind is None:
                pace.ended(node, seconds)
            if said.result and said.result.kind == DETERMINISTIC:
                self.pool.stop()  # What they do would be for nothing.

        nodes = sorted(asked)
        ended = self.pool.run_step(step, asked, on_told, lambda end: admission.unreachable_peers(end, nodes))
        for node, each in ended.items():
            self._told.setdefault(node, {})[step] = step_report(each)
        if found := first_failure(ended, DETERMINISTIC):
            node, end = found
            raise DeterministicError(f"{node}: {end.reason}") from RuntimeError(end.error)
        return ended

    def run_on_one(self, step: str, asked: Any) -> Any:
        """Has one node do a step for all, another one if that cannot; gives what it answers.

        Raises:
            UsageError: What it refuses.
            RunError: What all fail at.
            NobodyLeft: There is no node.
        """
        why: str | None = None
        for node in self.pool.nodes:
            end = self.run_step(step, {node: asked})[node]
            if end.kind is None:
                return end.value
            if end.kind == REFUSED:
                raise core.UsageError(f"{node}: {end.reason}")
            if end.kind == LOST:
                self.pool.lose(node, end.reason)  # What it held is lost when that is asked for.
                self.lost[node] = end.reason
            else:
                why = why or f"{node}: {end.reason}"  # Another one may reach what it does not.
        if why is None:
            raise NoNodeLeft("no node is left")
        raise core.RunError(why)

    def _show(self, step: str) -> None:
        """Progress: records that lie with their owners, those that are sorted, and copies."""
        if step not in ("pass_one", "pass_two", "copy"):
            return
        schedule, now = self.schedule, sum(self._done.values())
        came, whole = schedule.received_bytes, schedule.input_bytes
        afterwards = schedule.copies is not None and not self.asked.COPIED_AS_WRITTEN
        moved = whole * (3 if afterwards else 2)
        if step == "pass_one":
            done = min(came + now, whole) + schedule.written.bytes
        elif step == "pass_two" or not afterwards:
            done = came + max(schedule.written.bytes, min(now, whole))
        else:
            done = 2 * whole + now
        self._on_progress(min(done, moved), moved)

    def take_reports(self) -> dict[str, dict[str, Any]]:
        """What nodes told of their steps since this was last asked."""
        taken, self._told = self._told, {}
        return taken

    def finish(self, node: str, line: Mapping[str, Any]) -> None:
        """Takes a file that a node has listed: a partition's, or a copy of one.

        When all of a partition is there, it is finished, or copied.
        """
        place = partition_of(line["path"])
        if line["seen"] is None:
            return
        if line.get("copy"):
            lines = self.copies.setdefault(place, {}).setdefault(node, {})
            lines[Path(line["path"]).name] = line
        elif self.schedule.owner[place] == node:
            sums = self.sums.setdefault(place, PartitionFiles())
            sums.add(line)
            if self.asked.is_complete(sums.in_order, line, self.schedule.received[place]):
                # Of a partition of which nothing was made there is nothing that could be lost.
                files = [file for file in sums.in_order if file.total.bytes]
                self.schedule.partition_finished(place, files)
                self.vanished -= {file.path for file in files}
        self._note_copies(place)

    def _note_copies(self, place: int) -> None:
        schedule = self.schedule
        files = schedule.finished.get(place)
        if not files or schedule.copies is None or place in schedule.copies:
            return
        sizes = {Path(file.path).name: file.total.bytes for file in files}
        for node, lines in self.copies.get(place, {}).items():
            of_it = {name: lines[name]["bytes"] for name in lines if name in sizes}
            if node != schedule.owner[place] and of_it == sizes:
                paths = tuple(str(lines[Path(file.path).name]["path"]) for file in files)
                schedule.copy_finished(place, Copy(node, paths))
                return

    def lose_all(
        self,
        ended: Mapping[str, StepResult],
        judged: Collection[str] = (),
        blames: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        """Loses who is gone, whose disk failed, and whom others cannot reach."""
        for node, end in sorted(ended.items()):
            if end.kind in (LOST, INPUT, DISK, FULL, STOPPED):
                self._lose_as(node, end)
        for node in judged:
            if node not in self._out:
                why = "others cannot exchange data with it"
                if blames is not None and node in blames:
                    why = f"failed twice: {ended[node].reason}"
                self.lose(node, why)

    def _lose_as(self, node: str, end: StepResult) -> None:
        """Takes a node for lost as a step's end has it.

        A disk without space keeps what is finished, as does who was stopped since it is slow; of a
        disk that fails nothing is believed.
        """
        reads = end.kind in (DISK, FULL, STOPPED) and node in self.schedule.keepers
        there: list[str] = []
        if end.kind in (FULL, STOPPED):
            there = [file.path for file in self.files_of(node)]
        self.lose(node, STRAGGLER if end.kind == STOPPED else end.reason, reads=reads, there=there)

    def lose(
        self,
        node: str,
        why: str,
        *,
        reads: bool = False,
        joins: bool = False,
        there: Collection[str] = (),
    ) -> None:
        """Takes a node for lost, but for finished partitions that can still be seen.

        Args:
            node: Which.
            why: In words.
            reads: Whether its input can still be read, and ``there``.
            joins: Whether it takes part again, with nothing but ``there``.
            there: The finished files that it still has.
        """
        schedule = self.schedule
        if not reads and not joins:
            self._out.add(node)
            if member := self.pool.workers.get(node):
                if member.gone is not None:
                    self._gone.add(node)
                self.pool.lose(node, why)
        if joins:
            self._out.discard(node)
            self._gone.discard(node)
            self.lost.pop(node, None)
        else:
            self.lost[node] = why
        done = [place for place in schedule.finished if schedule.owner[place] == node]
        paths = [file.path for place in done for file in schedule.finished[place]]
        self.surviving_readers.pop(node, None)
        if self.asked.output_url is not None:
            seen = {*paths} - self.vanished
        elif reads or joins:
            seen = set(there)
        else:
            # What another one sees nobody could make a copy of.
            seen = set() if schedule.copies is not None else self._seen_by_another(node, paths)
        keeps = {
            place: schedule.finished[place]
            for place in done
            if seen.issuperset(file.path for file in schedule.finished[place])
        }
        heirs = self._new_owners(node, [place for place in done if place not in keeps])
        self.dir.append(lost_event(node, why, reads, joins, keeps, heirs))
        schedule.lose(node, reads=reads, keeps=keeps, joins=joins, new_owners=heirs)
        for of_place in self.copies.values():
            of_place.pop(node, None)
        for place in schedule.finished:
            self._note_copies(place)  # There may be another one.
        self.adopt_copies(heirs)
        for other in [each for each, witness in self.surviving_readers.items() if witness == node]:
            del self.surviving_readers[other]
            self.find_surviving_reader(other)
        # On a disk that fails the rest may go or not: at the end it is looked for once more.
        if reads or joins:
            self.pool.run_step("drop", {node: {"keeps": list(keeps)}})
        elif node in self.surviving_readers:
            output = self.asked.paths_on(node, self.asked.output)
            drop = {"keeps": list(keeps), "output": list(output)}
            self.pool.run_step("drop", {self.surviving_readers[node]: drop})

    def renewed(self) -> bool:
        """Gives machines whose agents are gone new ones, each once; tells whether one has one.

        A process dies, or hangs, where its machine does not: then what only that has can be read
        again. It takes part as who comes back, with the finished partitions that it still has.
        """
        nodes = sorted(self._gone - self._renewed)
        self._renewed.update(nodes)
        there = self.pool.restart(nodes, self.place)
        for node in there:
            self.lose(node, "had lost its agent", joins=True, there=self.intact_files(node))
        return bool(there)

    def place(self, node: str) -> WorkerConfig:
        """A node's place in the job."""
        return self.asked.worker_config(self.dir.job, node)

    def intact_files(self, node: str) -> set[str]:
        """Which of its finished files a node still has, whole."""
        files = self.files_of(node)
        if self.asked.output_url is not None:
            return {file.path for file in files} - self.vanished
        if not files:
            return set()
        ended = self.pool.run_step("sees", {node: [file.path for file in files]})[node]
        sizes = {each.path: each.bytes for each in ended.value or ()}
        return {file.path for file in files if sizes.get(file.path) == file.total.bytes}

    def files_of(self, node: str) -> list[Finished]:
        """Its finished files."""
        finished = self.schedule.finished
        of_node = [place for place in finished if self.schedule.owner[place] == node]
        return [file for place in of_node for file in finished[place]]

    def _new_owners(self, node: str, places: Sequence[int]) -> dict[int, tuple[str, Sequence[Finished]]]:
        """Who has copies of a lost node's partitions, and what they will be called there."""
        found: dict[int, tuple[str, Sequence[Finished]]] = {}
        for place in places:
            copy = (self.schedule.copies or {}).get(place)
            if copy is None or copy.node == node or copy.node not in self.pool.nodes:
                continue
            files = self.schedule.finished[place]
            own = [
                Finished(adopted_path(path), file.total)
                for path, file in zip(copy.paths, files, strict=True)
            ]
            found[place] = copy.node, own
        return found

    def adopt_copies(self, heirs: Mapping[int, tuple[str, Sequence[Finished]]]) -> None:
        """Has nodes take copies for their own output; as often as is wanted."""
        spec: dict[str, list[list[Any]]] = {}
        for node, files in heirs.values():
            spec.setdefault(node, []).extend(files_to_json(files))
        ended = self.pool.run_step("inherit", spec)
        for node, end in sorted(ended.items()):
            if end.kind is not None and node not in self._out:
                self._lose_as(node, end)

    def _seen_by_another(self, node: str, paths: Sequence[str]) -> set[str]:
        """Which finished files of a lost node another one sees, as they were: its witness."""
        known = {seen.path: seen for sums in self.sums.values() for seen in sums.seen}
        if not paths:
            return set()
        others = [each for each in self.pool.nodes if each != node]
        ended = self.pool.run_step("sees", {other: list(paths) for other in others})
        found = {
            other: {each.path for each in end.value if known.get(each.path) == each}
            for other, end in sorted(ended.items())
            if end.kind is None
        }
        best = max(found, key=lambda other: len(found[other]), default=None)
        if best is None or not found[best]:
            return set()
        self.surviving_readers[node] = best
        return found[best]

    def find_surviving_reader(self, node: str) -> None:
        """Finds again who sees the output that a lost node has left, if it is used."""
        schedule = self.schedule
        used = [place for place in schedule.finished if schedule.owner[place] == node]
        sizes = {file.path: file.total.bytes for place in used for file in schedule.finished[place]}
        if self.asked.output_url is not None:
            if self.vanished & {*sizes}:
                self.lose(node, self.lost[node])
            return
        if sizes and node not in self.pool.nodes and not self.has_surviving_reader(node, sizes):
            self.lose(node, self.lost[node])

    def has_surviving_reader(self, node: str, sizes: Mapping[str, int]) -> bool:
        """Whether another one sees these files of a node: its witness from now on."""
        ended = self.pool.run_step("sees", {other: list(sizes) for other in self.pool.nodes})
        for other, end in sorted(ended.items()):
            if end.kind is None and {each.path: each.bytes for each in end.value} == sizes:
                self.surviving_readers[node] = other
                return True
        return False

    def why_gone(self, node: str) -> str:
        """Why a node that is not asked any more is not."""
        member = self.pool.workers.get(node)
        return (member.gone if member else None) or "is not in the cluster any more"

    def parts(self, node: str, names: Mapping[str, Collection[str]]) -> dict[str, list[str]]:
        """What is to be in a node's directories for output, and in those that it finishes.

        Args:
            node: Who finishes its own, and those of lost nodes of which it is the witness.
            names: The names of each node's parts.
        """
        lost = [each for each, witness in self.surviving_readers.items() if witness == node]
        found: dict[str, list[str]] = {}
        for each in (node, *lost):
            for directory in self.asked.paths_on(each, self.asked.output):
                found.setdefault(directory, []).extend(sorted(names.get(each, ())))
        return found

    def files(self, splits: Sequence[Split], numbers: Iterable[int]) -> list[FileId]:
        """The files of splits as they are to be; of objects the store looks itself."""
        wanted = {
            (splits[each].path, splits[each].holders)
            for each in numbers
            if not is_url(splits[each].path)
        }
        return [each for each, nodes in self.holders.items() if (each.path, nodes) in wanted]

    def refuse_changed(self, node: str, end: StepResult) -> None:
        """Ends the job if a node has found that the input is not what it was."""
        if end.kind == CHANGED:
            raise FatalJobError(f"{node}: {end.reason}: begin again with another --job-dir")
