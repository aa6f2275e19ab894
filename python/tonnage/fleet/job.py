"""What a driver knows of its job while it runs, and what all of its steps have in common.

A node that is lost is lost in one way, whatever it did: what it held for others is missing again,
but for finished partitions that another node sees on a file system that they share. That one, its
witness, finishes the directories for it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tonnage import engine
from tonnage.fleet.crew import GONE, Crew
from tonnage.fleet.home import Home, lost_event
from tonnage.fleet.recording import told
from tonnage.fleet.share import Seen
from tonnage.fleet.site import Place, number_of
from tonnage.fleet.sorter import CHANGED, DISK, INPUT, Ended, Told
from tonnage.run.schedule import Finished, Schedule, Split, Total
from tonnage.run.sort import Layout

NODE = "{node}"
"""In a path, the node's name."""


@dataclass(frozen=True)
class Asked:
    """What is asked of a fleet."""

    inputs: Sequence[str]
    output: Sequence[str]
    scratch: Sequence[str]
    """Paths on the nodes, with `NODE` in them."""
    layout: Layout
    memory_bytes: int
    """Of each node."""
    connections: int
    patience_seconds: float
    command: list[str]
    instances: int | None = None
    weights: Mapping[str, float] | None = None
    """Shares of the partitions; ``None`` for equal ones."""

    @property
    def settings(self) -> dict[str, Any]:
        """What has to be the same for the same command to go on."""
        layout = self.layout
        return {
            "inputs": list(self.inputs),
            "output": list(self.output),
            "scratch": list(self.scratch),
            "record_bytes": layout.record_bytes,
            "key": f"{layout.key_offset}:{layout.key_bytes}",
            "memory_bytes": self.memory_bytes,
            "instances": self.instances,
            "weights": None if self.weights is None else dict(self.weights),
        }

    def place(self, job: str, node: str) -> Place:
        """A node's place in the job."""
        return Place(
            job=job,
            node=node,
            inputs=self.on(node, self.inputs),
            output=self.on(node, self.output),
            scratch=self.on(node, self.scratch),
            layout=self.layout.to_json(),
            memory_bytes=self.memory_bytes,
        )

    def on(self, node: str, paths: Iterable[str]) -> tuple[str, ...]:
        """Paths as a node has them."""
        return tuple(path.replace(NODE, node) for path in paths)


@dataclass
class Sums:
    """What pass two has told of a partition so far."""

    files: list[Finished] = field(default_factory=list)
    seen: list[Seen] = field(default_factory=list)

    def add(self, line: Mapping[str, Any]) -> int:
        """Adds a line; gives the bytes of all."""
        total = Total(line["records"], line["bytes"], int(line["checksum"], 16))
        self.files.append(Finished(line["path"], total))
        self.seen.append(line["seen"])
        return sum(file.total.bytes for file in self.files)


