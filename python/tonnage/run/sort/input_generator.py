"""Hands on machines: what lies on their disks before a job, and goes after it.

A study's input is written on each machine, at once on all, and what the study leaves is removed. A
process a machine does both, one call after another; records come in slices, so that it can be told
how far all are.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tonnage.base import core
from tonnage.cluster import version_check
from tonnage.cluster.ray_adapter import RemoteWorker, Cluster, WorkerLost, Machine, installed_here
from tonnage.cluster.version_check import InstalledVersion
from tonnage.run.sort.gensort import RECORD_BYTES, generate
from tonnage.run.two_pass.job_spec import NODE_PLACEHOLDER

READY_SECONDS = 60.0
"""A process is ready within this: Ray starts it, and it loads what it needs."""
SLICE_RECORDS = 2_500_000
"""What a call writes: 250 MB."""
SLICE_SECONDS = 600.0
"""Within this it has, on a disk that writes 0.4 MB/s."""
ASK_SECONDS = 1.0


class DataWorker:
    """The process on a machine."""

    def room(self, directories: Sequence[str]) -> list[int | str]:
        """Free bytes of each directory's device, or why it cannot be used."""
        return [_free(Path(each)) for each in directories]

    def write(self, file: str, start: int, records: int) -> None:
        """Writes records to a file that is not there yet, in directories that need not be.

        Raises:
            UsageError: There is no room for it, or it cannot be made.
            RunError: It failed while it ran.
        """
        path = Path(file)
        path.parent.mkdir(parents=True, exist_ok=True)
        generate(records, [path], start=start)

    def settle(self) -> None:
        """Waits until the disks have all: what is measured next is not what this has to write."""
        os.sync()

    def remove(self, directories: Sequence[str]) -> None:
        """Removes directories with all that is in them; those that are not there are skipped."""
        for each in directories:
            if os.path.lexists(each):
                shutil.rmtree(each)


class DataGenerator:
    """One on each of these machines; made by `hands`.

    Args:
        cluster: Whose machines they are.
        actors: Their processes.
        lacking: Why machines have none.
    """

    def __init__(
        self, cluster: Cluster, actors: Mapping[str, RemoteWorker], lacking: Mapping[str, str]
    ) -> None:
        self._cluster, self._actors, self._lacking = cluster, actors, lacking

    def room(self, directories: Sequence[str]) -> dict[str, dict[str, int]]:
        """Free bytes by machine and directory; paths may have `NODE` in them.

        Raises:
            UsageError: A machine cannot use one.
        """
        self._refuse_lacking()
        asked = {node: ([_on(each, node) for each in directories],) for node in self._actors}
        answers, failed = self._all("room", asked, READY_SECONDS)
        _fail(failed)
        found: dict[str, dict[str, int]] = {}
        for node, answer in answers.items():
            for directory, free in zip(directories, answer, strict=True):
                if isinstance(free, str):
                    raise core.UsageError(f"--dir {directory}: {node}: {free}")
                found.setdefault(node, {})[directory] = free
        return found

    def lay_out(
        self,
        shares: Mapping[str, int],
        directories: Sequence[str],
        on_bytes: Callable[[int], None] = lambda _: None,
    ) -> None:
        """Writes records, each once among all machines, each directory's share into files there.

        Args:
            shares: How many each machine gets.
            directories: Where to, with `NODE` in them; they share a machine's.
            on_bytes: Called with how many are written, of all machines together.

        Raises:
            UsageError: A machine has no Tonnage, or another one.
            RunError: A machine could not, or is gone.
        """
        self._refuse_lacking()
        left: dict[str, list[tuple[str, int, int]]] = {}
        start = 0
        for node, records in shares.items():
            left[node] = list(_slices([_on(each, node) for each in directories], start, records))
            start += records
        calls: dict[str, Any] = {}
        ends_by: dict[str, float] = {}
        done = 0
        while left:
            for node in left.keys() - calls.keys():
                calls[node] = self._actors[node].ask("write", *left[node][0])
                ends_by[node] = time.monotonic() + SLICE_SECONDS
            answered = self._cluster.wait(list(calls.values()), ASK_SECONDS)
            for node, call in list(calls.items()):
                if call in answered:
                    self._answer(node, calls.pop(node), ASK_SECONDS)
                    done += left[node].pop(0)[2] * RECORD_BYTES
                elif time.monotonic() > ends_by[node]:
                    raise core.RunError(f"{node} wrote nothing for {SLICE_SECONDS:.0f} s")
            left = {node: slices for node, slices in left.items() if slices}
            on_bytes(done)
        _, failed = self._all("settle", {node: () for node in shares}, SLICE_SECONDS)
        _fail(failed)

    def remove(self, directories: Sequence[str]) -> dict[str, str]:
        """Removes directories, with `NODE` in them, where that can be; gives why elsewhere not."""
        asked = {node: ([_on(each, node) for each in directories],) for node in self._actors}
        _, failed = self._all("remove", asked, SLICE_SECONDS)
        return {**self._lacking, **failed}

    def _refuse_lacking(self) -> None:
        for why in self._lacking.values():
            raise core.UsageError(why)

    def _all(
        self, method: str, asked: Mapping[str, tuple[Any, ...]], seconds: float
    ) -> tuple[dict[str, Any], dict[str, str]]:
        """What each answered, and why others did not."""
        calls = {node: self._actors[node].ask(method, *of) for node, of in asked.items()}
        until = time.monotonic() + seconds
        found, failed = {}, {}
        for node, call in calls.items():
            try:
                found[node] = self._answer(node, call, max(until - time.monotonic(), ASK_SECONDS))
            except core.RunError as why:
                failed[node] = str(why)
        return found, failed

    def _answer(self, node: str, call: Any, seconds: float) -> Any:
        try:
            return self._cluster.answer(call, seconds)
        except TimeoutError:
            raise core.RunError(f"{node} did not answer within {seconds:.0f} s") from None
        except WorkerLost as why:
            raise core.RunError(f"{node}: {why}") from None


