"""Merging on a cluster: which nodes are lost at the same time, and when the job gives up."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from support.cluster import user_function_gate
from support.cluster.checksums import COLUMNS, Checksum, Rows, put, rows_of, total
from support.cluster.machines import Machines
from support.cluster.reducers import ReduceMachines, asked
from support.stores.s3 import BUCKET, Bucket
from tonnage.base import core
from tonnage.cluster import protocol
from tonnage.cluster.protocol import FetchObject, Heartbeat
from tonnage.cluster.step_worker import StepWorker
from tonnage.cluster.time_limits import MERGE_FAILURE_SECONDS
from tonnage.cluster.worker_pool import WorkerPool
from tonnage.run.formats import chunk_format
from tonnage.run.reduce import index_store
from tonnage.run.reduce.cluster import tree_merge
from tonnage.run.reduce.cluster.driver import reduce_on_cluster
from tonnage.run.reduce.cluster.messages import LEARN, REDUCE, FindChunks, Learn, Reduce
from tonnage.run.reduce.cluster.tree_merge import MAX_ATTEMPTS, MergeAttempts
from tonnage.run.reduce.cluster.worker import ReduceConfig, ReduceWorker
from tonnage.run.reduce.index import build_index, to_bytes
from tonnage.run.reduce.local_round import ComputeFlag
from tonnage.run.storage.object_store import ObjectStoreOptions
from tonnage.run.storage.sources import Sources

NODES = ("a", "b", "c")


class Dying(ReduceMachines):
    """Machines of which one dies at a given request."""

    def __init__(self, dies: Callable[[str, protocol.Message, Any], bool]) -> None:
        super().__init__(*NODES)
        self._when = dies

    def _dies(self, name: str, message: protocol.Message, reply: Any) -> bool:
        with self._lock:
            dies = self._when(name, message, reply)
            if dies:
                self.died.append(name)
            return dies


@pytest.fixture
def lost(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The workers that a driver gives up."""
    found: list[str] = []
    lose = WorkerPool.lose

    def noted(pool: WorkerPool, node: str, why: str, **more: Any) -> None:
        if pool.workers[node].lost is None:
            found.append(node)
        lose(pool, node, why, **more)

    monkeypatch.setattr(WorkerPool, "lose", noted)
    return found


def test_who_was_to_be_given_an_object_is_there_although_the_giver_died(
    tmp_path: Path, s3: Bucket, lost: list[str]
) -> None:
    """Only what the giver had is reduced again; the taker was lost with it."""
    rows = put(s3)
    cluster = Dying(lambda name, message, _: isinstance(message, FetchObject) and not cluster.died)
    job = asked(Checksum(2), [f"s3://{BUCKET}/in/"], s3)
    result, record = reduce_on_cluster(cluster, tmp_path / "job", job)
    assert result == total(rows, 2)
    assert lost == cluster.died and len(lost) == 1
    assert record.lost == {}  # It takes part again.


