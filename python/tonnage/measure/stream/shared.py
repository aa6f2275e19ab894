"""Sequential reads and writes in a directory that several nodes share, all at once, as IOR does.

Every node writes its own part of one file, or files of its own, and reads what the next node wrote:
its own data might be in its memory (IOR's ``-C``). Files are created anew for each write trial. The
nodes meet twice before each trial: when all have finished the previous one, so that files can be
created, and when all are ready, so that they start together. Each node checks that it sees what the
first one created, so the directory really is shared.
"""

import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from msgspec import structs

from tonnage.base import core
from tonnage.base.core import directory_lease
from tonnage.base.core.directory_lease import Lease
from tonnage.base.records import Trial, TrialSpec
from tonnage.base.records.network_rounds import ATTEMPT, LATE, NODES
from tonnage.cluster.barrier import Barrier, BarrierResult
from tonnage.measure.stream.trial import StreamSettings, core_config, drop_cached_pages, run_trial
from tonnage.measure.trial.session import MeasurementSession

DATA_PREFIX = ".tonnage-shared-stream-"


def shared_trials(
    directory: Path,
    settings: StreamSettings,
    steps: Iterable[TrialSpec],
    session: MeasurementSession,
    barrier: Barrier,
    on_progress: core.OnProgress | None,
) -> Iterator[Trial]:
    """Run the trials that some node has not recorded yet; yields those that are new here.

    A node that has recorded a trial repeats it with the others, and keeps its first result. Raises
    `UsageError` if nodes do not share the directory, `RunError` if the first node is lost.
    """
    recorded = barrier.wait(len(session.trials)).values
    nodes = list(recorded)
    steps_left = list(enumerate(steps))[min(recorded.values()) :]
    if not steps_left:
        return
    with _shared_dir(directory, barrier, nodes, on_progress) as (room, lease):
        core.require_free_space([(room, len(nodes) * settings.bytes)], "the test data of all nodes")
        part = _NodePart(room, lease, barrier, nodes, settings)
        if steps_left[0][1].operation == "read":
            part.prepare(writes=True)
            core.run("ops_bench", part.config(barrier.node, writes=True))
        for number, step in steps_left:
            writes = step.operation == "write"
            start = part.prepare(writes)
            owner = barrier.node if writes else _next(list(start.values), barrier.node)
            progress = core.offset_progress(number * settings.bytes, on_progress)
            config = part.config(owner, writes)
            trial = run_trial(config, step, settings, directory, progress)
            duration = trial.phase.stages[0].bytes / trial.bytes_per_second
            # The directory's name is random, and the same for all nodes of this attempt.
            details: dict[str, Any] = {
                NODES: len(start.values),
                LATE: time.monotonic() - start.at - duration,
                ATTEMPT: room.name,
            }
            if writes:
                part.flush()
            else:
                details["read_of"] = owner
            if number >= len(session.trials):
                yield session.add(_with_details(trial, details))
        part.wait_for_all()  # Nobody leaves while another node reads its files.


@dataclass(frozen=True)
class _NodePart:
    room: Path
    lease: Lease
    barrier: Barrier
    nodes: Sequence[str]
    """All nodes at the start; their order decides which part belongs to which."""
    settings: StreamSettings

    def wait_for_all(self) -> list[str]:
        """Wait until all nodes have finished the previous step; returns those still there."""
        present = list(self.barrier.wait(None).values)
        self.lease.known_holders = {str(self.nodes.index(node)) for node in present}
        return present

    def prepare(self, writes: bool) -> BarrierResult:
        present = self.wait_for_all()
        if not writes:
            if not self.settings.direct:
                for file in self._files(_next(present, self.barrier.node)):
                    drop_cached_pages(file)
        elif not self.settings.shared or self.barrier.node == present[0]:
            for path in self._files(self.barrier.node):
                path.unlink(missing_ok=True)
                with path.open("xb") as new:
                    new.truncate(self._file_bytes)
        return self.barrier.wait(None)

    def flush(self) -> None:
        """Make written data reach the file system, where other nodes read it."""
        if not self.settings.flush:
            for file in self._files(self.barrier.node):
                drop_cached_pages(file)

    def config(self, node: str, writes: bool) -> dict[str, Any]:
        config = core_config(self._files(node), self.settings, writes)
        if self.settings.shared:
            workers = self.settings.workers
            first = self.nodes.index(node) * workers
            config["segments"]["among"] = {"parts": len(self.nodes) * workers, "first": first}
        return config

    @property
    def _file_bytes(self) -> int:
        """The length of a new file; unshared ones are extended by the core."""
        return len(self.nodes) * self.settings.bytes if self.settings.shared else 0

    def _files(self, node: str) -> list[Path]:
        if self.settings.shared:
            return [self.room / "file"]
        place = self.nodes.index(node)
        return [self.room / f"file-{place}-{number}" for number in range(self.settings.workers)]


@contextmanager
def _shared_dir(
    directory: Path, barrier: Barrier, nodes: Sequence[str], on_progress: core.OnProgress | None
) -> Iterator[tuple[Path, Lease]]:
    """A directory in ``directory`` that the first node creates and all see; removed afterwards."""
    first = nodes[0]
    name = None
    with ExitStack() as stack:
        if barrier.node == first:
            progress = core.offset_progress(0, on_progress) or (lambda _: None)
            room = directory_lease.create_leased_dir(
                "dir", directory, DATA_PREFIX, lambda: progress(0)
            )
            lease = stack.enter_context(directory_lease.hold_lease(room, "0"))
            name = room.name
        name = barrier.wait(name).values.get(first)
        if name is None:
            raise core.RunError(f"{first} did not create a directory in {directory}")
        room = directory / name
        is_visible = room.is_dir()
        if is_visible and barrier.node != first:
            lease = stack.enter_context(
                directory_lease.hold_lease(room, str(nodes.index(barrier.node)))
            )
        visible = barrier.wait(is_visible).values
        if blind := [node for node, can_see in visible.items() if not can_see]:
            raise core.UsageError(
                f"{directory} is not shared by all nodes: a directory that {first} created in it "
                f"is not visible to {', '.join(blind)}",
                setting="dir",
            )
        yield room, lease


def _next(nodes: Sequence[str], node: str) -> str:
    return nodes[(nodes.index(node) + 1) % len(nodes)]


def _with_details(trial: Trial, details: dict[str, Any]) -> Trial:
    assert trial.reading is not None
    metric = structs.replace(trial.reading, details=trial.reading.details | details)
    return structs.replace(trial, reading=metric)
