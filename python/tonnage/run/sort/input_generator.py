"""A study's data on the nodes of a cluster: its input is written, and what it leaves is removed.

All nodes do so at once. Records come in files of some hundred megabytes.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import NoneType
from typing import Any, TypeVar

from tonnage.base import core
from tonnage.cluster.failure_kinds import Failure
from tonnage.cluster.protocol import Heartbeat, Idle, Message, Step, StepResult
from tonnage.cluster.ray_adapter import Cluster, Machine
from tonnage.cluster.step_worker import Handler, WorkerSteps
from tonnage.cluster.time_limits import GENERATE_PATIENCE_SECONDS
from tonnage.cluster.worker_pool import WorkerPool
from tonnage.run.sort.gensort import RECORD_BYTES, generate
from tonnage.run.two_pass.job_spec import NODE_PLACEHOLDER

FILE_RECORDS = 2_500_000
"""In a file: 250 MB."""

Q = TypeVar("Q")
R = TypeVar("R")


class Directories(Message, frozen=True):
    paths: list[str]


class FreeSpace(Message, frozen=True):
    """Free bytes of each directory's device, or why it cannot be used."""

    bytes: list[int | str]


class RecordFile(Message, frozen=True):
    """A file of records, in a directory that need not be there yet."""

    path: str
    start: int
    """The first record's number among all."""
    records: int


class Generate(Message, frozen=True):
    files: list[RecordFile]


SPACE = Step("free space", Directories, FreeSpace, idle=Idle.ALONE)
GENERATE = Step("generate", Generate, NoneType, idle=Idle.ALONE)
REMOVE = Step("remove", Directories, NoneType, idle=Idle.ALONE)


@dataclass(frozen=True)
class DataWorker:
    """What makes the worker; it needs to know nothing."""

    def steps(self) -> DataSteps:
        return DataSteps()


class DataSteps(WorkerSteps):
    def handlers(self) -> Sequence[Handler[Any, Any]]:
        return (
            Handler(SPACE, self.space),
            Handler(GENERATE, self.generate),
            Handler(REMOVE, self.remove),
        )

    def space(self, request: Directories, on_progress: core.OnProgress) -> FreeSpace:
        return FreeSpace([_free(Path(each)) for each in request.paths])

    def generate(self, request: Generate, on_progress: core.OnProgress) -> None:
        """Write records, and wait for the disks: writing is not what is measured next."""
        done_bytes = 0
        for file in request.files:
            path = Path(file.path)
            path.parent.mkdir(parents=True, exist_ok=True)
            progress = core.offset_progress(done_bytes, on_progress)
            generate(file.records, [path], start=file.start, on_progress=progress)
            done_bytes += file.records * RECORD_BYTES
            on_progress(done_bytes)
        os.sync()

    def remove(self, request: Directories, on_progress: core.OnProgress) -> None:
        """Removes directories with all that is in them; those that are not there are skipped."""
        for each in request.paths:
            if os.path.lexists(each):
                shutil.rmtree(each)


class DataGenerator:
    """Writes and removes data on the nodes of a pool; made by `data_generator`."""

    def __init__(self, pool: WorkerPool) -> None:
        self._pool = pool

    def space(self, directories: Sequence[str]) -> dict[str, dict[str, int]]:
        """Free bytes by node and directory; paths may have `NODE_PLACEHOLDER` in them."""
        self._refuse_lost()
        free: dict[str, dict[str, int]] = {}
        for node, space in sorted(self._run(SPACE, self._on_all(directories)).items()):
            for directory, size in zip(directories, space.bytes, strict=True):
                if isinstance(size, str):
                    raise core.UsageError(f"{directory}: {node}: {size}", setting="dir")
                free.setdefault(node, {})[directory] = size
        return free

    def generate(
        self,
        shares: Mapping[str, int],
        directories: Sequence[str],
        on_bytes: Callable[[int], None] = lambda _: None,
    ) -> None:
        """Writes records, each once among all nodes.

        Args:
            directories: Where to, with `NODE_PLACEHOLDER` in them; they share a node's records.

        Raises:
            UsageError: A node has no Tonnage, or another one.
            RunError: A node could not, or is lost.
        """
        self._refuse_lost()
        requests, start = {}, 0
        for node, records in shares.items():
            paths = [_on(each, node) for each in directories]
            requests[node] = Generate(list(_files(paths, start, records)))
            start += records
        self._run(GENERATE, requests, on_bytes)

    def remove(self, directories: Sequence[str]) -> dict[str, str]:
        """Removes directories where that can be; gives why it cannot elsewhere, by node."""
        lost = {node: why for node, why in self._lost_nodes.items()}
        results = self._pool.run_step(REMOVE, self._on_all(directories))
        failed = {node: each.reason for node, each in results.items() if each.failure}
        return lost | failed

    @property
    def _lost_nodes(self) -> dict[str, str]:
        return {node: each.lost for node, each in self._pool.workers.items() if each.lost}

    def _refuse_lost(self) -> None:
        for node, why in self._lost_nodes.items():
            raise core.UsageError(f"{node}: {why}")

    def _on_all(self, directories: Sequence[str]) -> dict[str, Directories]:
        return {
            node: Directories([_on(each, node) for each in directories])
            for node in self._pool.nodes
        }

    def _run(
        self,
        step: Step[Q, R],
        requests: Mapping[str, Q],
        on_bytes: Callable[[int], None] = lambda _: None,
    ) -> dict[str, R]:
        """Has nodes do a step; as soon as one fails the others stop; `RunError` if one failed."""
        done: dict[str, int] = {}
        failed: dict[str, StepResult[Any]] = {}

        def on_heartbeat(node: str, heartbeat: Heartbeat) -> None:
            done[node] = heartbeat.done_bytes
            on_bytes(sum(done.values()))
            if heartbeat.result and heartbeat.result.failure and not failed:
                failed[node] = heartbeat.result
                self._pool.stop()

        results = self._pool.run_step(step, requests, on_heartbeat)
        failed |= {node: each for node, each in results.items() if each.failure == Failure.LOST}
        for node, result in failed.items():
            raise core.RunError(f"{node}: {result.reason}")
        return {node: each.value for node, each in results.items()}  # type: ignore[misc]


@contextmanager
def data_generator(cluster: Cluster, machines: Sequence[Machine]) -> Iterator[DataGenerator]:
    """A worker on each of these machines that can have one, gone afterwards."""
    with WorkerPool(cluster, machines, GENERATE_PATIENCE_SECONDS, "DataWorker") as pool:
        pool.ready(lambda _: DataWorker())
        yield DataGenerator(pool)


def _free(directory: Path) -> int | str:
    if not directory.is_dir():
        return "the directory does not exist; create it first"
    if not os.access(directory, os.W_OK | os.X_OK):
        return "the directory is not writable; use another one"
    about = os.statvfs(directory)
    return about.f_bavail * about.f_frsize


def _files(directories: Sequence[str], start: int, records: int) -> Iterator[RecordFile]:
    ends = [records * (place + 1) // len(directories) for place in range(len(directories))]
    done = number = 0
    for directory, end in zip(directories, ends, strict=True):
        while done < end:
            count = min(FILE_RECORDS, end - done)
            yield RecordFile(f"{directory}/records-{number:05}", start + done, count)
            done, number = done + count, number + 1


def _on(path: str, node: str) -> str:
    return path.replace(NODE_PLACEHOLDER, node)
