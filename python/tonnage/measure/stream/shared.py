"""Files in order on one directory that several machines have mounted, all at once, as IOR does it.

Every machine writes its own part of one file, or files of its own, and reads what the next machine
wrote: what it wrote itself it might have in memory (IOR's ``-C``). Files are new for every writing.
Machines meet before each trial, twice: when all are done with the last one, so that files can be
made, and when all are ready, to begin at one moment. That the directory is one and the same is not
believed: each has to see what the first one made there.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from msgspec import structs

from tonnage.base import core
from tonnage.base.core import lease
from tonnage.base.core.lease import Lease
from tonnage.base.records import Trial, TrialSpec
from tonnage.base.records.network_rounds import ATTEMPT, LATE, NODES
from tonnage.cluster.peers import Barrier, BarrierResult
from tonnage.measure.stream.trial import StreamSettings, core_config, drop_cached_pages, run_trial
from tonnage.measure.trial.session import MeasurementSession

DATA_PREFIX = ".tonnage-shared-stream-"


def shared_trials(
    directory: Path,
    settings: StreamSettings,
    steps: Iterable[TrialSpec],
    kept: MeasurementSession,
    peers: Barrier,
    on_progress: core.OnProgress | None,
) -> Iterator[Trial]:
    """Does the steps that any machine does not have on file; gives those that are new here.

    Who has a step on file does it again with the others, and keeps the first.

    Raises:
        UsageError: A machine does not see what another one made in the directory, or there is no room.
        RunError: The file system failed, or the machine that was to make something is gone.
    """
    said = peers.wait(len(kept.trials)).said
    nodes = list(said)
    todo = list(enumerate(steps))[min(said.values()) :]
    if not todo:
        return
    with _room(directory, peers, nodes, on_progress) as (room, held):
        core.require_free_space([(room, len(nodes) * settings.bytes)], "what all write and read")
        share = _Share(room, held, peers, nodes, settings)
        if todo[0][1].operation == "read":
            share.ready(writes=True)
            core.run("ops_bench", share.config(peers.node, writes=True))
        for number, step in todo:
            writes = step.operation == "write"
            met = share.ready(writes)
            of = peers.node if writes else _next(list(met.said), peers.node)
            watched = core.offset_progress(number * settings.bytes, on_progress)
            own = share.config(of, writes)
            found = run_trial(own, step, settings, directory, watched)
            took = found.phase.stages[0].bytes / found.bytes_per_second
            late = time.monotonic() - met.at - took
            # No other command has drawn this name; all that meet have been told it.
            told: dict[str, Any] = {NODES: len(met.said), LATE: late, ATTEMPT: room.name}
            if writes:
                share.settle()
            else:
                told["read_of"] = of
            if number >= len(kept.trials):
                yield kept.add(_with(found, told))
        share.gather()  # Nobody leaves while another reads what it wrote.


@dataclass(frozen=True)
class _Share:
    """This machine's part."""

    room: Path
    held: Lease
    peers: Barrier
    nodes: Sequence[str]
    """All that began; where their parts are follows from their order."""
    settings: StreamSettings

    def gather(self) -> list[str]:
        """Waits until all are done with what they did; who they are."""
        there = list(self.peers.wait(None).said)
        self.held.known_holders = {str(self.nodes.index(each)) for each in there}
        return there

    def ready(self, writes: bool) -> BarrierResult:
        """Once all are done with the last trial: makes ready for the next, and waits for all."""
        there = self.gather()
        if not writes:
            if not self.settings.direct:
                for file in self._files(_next(there, self.peers.node)):
                    drop_cached_pages(file)
        elif not self.settings.shared or self.peers.node == there[0]:
            for file in self._files(self.peers.node):
                file.unlink(missing_ok=True)
                with file.open("xb") as made:
                    made.truncate(self._file_bytes)
        return self.peers.wait(None)

    def settle(self) -> None:
        """Has what was written reach the file system, where others read it."""
        if not self.settings.flush:
            for file in self._files(self.peers.node):
                drop_cached_pages(file)

    def config(self, node: str, writes: bool) -> dict[str, Any]:
        """What the core is to do with the part of ``node``."""
        told = core_config(self._files(node), self.settings, writes)
        if self.settings.shared:
            workers = self.settings.workers
            first = self.nodes.index(node) * workers
            told["segments"]["among"] = {"parts": len(self.nodes) * workers, "first": first}
        return told

    @property
    def _file_bytes(self) -> int:
        """How long a file will be; of its own, the core makes it so."""
        return len(self.nodes) * self.settings.bytes if self.settings.shared else 0

    def _files(self, node: str) -> list[Path]:
        if self.settings.shared:
            return [self.room / "file"]
        place = self.nodes.index(node)
        return [self.room / f"file-{place}-{number}" for number in range(self.settings.workers)]


@contextmanager
def _room(
    directory: Path, peers: Barrier, nodes: Sequence[str], on_progress: core.OnProgress | None
) -> Iterator[tuple[Path, Lease]]:
    """A directory in ``directory`` that the first node makes and all see; gone afterwards."""
    first = nodes[0]
    name = None
    with ExitStack() as stack:
        if peers.node == first:
            wait = core.offset_progress(0, on_progress) or (lambda _: None)
            room = lease.create_leased_dir("dir", directory, DATA_PREFIX, lambda: wait(0))
            held = stack.enter_context(lease.hold_lease(room, "0"))
            name = room.name
        name = peers.wait(name).said.get(first)
        if name is None:
            raise core.RunError(f"{first} did not make a directory in {directory}")
        room = directory / name
        sees = room.is_dir()
        if sees and peers.node != first:
            held = stack.enter_context(lease.hold_lease(room, str(nodes.index(peers.node))))
        if blind := [node for node, each in peers.wait(sees).said.items() if not each]:
            raise core.UsageError(
                f"--dir {directory} is not the same for all: what {first} made there is not seen "
                f"by {', '.join(blind)}"
            )
        yield room, held


def _next(nodes: Sequence[str], node: str) -> str:
    return nodes[(nodes.index(node) + 1) % len(nodes)]


def _with(trial: Trial, told: dict[str, Any]) -> Trial:
    assert trial.reading is not None
    reading = structs.replace(trial.reading, details=trial.reading.details | told)
    return structs.replace(trial, reading=reading)