def test_an_agent_that_cannot_give_what_it_has_is_lost_and_not_the_other(
    tmp_path: Path, s3: Bucket, lost: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    rows, held, failed = put(s3), ReduceWorker.fetch_object, threading.Event()

    def fails(self: ReduceWorker, attempt: int) -> bytes:
        if not failed.is_set():
            failed.set()
            raise MemoryError
        return held(self, attempt)

    monkeypatch.setattr(ReduceWorker, "fetch_object", fails)
    result, _ = reduce_on_cluster(
        Machines(*NODES), tmp_path / "job", asked(Checksum(), [f"s3://{BUCKET}/in/"], s3)
    )
    assert result == total(rows)
    assert len(lost) == 1


def test_a_round_of_which_each_merging_loses_a_machine_ends(
    tmp_path: Path, s3: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It says what stays, and what to do; it began anew for ever."""
    monkeypatch.setattr(tree_merge, "MERGE_FAILURE_SECONDS", 0.0)
    rows, second = put(s3), tmp_path / "job" / "round.msgpack"
    cluster = Dying(lambda _, message, __: isinstance(message, FetchObject) and second.exists())
    job = asked(Checksum(3), [f"s3://{BUCKET}/in/"], s3, checkpoint_seconds=60.0)
    with pytest.raises(core.RunError) as raised:
        reduce_on_cluster(cluster, tmp_path / "job", job)
    said = raised.value.args[0]
    assert (
        f"{MAX_ATTEMPTS} attempts to merge the reduction objects of round 2 have each lost a "
        "node (last: " in said
    )
    assert "the results of 1 round are saved" in said and "fewer workers or smaller objects" in said
    result, record = reduce_on_cluster(Machines(*NODES), tmp_path / "job", job)
    assert result == total(rows, 3)
    assert record.rounds_here == 2


def test_machines_that_die_every_few_seconds_are_no_reason_to_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = SimpleNamespace(now=0.0, monotonic=lambda: clock.now)
    monkeypatch.setattr(tree_merge, "time", clock)
    mergings = MergeAttempts(1)
    for _ in range(4 * MAX_ATTEMPTS):
        clock.now += MERGE_FAILURE_SECONDS / (4 * MAX_ATTEMPTS)
        mergings.note_failure("b")
    clock.now = 1.1 * MERGE_FAILURE_SECONDS
    with pytest.raises(core.RunError, match="the results of 0 rounds are saved"):
        mergings.note_failure("b")
    few = MergeAttempts(1)
    for _ in range(MAX_ATTEMPTS - 1):
        clock.now += 10 * MERGE_FAILURE_SECONDS
        few.note_failure("b")


class Unhurried(Checksum):
    """A reduction of which merging takes as long as it likes."""

    def merge(self, one: dict[str, int], other: dict[str, int]) -> dict[str, int]:
        user_function_gate.wait()
        return super().merge(one, other)


def test_who_merges_answers_meanwhile(
    tmp_path: Path, s3: Bucket, lost: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    user_function_gate.clear()
    heartbeat = StepWorker._heartbeat

    def answering(self: StepWorker, known: int, seconds: float) -> Heartbeat:
        """The progress of a worker while another is held up."""
        told = heartbeat(self, known, seconds)
        if user_function_gate.STARTED.is_set() and told.result is None:
            user_function_gate.RELEASED.set()
        return told

    monkeypatch.setattr(StepWorker, "_heartbeat", answering)
    rows = put(s3)
    job = asked(Unhurried(), [f"s3://{BUCKET}/in/"], s3, workers=1)
    result, _ = reduce_on_cluster(Machines(*NODES), tmp_path / "job", job)
    assert result == total(rows)
    assert lost == []
    assert user_function_gate.STARTED.is_set()


class Busy(Checksum):
    """A reduction that computes for long."""

    def local(self, rows: Rows, into: dict[str, int]) -> dict[str, int]:
        user_function_gate.wait()
        return super().local(rows, into)


def test_who_computes_does_not_hang(tmp_path: Path) -> None:
    """It has moved nothing for long, and says that it is at it; it was taken for one that hangs."""
    user_function_gate.clear()
    rows_of(1, 10).tofile(tmp_path / "rows")
    job = asked(Busy(), [str(tmp_path / "rows")], workers=1)
    place = job.worker_config("a")
    assert isinstance(place, ReduceConfig)
    sources = Sources(ObjectStoreOptions(), 1)
    files = list(sources.find(str(tmp_path / "rows")))
    index = build_index(files, chunk_format("rows", f"{COLUMNS}f8"), 4096, sources)
    worker = StepWorker(place, "a")
    learn = Learn(
        reduction=job.code.pickled(job.reduction),
        index=to_bytes(index),
        chunk_bytes=index.bytes,
        checkpoint_bytes=1 << 20,
    )
    chunks = Reduce(0, job.code.pickled(None), [*enumerate(index.chunks)], True)
    worker.handle(protocol.encode(protocol.Begin(0, LEARN.name, learn)))
    while not worker._heartbeat(0, 1.0).result:
        pass
    worker.handle(protocol.encode(protocol.Begin(1, REDUCE.name, chunks)))
    assert user_function_gate.STARTED.wait(user_function_gate.PATIENCE_SECONDS)
    worker._progress_at = time.monotonic() - 1000
    assert worker._heartbeat(0, 0.0).idle_seconds < 1000
    user_function_gate.RELEASED.set()
    while (ended := worker._heartbeat(0, 1.0).result) is None:
        pass
    assert ended.failure is None, ended.reason
    worker._progress_at = time.monotonic() - 1000
    assert worker._heartbeat(0, 0.0).idle_seconds < 1000  # So long ago it was at it.


def test_at_work_is_who_computes_and_was_until_then() -> None:
    clock = [1.0]
    working = ComputeFlag(lambda: clock[0])
    assert working.last_active < 0
    with working.computing():
        clock[0] = 5.0
        with working.computing():
            assert working.last_active == 5.0
        clock[0] = 7.0
        assert working.last_active == 7.0
    clock[0] = 9.0
    assert working.last_active == 7.0


def test_a_long_text_is_indexed_chunk_by_chunk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each chunk that is found is progress; a file was, which can take long."""
    (tmp_path / "text.csv").write_text("a,b\n" + "1,2\n" * 1000)
    place = asked(Checksum(), [str(tmp_path)], chunk_bytes=100, dtype=None).worker_config("a")
    seen: list[int] = []
    found, more = threading.Event(), threading.Event()
    from tonnage.run.formats.csv import Csv

    chunks = Csv.chunks

    def slowly(*of: Any) -> Any:
        for number, chunk in enumerate(chunks(*of)):
            yield chunk
            if number == 20:
                found.set()
                assert more.wait(user_function_gate.PATIENCE_SECONDS), "20 chunks were not reported"

    def told(done: int) -> None:
        seen.append(done)
        if found.is_set() and done >= 20:
            more.set()

    monkeypatch.setattr(Csv, "chunks", slowly)
    answer = place.steps().index(FindChunks([], 1), told)
    assert [each.path for each in answer.files] == [str(tmp_path / "text.csv")]


def test_who_lists_a_large_folder_does_not_hang(monkeypatch: pytest.MonkeyPatch) -> None:
    """A store's list has no progress to tell of; that of a disk does."""
    at_it: list[bool] = []

    def indexed(*_: Any) -> None:
        before = site.compute_flag.last_active
        time.sleep(0.001)
        at_it.append(site.compute_flag.last_active > before)

    monkeypatch.setattr(index_store, "find_chunks", indexed)
    url = f"s3://{BUCKET}/in/"
    site = asked(Checksum(), [__file__, url]).worker_config("a").steps()
    for urls in ([url], []):
        site.index(FindChunks(urls, 1), lambda _: None)
    assert at_it == [True, False]
