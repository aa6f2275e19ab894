"""The driver of a sort on a fleet: has the nodes do what the schedule says, and tells it what came.

::

    prepare, look    each node: what it has of the input, how much room
    sample           each node its share; boundaries here
    pass_one         round after round, until every record lies where its partition is owned
    pass_two         all owners at once; what is lost meanwhile goes through rounds again
    seal, leave      when the sum of what was written is that of what was read

Data goes from node to node; here come keys of the sample, counts, and names of files. What befell
is on file before anything rests on it (`home`), so the same command goes on after one was killed.
"""

from __future__ import annotations

import secrets
import tempfile
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tonnage import engine, words
from tonnage.artifacts import RunRecord
from tonnage.fleet import planning
from tonnage.fleet.cluster import Cluster
from tonnage.fleet.crew import GONE, Crew, foremost, refuse
from tonnage.fleet.home import (
    Home,
    files_json,
    home,
    lost_event,
    replay,
    round_event,
    seen_from,
    seen_json,
)
from tonnage.fleet.recording import recorded, told
from tonnage.fleet.share import Seen, cut, holders
from tonnage.fleet.site import Look, Place, number_of
from tonnage.fleet.sorter import CHANGED, DISK, FAILED, INPUT, REFUSED, Ended, Sorter
from tonnage.fleet.sorter import Told as SorterTold
from tonnage.run import division
from tonnage.run.schedule import (
    Finished,
    NobodyLeft,
    Outcome,
    Round,
    Schedule,
    Split,
    Total,
    Unreadable,
    share_out,
)
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


def sort_fleet(
    cluster: Cluster,
    out: Path,
    asked: Asked,
    on_progress: Callable[[int, int], None] = lambda *_: None,
    kind: Callable[[], Sorter] = Sorter,
) -> RunRecord:
    """Sorts on all machines of a cluster, or goes on with what an earlier command began.

    Args:
        cluster: Whose machines.
        out: Where what befell is kept.
        asked: What to sort, and where.
        on_progress: Called with the bytes that both passes have moved, and those there are to move.
        kind: What agents are.

    Raises:
        Refused: Arguments, a machine, or the input cannot be used.
        Failed: A part of the input cannot be read any more, no node is left, or what came out is
            not what went in; the same command goes on.
        KeyboardInterrupt: Ctrl-C; nodes have stopped, and the same command goes on.
    """
    with home(out, asked.settings) as kept:
        if kept.is_left:
            return RunRecord.read(kept.run)
        machines = planning.machines(cluster, asked.instances)
        with Crew(cluster, machines, asked.patience_seconds, kind) as crew:
            sorting = Sorting(kept, crew, asked, on_progress)
            crew.ready(lambda node: asked.place(kept.job, node))
            if kept.run.exists():
                sorting.leave()
                return RunRecord.read(kept.run)
            try:
                return sorting.sort()
            except (Unreadable, NobodyLeft) as why:
                lost = [f"{node} {reason}" for node, reason in sorting.lost.items()]
                because = f" (lost: {words.listing(lost)})" if lost else ""
                raise engine.Failed(f"{why}{because}") from why


@dataclass
class _Sums:
    """What pass two has told of a partition so far."""

    files: list[Finished] = field(default_factory=list)
    seen: list[Seen] = field(default_factory=list)

    def add(self, line: Mapping[str, Any]) -> int:
        """Adds a line; gives the bytes of all."""
        total = Total(line["records"], line["bytes"], int(line["checksum"], 16))
        self.files.append(Finished(line["path"], total))
        self.seen.append(line["seen"])
        return sum(file.total.bytes for file in self.files)