@contextmanager
def data_generator(cluster: Cluster, machines: Sequence[Machine]) -> Iterator[DataGenerator]:
    """A hand on each of these machines that can have one, gone afterwards."""
    actors = {each.name: cluster.place(each, DataWorker) for each in machines}
    try:
        here = installed_here()
        looks = {node: actor.look() for node, actor in actors.items()}
        lacking, until = {}, time.monotonic() + READY_SECONDS
        for node, call in looks.items():
            try:
                there = InstalledVersion(*cluster.answer(call, max(until - time.monotonic(), ASK_SECONDS)))
            except TimeoutError:
                lacking[node] = f"{node} did not answer within {READY_SECONDS:.0f} s"
            except WorkerLost as why:
                lacking[node] = f"{node}: {why}"
            else:
                if differs := version_check.difference(here, there):
                    lacking[node] = f"{node} {differs}"
        ready = {node: actor for node, actor in actors.items() if node not in lacking}
        for actor in ready.values():
            actor.become()
        yield DataGenerator(cluster, ready, lacking)
    finally:
        for actor in actors.values():
            actor.kill()


def _free(directory: Path) -> int | str:
    if not directory.is_dir():
        return "there is no such directory: make it first"
    if not os.access(directory, os.W_OK | os.X_OK):
        return "it may not be written to: give another one"
    about = os.statvfs(directory)
    return about.f_bavail * about.f_frsize


def _slices(directories: Sequence[str], start: int, records: int) -> Iterator[tuple[str, int, int]]:
    """Files with their first record and their number of records, one directory after another."""
    ends = [records * (place + 1) // len(directories) for place in range(len(directories))]
    done = number = 0
    for directory, end in zip(directories, ends, strict=True):
        while done < end:
            count = min(SLICE_RECORDS, end - done)
            yield f"{directory}/records-{number:05}", start + done, count
            done, number = done + count, number + 1


def _fail(failed: Mapping[str, str]) -> None:
    for why in failed.values():
        raise core.RunError(why)


def _on(path: str, node: str) -> str:
    return path.replace(NODE_PLACEHOLDER, node)