class Job:
    """One command's dealings with a job."""

    def __init__(
        self, kept: Home, crew: Crew, asked: Asked, on_progress: Callable[[int, int], None]
    ) -> None:
        self.home, self.crew, self.asked = kept, crew, asked
        self._on_progress = on_progress
        self.began = time.monotonic()
        self.lost: dict[str, str] = {}
        """Why each node was lost that was."""
        self.held: dict[Seen, tuple[str, ...]] = {}
        """The input, with who has it."""
        self.schedule: Schedule
        self.workers: dict[str, int] = {}
        """Threads of each node."""
        self.sums: dict[int, Sums] = {}
        """What was told of each partition."""
        self.witness: dict[str, str] = {}
        """Who sees the output of a node that was lost."""
        self._done: dict[str, int] = {}  # bytes that each node has moved in this step
        self._told: dict[str, dict[str, Any]] = {}  # what is not on file yet of nodes' steps

    def do(self, step: str, asked: Mapping[str, Any]) -> dict[str, Ended]:
        """Has nodes do a step, as `Crew.do`; hears of finished files, and shows progress."""
        self._done = {}

        def on_told(node: str, said: Told) -> None:
            self._done[node] = said.done_bytes
            if step == "pass_two":
                for line in said.finished:
                    if line["seen"] is not None:
                        self.finish(number_of(line["path"]), line)
            self._show(step)

        ended = self.crew.do(step, asked, on_told)
        for node, each in ended.items():
            self._told.setdefault(node, {})[step] = told(each)
        return ended

    def _show(self, step: str) -> None:
        """Progress: records that lie with their owners, and those that are sorted."""
        if step == "sample":
            return
        schedule, now = self.schedule, sum(self._done.values())
        came, whole = sum(schedule.came), schedule.input_bytes
        if step == "pass_one":
            done = min(came + now, whole) + schedule.written.bytes
        else:
            done = came + max(schedule.written.bytes, min(now, whole))
        self._on_progress(min(done, 2 * whole), 2 * whole)

    def take_told(self) -> dict[str, dict[str, Any]]:
        """What nodes told of their steps since this was last asked."""
        taken, self._told = self._told, {}
        return taken

    def finish(self, place: int, line: Mapping[str, Any]) -> None:
        """Takes a file of a partition; when all of it is there, it is finished."""
        size = self.sums.setdefault(place, Sums()).add(line)
        if size == self.schedule.came[place]:
            files = sorted(self.sums[place].files, key=lambda file: Path(file.path).name)
            self.schedule.sorted(place, files)

    def lose_all(
        self,
        ended: Mapping[str, Ended],
        judged: Collection[str] = (),
        blames: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        """Loses who is gone, whose disk failed, and whom others cannot reach."""
        for node, end in sorted(ended.items()):
            if end.kind in (GONE, INPUT):
                self.lose(node, end.why)
            elif end.kind == DISK:
                self.lose(node, end.why, reads=node in self.schedule.keepers)
        for node in judged:
            if node not in self.lost:
                why = "others cannot exchange data with it"
                if blames is not None and node in blames:
                    why = f"failed twice: {ended[node].why}"
                self.crew.lose(node, why)
                self.lose(node, why)

    def lose(self, node: str, why: str, *, reads: bool = False, joins: bool = False) -> None:
        """Takes a node for lost, but for finished partitions that can still be seen."""
        schedule = self.schedule
        if not reads and not joins and node in self.crew.members:
            self.crew.lose(node, why)
        if not joins:
            self.lost[node] = why
        done = [place for place in schedule.finished if schedule.owner[place] == node]
        paths = [file.path for place in done for file in schedule.finished[place]]
        self.witness.pop(node, None)
        seen = set(paths) if reads or joins else self._seen_by_another(node, paths)
        keeps = {
            place: schedule.finished[place]
            for place in done
            if seen.issuperset(file.path for file in schedule.finished[place])
        }
        self.home.keep(lost_event(node, why, reads, joins, keeps))
        schedule.lose(node, reads=reads, keeps=keeps, joins=joins)
        for other in [each for each, witness in self.witness.items() if witness == node]:
            del self.witness[other]
            self.find_witness(other)
        if reads or joins:
            # What it keeps on a disk that fails, or is full, is whole; the rest may go or not.
            self.crew.do("drop", {node: {"keeps": list(keeps)}})
        elif node in self.witness:
            output = self.asked.on(node, self.asked.output)
            drop = {"keeps": list(keeps), "output": list(output)}
            self.crew.do("drop", {self.witness[node]: drop})

    def _seen_by_another(self, node: str, paths: Sequence[str]) -> set[str]:
        """Which finished files of a lost node another one sees, as they were: its witness."""
        known = {seen.path: seen for sums in self.sums.values() for seen in sums.seen}
        if not paths:
            return set()
        others = [each for each in self.crew.nodes if each != node]
        ended = self.crew.do("sees", {other: list(paths) for other in others})
        found = {
            other: {each.path for each in end.answer if known.get(each.path) == each}
            for other, end in sorted(ended.items())
            if end.kind is None
        }
        best = max(found, key=lambda other: len(found[other]), default=None)
        if best is None or not found[best]:
            return set()
        self.witness[node] = best
        return found[best]

    def find_witness(self, node: str) -> None:
        """Finds again who sees the output that a lost node has left, if it is used."""
        schedule = self.schedule
        used = [place for place in schedule.finished if schedule.owner[place] == node]
        sizes = {file.path: file.total.bytes for place in used for file in schedule.finished[place]}
        if not sizes or node in self.crew.nodes:
            return
        ended = self.crew.do("sees", {other: list(sizes) for other in self.crew.nodes})
        for other, end in sorted(ended.items()):
            if end.kind is None and {each.path: each.bytes for each in end.answer} == sizes:
                self.witness[node] = other
                return
        self.lose(node, self.lost[node])

    def why_gone(self, node: str) -> str:
        """Why a node that is not asked any more is not."""
        member = self.crew.members.get(node)
        return (member.gone if member else None) or "is not in the cluster any more"

    def seen_output(self, witness: str) -> list[str]:
        """The directories of lost nodes that a node sees, and finishes for them."""
        nodes = [node for node, other in self.witness.items() if other == witness]
        return [path for node in nodes for path in self.asked.on(node, self.asked.output)]

    def files(self, splits: Sequence[Split], numbers: Iterable[int]) -> list[Seen]:
        """The files of splits as they are to be."""
        wanted = {(splits[each].path, splits[each].holders) for each in numbers}
        return [each for each, nodes in self.held.items() if (each.path, nodes) in wanted]

    def refuse_changed(self, node: str, end: Ended) -> None:
        """Fails if a node has found that the input is not what it was."""
        if end.kind == CHANGED:
            raise engine.Failed(f"{node}: {end.why}: begin again with another --out")