class Sorting:
    """One command's dealings with a job."""

    def __init__(
        self, kept: Home, crew: Crew, asked: Asked, on_progress: Callable[[int, int], None]
    ) -> None:
        self._home, self._crew, self._asked = kept, crew, asked
        self._on_progress = on_progress
        self._began = time.monotonic()
        self.lost: dict[str, str] = {}
        """Why each node was lost that was."""
        self._held: dict[Seen, tuple[str, ...]] = {}
        self._schedule: Schedule
        self._workers: dict[str, int] = {}
        self._sums: dict[int, _Sums] = {}
        self._witness: dict[str, str] = {}  # who sees the output of a node that was lost
        self._done: dict[str, int] = {}  # bytes that each node has moved in this step
        self._told: dict[str, dict[str, Any]] = {}  # what is not on file yet of nodes' steps

    def sort(self) -> RunRecord:
        """Does what there is left to do."""
        looks = self._looked()
        if self._home.plan is None:
            self._begin(looks)
        else:
            self._go_on(looks)
        while True:
            while each := self._schedule.next_round():
                self._round(each)
            if left := self._schedule.to_sort():
                self._pass_two(left)
            elif self._sealed():
                return self._whole()

    # Before the first round.

    def _looked(self) -> dict[str, Look]:
        """What is on each node, all of which can be used."""
        crew, fresh = self._crew, self._home.plan is None
        for step in ("prepare", "look"):
            ended = crew.do(step, dict.fromkeys(crew.members if fresh else crew.nodes))
            refuse(ended, REFUSED)
            if fresh and (found := foremost(ended, GONE, DISK, FAILED)):
                node, why = found
                raise engine.Refused(
                    f"{node} {why.why}: mend it, or take it out of the cluster, before its input "
                    "is missed"
                )
            for node in ended:
                if ended[node].kind is not None:
                    crew.lose(node, ended[node].why)
        looks: dict[str, Look] = {node: each.answer for node, each in ended.items() if each.answer}
        for node, look in looks.items():
            if others := {each: where for each, where in look.others.items() if each != node}:
                other, where = next(iter(others.items()))
                raise engine.Refused(
                    f"{where} is one directory on {node} and {other}: write {NODE} in its path"
                )
        self._workers = {node: look.workers for node, look in looks.items()}
        return looks

    def _begin(self, looks: Mapping[str, Look]) -> None:
        asked = self._asked
        planning.refuse_absent(asked.inputs, {node: look.absent for node, look in looks.items()})
        planning.refuse_parts({node: look for node, look in looks.items()})
        weights = planning.weights(sorted(looks), asked.weights)
        held = holders({node: look.files for node, look in looks.items()})
        splits = cut(held, asked.layout.record_bytes)
        planning.refuse_full(looks, weights, sum(split.bytes for split in splits))
        partitions = division.partitions(
            splits, self._workers, asked.layout, asked.memory_bytes, len(asked.scratch)
        )
        self._held = held
        bounds = self._boundaries(splits, partitions)
        plan = seen_json(held) | bounds | {"weights": weights}
        self._home.begin(plan)
        self._schedule = Schedule(splits, len(plan["single"]), weights)
        for node, why in list(self.lost.items()):
            self._lose(node, why)

    def _boundaries(self, splits: Sequence[Split], partitions: int) -> dict[str, Any]:
        """Where partitions begin, of keys that nodes sample of their shares."""
        total = sum(split.bytes for split in splits)
        chunks = division.chunks(partitions)
        keys: list[bytes] = []
        left = list(range(len(splits)))
        while left:
            readers = set(self._crew.nodes)
            shares = share_out(splits, left, readers)
            asked = {
                node: {
                    "splits": [_split(splits[number]) for number in share],
                    "chunks": -(-chunks * sum(splits[each].bytes for each in share) // total) or 1,
                    "files": self._files(splits, share),
                }
                for node, share in shares.items()
            }
            ended = self._do("sample", asked)
            for node, each in ended.items():
                if each.kind is None:
                    keys.append(each.answer)
                    left = [number for number in left if number not in set(shares[node])]
                else:
                    self._refuse_changed(node, each)
                    self.lost[node] = each.why
                    self._crew.lose(node, each.why)
        with tempfile.TemporaryDirectory(prefix="tonnage-keys-") as directory:
            samples = []
            for number, content in enumerate(keys):
                samples.append(Path(directory) / str(number))
                samples[-1].write_bytes(content)
            config = {
                "samples": [str(path) for path in samples],
                "layout": self._asked.layout.to_json(),
                "partitions": partitions,
            }
            return engine.run("fleet_boundaries", config)

    def _go_on(self, looks: Mapping[str, Look]) -> None:
        """Takes up what an earlier command left: what is on file, as far as nodes still have it."""
        plan = self._home.plan
        assert plan is not None
        self._held = seen_from(plan)
        splits = cut(self._held, self._asked.layout.record_bytes)
        schedule = self._schedule = Schedule(splits, len(plan["single"]), plan["weights"])
        for event in self._home.events:
            replay(schedule, event)
            if event["event"] == "lost":
                self.lost.pop(event["node"], None)
                if not event["joins"]:
                    self.lost[event["node"]] = event["why"]
        for node, look in looks.items():
            there = set(look.files)
            for each, nodes in self._held.items():
                if node in nodes and each not in there:
                    raise engine.Failed(
                        f"input {each.path} on {node} is not what it was when the sort began: "
                        "begin again with another --out"
                    )
            for line in look.finished:
                place = number_of(line["path"])
                if line["seen"] is not None and schedule.owner[place] == node:
                    self._finish(place, line)
        for node in sorted(schedule.readers | set(looks)):
            if node not in looks:
                if node in schedule.readers or node in schedule.keepers:
                    self._lose(node, self._why_gone(node))
            elif node not in schedule.keepers or not {*schedule.scratch[node]} <= {
                *looks[node].rounds
            }:
                self._lose(node, "had lost what it held", joins=True)
        for node in sorted(self.lost):
            self._find_witness(node)

    def _why_gone(self, node: str) -> str:
        member = self._crew.members.get(node)
        return (member.gone if member else None) or "is not in the cluster any more"

    # Pass one.

    def _round(self, each: Round) -> None:
        schedule, asked = self._schedule, self._asked
        addresses = self._crew.addresses(each.nodes)
        if gone := [node for node in each.nodes if node not in addresses]:
            for node in gone:
                self._lose(node, self._why_gone(node))
            return
        nodes = each.nodes
        plan = self._home.plan
        assert plan is not None
        number_of_node = {node: number for number, node in enumerate(nodes)}
        owners: list[int | None] = [None] * schedule.partitions
        for place, node in each.owners.items():
            owners[place] = number_of_node[node]
        mesh = {
            "endpoints": [addresses[node] for node in nodes],
            "connections": asked.connections,
            "secret": secrets.token_hex(32),
            "patience_seconds": asked.patience_seconds,
            "checked": True,
        }
        blocks = division.block_bytes(
            each, schedule, self._workers, asked.layout, asked.memory_bytes, len(asked.scratch)
        )
        rooms = division.rooms(each, schedule)
        config = {
            node: {
                "number": each.number,
                "files": self._files(schedule.splits, each.reads.get(node, ())),
                "mesh": mesh | {"number": number_of_node[node]},
                "splits": [_split(schedule.splits[one]) for one in each.reads.get(node, ())],
                "bounds": plan["bounds"],
                "owners": owners,
                "room_bytes": rooms.get(node, 0),
                "block_bytes": blocks,
            }
            for node in nodes
        }
        began = time.monotonic()
        ended = self._do("pass_one", config)
        outcomes, blames = {}, {}
        for node, end in ended.items():
            self._refuse_changed(node, end)
            if end.kind is None:
                outcomes[node] = _outcome(end.answer, each, node, nodes)
            elif end.kind in (FAILED, REFUSED):
                blames[node] = planning.blamed(end.why, nodes)
        event = round_event(each, outcomes, blames)
        event |= {"seconds": time.monotonic() - began, "told": self._take_told()}
        event["bytes"] = sum(sum(outcome.partitions.values()) for outcome in outcomes.values())
        judged = schedule.round_ended(each, outcomes, blames)
        self._home.keep(event)
        self._lose_all(ended, judged, blames)

    def _lose_all(
        self,
        ended: Mapping[str, Ended],
        judged: Collection[str] = (),
        blames: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        """Loses who is gone, whose disk failed, and whom others cannot reach."""
        for node, end in sorted(ended.items()):
            if end.kind in (GONE, INPUT):
                self._lose(node, end.why)
            elif end.kind == DISK:
                self._lose(node, end.why, reads=node in self._schedule.keepers)
        for node in judged:
            if node not in self.lost:
                why = "others cannot exchange data with it"
                if blames is not None and node in blames:
                    why = f"failed twice: {ended[node].why}"
                self._crew.lose(node, why)
                self._lose(node, why)

    def _lose(self, node: str, why: str, *, reads: bool = False, joins: bool = False) -> None:
        """Takes a node for lost, but for finished partitions that can still be seen."""
        schedule = self._schedule
        if not reads and not joins and node in self._crew.members:
            self._crew.lose(node, why)
        if not joins:
            self.lost[node] = why
        done = [place for place in schedule.finished if schedule.owner[place] == node]
        paths = [file.path for place in done for file in schedule.finished[place]]
        self._witness.pop(node, None)
        seen = set(paths) if reads or joins else self._seen_by_another(node, paths)
        keeps = {
            place: schedule.finished[place]
            for place in done
            if seen.issuperset(file.path for file in schedule.finished[place])
        }
        self._home.keep(lost_event(node, why, reads, joins, keeps))
        schedule.lose(node, reads=reads, keeps=keeps, joins=joins)
        if reads or joins:
            # What it keeps on a disk that fails, or is full, is whole; the rest may go or not.
            self._crew.do("drop", {node: {"keeps": list(keeps)}})
        elif node in self._witness:
            output = self._asked.on(node, self._asked.output)
            drop = {"keeps": list(keeps), "output": list(output)}
            self._crew.do("drop", {self._witness[node]: drop})

    def _seen_by_another(self, node: str, paths: Sequence[str]) -> set[str]:
        """Which finished files of a lost node another one sees, as they were: its witness."""
        known = {seen.path: seen for sums in self._sums.values() for seen in sums.seen}
        if not paths:
            return set()
        others = [each for each in self._crew.nodes if each != node]
        ended = self._crew.do("sees", {other: list(paths) for other in others})
        found = {
            other: {each.path for each in end.answer if known.get(each.path) == each}
            for other, end in sorted(ended.items())
            if end.kind is None
        }
        best = max(found, key=lambda other: len(found[other]), default=None)
        if best is None or not found[best]:
            return set()
        self._witness[node] = best
        return found[best]

    def _find_witness(self, node: str) -> None:
        """Finds again who sees the output that a lost node has left, if it is used."""
        schedule = self._schedule
        used = [place for place in schedule.finished if schedule.owner[place] == node]
        paths = [file.path for place in used for file in schedule.finished[place]]
        if not paths or node in self._crew.nodes:
            return
        ended = self._crew.do("sees", dict.fromkeys(self._crew.nodes, paths))
        for other, end in sorted(ended.items()):
            if end.kind is None and len(end.answer) == len(paths):
                self._witness[node] = other
                return
        self._lose(node, self.lost[node])

    # Pass two.

    def _pass_two(self, left: Mapping[str, Sequence[int]]) -> None:
        schedule, plan = self._schedule, self._home.plan
        assert plan is not None
        asked = {}
        for node, places in left.items():
            filled = [place for place in places if schedule.came[place]]
            for place in places:
                self._sums.pop(place, None)
                if not schedule.came[place]:
                    schedule.sorted(place, [])
            if filled:
                asked[node] = {
                    "rounds": schedule.scratch[node],
                    "partitions": [
                        {"number": place, "single": plan["single"][place]} for place in filled
                    ],
                }
        began = time.monotonic()
        ended = self._do("pass_two", asked)
        event = {"event": "pass_two", "seconds": time.monotonic() - began}
        self._home.keep(event | {"told": self._take_told()})
        self._lose_all(ended)
        for node, end in sorted(ended.items()):
            if end.kind in (FAILED, REFUSED):
                raise engine.Failed(f"{node}: {end.why}")
            missing = [each for each in left[node] if each not in schedule.finished]
            if end.kind is None and missing:
                raise engine.Failed(
                    f"{node}: of partition {missing[0]} {schedule.came[missing[0]]} bytes came, "
                    "and others were written: nothing is called done"
                )

    def _finish(self, place: int, line: Mapping[str, Any]) -> None:
        """Takes a file of a partition; when all of it is there, it is finished."""
        size = self._sums.setdefault(place, _Sums()).add(line)
        if size == self._schedule.came[place]:
            files = sorted(self._sums[place].files, key=lambda file: Path(file.path).name)
            self._schedule.sorted(place, files)

    # The end.

    def _sealed(self) -> bool:
        """Whether all directories have their manifest; who could not write it is lost."""
        schedule = self._schedule
        read, written = schedule.read, schedule.written
        if read != written or read.bytes != schedule.input_bytes:
            raise engine.Failed(
                f"what was written ({_in_words(written)}) is not what was read ({_in_words(read)}) "
                f"of {schedule.input_bytes} bytes: nothing is called done"
            )
        files = self._files_in_order()
        manifest = {
            "format": "tonnage.output/1",
            "records": read.records,
            "bytes": read.bytes,
            "checksum": f"{read.checksum:x}",
            "parts": [Path(each["path"]).name for each in files],
        }
        keepers = {schedule.owner[place] for place, found in schedule.finished.items() if found}
        asked = {
            node: {"manifest": manifest, "output": self._seen_output(node)}
            for node in self._crew.nodes
            if node in schedule.keepers or node in keepers
        }
        ended = self._crew.do("seal", asked)
        for node, end in sorted(ended.items()):
            if end.kind is not None:
                self._crew.lose(node, end.why)
                self._lose(node, end.why)
        if unsealed := [node for node in keepers if node not in {*asked, *self._witness}]:
            self._lose(unsealed[0], self._why_gone(unsealed[0]))
            return False
        self._home.list_files(files)
        return all(end.kind is None for end in ended.values())

    def _whole(self) -> RunRecord:
        record = recorded(
            self._home,
            self._schedule,
            self._asked.command,
            self._asked.settings | {"connections": self._asked.connections},
            time.monotonic() - self._began,
            self.lost,
        )
        record.write(self._home.run)
        self.leave()
        return record

    def leave(self) -> None:
        """Has nodes remove all but the output."""
        if not self._home.is_left:
            nodes = self._crew.nodes
            ended = self._crew.do("leave", {node: self._seen_output(node) for node in nodes})
            if all(end.kind is None for end in ended.values()):
                self._home.leave(nodes)  # Else the same command does it, when they are back.

    def _seen_output(self, witness: str) -> list[str]:
        """The directories of lost nodes that a node sees, and finishes for them."""
        nodes = [node for node, other in self._witness.items() if other == witness]
        return [path for node in nodes for path in self._asked.on(node, self._asked.output)]

    def _files_in_order(self) -> list[dict[str, Any]]:
        schedule = self._schedule
        return [
            {
                "node": schedule.owner[place],
                "path": path,
                "records": records,
                "bytes": size,
                "checksum": f"{checksum:x}",
            }
            for place in sorted(schedule.finished)
            for path, records, size, checksum in files_json(schedule.finished[place])
        ]

    # What all steps have in common.

    def _do(self, step: str, asked: Mapping[str, Any]) -> dict[str, Ended]:
        self._done = {}

        def on_told(node: str, said: SorterTold) -> None:
            self._done[node] = said.done_bytes
            if step == "pass_two":
                for line in said.finished:
                    if line["seen"] is not None:
                        self._finish(number_of(line["path"]), line)
            self._show(step)

        ended = self._crew.do(step, asked, on_told)
        for node, each in ended.items():
            self._told.setdefault(node, {})[step] = told(each)
        return ended

    def _show(self, step: str) -> None:
        """Progress: records that lie with their owners, and those that are sorted."""
        if step == "sample":
            return
        schedule, now = self._schedule, sum(self._done.values())
        came, whole = sum(schedule.came), schedule.input_bytes
        if step == "pass_one":
            done = min(came + now, whole) + schedule.written.bytes
        else:
            done = came + max(schedule.written.bytes, min(now, whole))
        self._on_progress(min(done, 2 * whole), 2 * whole)

    def _take_told(self) -> dict[str, dict[str, Any]]:
        taken, self._told = self._told, {}
        return taken

    def _files(self, splits: Sequence[Split], numbers: Iterable[int]) -> list[Seen]:
        """The files of splits as they are to be."""
        wanted = {(splits[each].path, splits[each].holders) for each in numbers}
        return [each for each, nodes in self._held.items() if (each.path, nodes) in wanted]

    def _refuse_changed(self, node: str, end: Ended) -> None:
        if end.kind == CHANGED:
            raise engine.Failed(f"{node}: {end.why}: begin again with another --out")


def _split(split: Split) -> dict[str, Any]:
    return {"path": split.path, "offset": split.offset, "bytes": split.bytes}


def _outcome(told: Mapping[str, Any], each: Round, node: str, nodes: Sequence[str]) -> Outcome:
    """What the core tells of a round, with nodes' names."""
    lost = {nodes[link["peer"]] for link in told["received"] if link["lost"] is not None}
    partitions = {
        place: told["partitions"][place] for place, owner in each.owners.items() if owner == node
    }
    return Outcome(Total(**told["read"]), tuple(sorted(lost)), partitions)


def _in_words(total: Total) -> str:
    return f"{total.records} records, {total.bytes} bytes, checksum {total.checksum:x}"
