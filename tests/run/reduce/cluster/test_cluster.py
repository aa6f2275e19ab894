"""Reductions on a cluster: each chunk counts once, whichever nodes are lost."""

from __future__ import annotations

import errno
import random
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.cluster.checksums import SEEDS, Checksum, Rows, put, rows_of, total
from support.cluster.machines import Machines
from support.cluster.reducers import TRANSFERS, ReduceMachines, asked
from support.cluster.sorters import Killed, killed
from support.stores.s3 import BUCKET, Bucket
from tonnage.base import core
from tonnage.cluster import protocol
from tonnage.cluster.protocol import StepResult
from tonnage.run.formats.fixed_width import FixedWidth
from tonnage.run.formats.format import Chunk, ChunkFormat
from tonnage.run.reduce.builtin.kmeans import KMeans
from tonnage.run.reduce.cluster import driver
from tonnage.run.reduce.cluster.chunk_ledger import ChunkLedger
from tonnage.run.reduce.cluster.driver import reduce_on_cluster
from tonnage.run.reduce.cluster.inputs import ClusterInput
from tonnage.run.reduce.cluster.job_dir import ReduceJobDir
from tonnage.run.reduce.cluster.messages import (
    ChunksReturned,
    Learn,
    News,
    ReduceResult,
    ThreadReport,
)
from tonnage.run.reduce.cluster.run_record import NodeReports
from tonnage.run.reduce.cluster.worker import ReduceConfig, ReduceWorker
from tonnage.run.reduce.index import Index, from_bytes, to_bytes
from tonnage.run.reduce.sampling import FromSample
from tonnage.run.storage.sources import InputFile
from tonnage.run.two_pass.job_dir import FatalJobError
from tonnage.run.two_pass.splits import FileId

NODES = ("a", "b", "c")


class Failing(Checksum):
    """A reduction that fails at a row."""

    def local(self, rows: Rows, into: dict[str, int]) -> dict[str, int]:
        raise ValueError("no such row was expected")


def test_machines_share_objects_and_each_has_some(tmp_path: Path, s3: Bucket) -> None:
    rows = put(s3)
    job = asked(Checksum(3), [f"s3://{BUCKET}/in/"], s3)
    result, record = reduce_on_cluster(Machines(*NODES), tmp_path / "job", job)
    assert result == total(rows, 3)
    assert {worker.node for worker in record.workers if worker.chunks} == {*NODES}
    assert sum(worker.chunks for worker in record.workers) == 3 * record.chunks
    assert (record.rounds, record.rows, record.lost) == (3, len(rows), {})
    again, same = reduce_on_cluster(Machines(*NODES), tmp_path / "job", job)
    assert (again, same) == (result, record)


@pytest.mark.parametrize("seed", SEEDS)
def test_each_chunk_counts_once_whoever_dies(tmp_path: Path, s3: Bucket, seed: int) -> None:
    rows = put(s3)
    cluster = ReduceMachines(*NODES, deaths=4, seed=seed, gone=("b",) if seed % 2 else ())
    job = asked(
        Checksum(3), [f"s3://{BUCKET}/in/"], s3, checkpoint_seconds=[0.0, 60.0][seed // 2 % 2]
    )
    result, record = reduce_on_cluster(cluster, tmp_path / "job", job)
    assert result == total(rows, 3)
    assert cluster.died
    assert {*record.lost} <= {*cluster.died}


def test_objects_that_are_too_large_to_be_sent_are_reduced_again(
    tmp_path: Path, s3: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(driver, "CHECKPOINT_BYTES", 0)
    kept, rows = list[Any](), put(s3)
    monkeypatch.setattr(ChunkLedger, "note_checkpointed", lambda _, numbers: kept.extend(numbers))
    cluster = ReduceMachines(*NODES, deaths=3, seed=1)
    result, _ = reduce_on_cluster(
        cluster, tmp_path / "job", asked(Checksum(), [f"s3://{BUCKET}/in/"], s3)
    )
    assert result == total(rows)
    assert cluster.died and not kept


def test_each_does_what_is_near_to_it_and_helps_with_the_rest(tmp_path: Path, s3: Bucket) -> None:
    rows = [put(s3)]
    for seed, node in enumerate("ab"):
        rows.append(rows_of(100 + seed, 3000))
        (tmp_path / node).mkdir()
        rows[-1].tofile(tmp_path / node / "rows")
    inputs = [f"{tmp_path}/{{node}}/", f"s3://{BUCKET}/in/"]
    (tmp_path / "c").mkdir()
    (tmp_path / "c" / "rows").touch()
    job = asked(Checksum(), inputs, s3)
    result, _ = reduce_on_cluster(Machines(*NODES), tmp_path / "job", job)
    assert result == total(np.concatenate(rows))


def test_input_that_only_a_lost_machine_has_is_named(tmp_path: Path) -> None:
    for seed, node in enumerate(NODES):
        (tmp_path / node).mkdir()
        rows_of(seed, 5000).tofile(tmp_path / node / "rows")
    cluster = ReduceMachines(*NODES, deaths=1, likely=1.0, gone=NODES)
    job = asked(Checksum(), [f"{tmp_path}/{{node}}/"], checkpoint_seconds=60.0)
    with pytest.raises(
        core.RunError, match=r"of the input can no longer be read from any node \(first: .*/rows, "
    ):
        reduce_on_cluster(cluster, tmp_path / "job", job)
    (died,) = cluster.died
    result, _ = reduce_on_cluster(Machines(*NODES), tmp_path / "job", job)
    assert result == total(np.concatenate([rows_of(seed, 5000) for seed in range(3)]))
    assert died in NODES


def test_a_driver_that_died_goes_on_from_the_last_round(
    tmp_path: Path, s3: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows, job = put(s3), asked(Checksum(4), [f"s3://{BUCKET}/in/"], s3)
    write, rounds = ReduceJobDir.write, 0

    def dies(home: ReduceJobDir, name: str, content: bytes) -> None:
        nonlocal rounds
        write(home, name, content)
        rounds += name == "round.msgpack"
        if rounds == 2:
            killed()

    with monkeypatch.context() as patched, pytest.raises(Killed):
        patched.setattr(ReduceJobDir, "write", dies)
        reduce_on_cluster(Machines(*NODES), tmp_path / "job", job)
    result, record = reduce_on_cluster(Machines(*NODES), tmp_path / "job", job)
    assert result == total(rows, 4)
    assert (record.rounds, record.rounds_here) == (4, 2)


def test_an_input_that_is_another_one_is_refused_by_who_goes_on(tmp_path: Path, s3: Bucket) -> None:
    put(s3)
    job = asked(Failing(), [f"s3://{BUCKET}/in/"], s3)
    with pytest.raises(FatalJobError, match=r"local failed for .*no such row was expected"):
        reduce_on_cluster(Machines(*NODES), tmp_path / "job", job)
    s3.put("in/0", rows_of(9, 10).tobytes())
    with pytest.raises(FatalJobError, match="in/0 has changed since the job began"):
        reduce_on_cluster(Machines(*NODES), tmp_path / "job", job)


def test_a_machine_that_cannot_read_a_file_any_more_is_lost(
    tmp_path: Path, s3: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows, read, failed = put(s3), FixedWidth.decode, threading.Event()

    def broken(self: FixedWidth, *of_chunk: Any) -> Rows:
        if failed.is_set():
            return read(self, *of_chunk)
        failed.set()
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(FixedWidth, "decode", broken)
    job = asked(Checksum(3), [f"s3://{BUCKET}/in/"], s3)
    result, record = reduce_on_cluster(Machines(*NODES), tmp_path / "job", job)
    assert result == total(rows, 3)
    ((_, why),) = record.lost.items()
    assert "Input/output error" in why


class SlowFormat:
    """Rows that a machine does not get at, the first time for each worker, until it may."""

    def __init__(self, format: ChunkFormat, workers: int, may: threading.Event) -> None:
        self._format, self._turns, self._may = format, threading.Semaphore(workers), may

    def __getattr__(self, name: str) -> Any:
        return getattr(self._format, name)

    def pieces(self, *of_chunk: Any) -> Iterator[Rows]:
        if self._turns.acquire(blocking=False):
            self._may.wait(60)
        return self._format.pieces(*of_chunk)


class SlowSite(ReduceWorker):
    """A machine's part that does not get on until it has given chunks back."""

    gave: ClassVar[list[int]] = []

    def __init__(self, place: ReduceConfig) -> None:
        self._has_given = threading.Event()
        super().__init__(place)

    def _note(self, news: News) -> None:
        super()._note(news)
        if isinstance(news, ChunksReturned) and news.numbers:
            self.gave.extend(news.numbers)
            self._has_given.set()

    def learn(self, request: Learn, on_progress: core.OnProgress) -> None:
        super().learn(request, on_progress)
        assert self._reducer is not None
        self._reducer.format = SlowFormat(  # type: ignore[assignment]
            self._reducer.format, 2, self._has_given
        )


class Slowly(Checksum):
    """It takes long enough to see who is slow."""

    def local(self, rows: Rows, into: dict[str, int]) -> dict[str, int]:
        time.sleep(0.05)
        return super().local(rows, into)


def test_who_does_not_get_on_gives_its_chunks_back(
    tmp_path: Path, s3: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    def steps(config: ReduceConfig) -> ReduceWorker:
        return (SlowSite if config.node == "b" else ReduceWorker)(config)

    monkeypatch.setattr(ReduceConfig, "steps", steps)
    SlowSite.gave.clear()
    rows = put(s3)
    job = asked(Slowly(), [f"s3://{BUCKET}/in/"], s3)
    result, record = reduce_on_cluster(Machines(*NODES), tmp_path / "job", job)
    assert result == total(rows)
    assert record.lost == {}
    assert SlowSite.gave


def test_k_means_is_what_one_machine_makes_of_it(tmp_path: Path, s3: Bucket) -> None:
    rows = put(s3)
    job = asked(
        FromSample(100, lambda some: KMeans(some[:4], rounds=5)), [f"s3://{BUCKET}/in/"], s3
    )
    cluster = ReduceMachines(*NODES, deaths=2, seed=1)
    result, record = reduce_on_cluster(cluster, tmp_path / "job", job)
    assert (record.rounds, sum(result.rows)) == (5, len(rows))
    nearest = ((rows[:, None] - result.centres[None]) ** 2).sum(axis=2).argmin(axis=1)
    means = np.array([rows[nearest == each].mean(axis=0) for each in range(4)])
    assert np.abs(means - result.centres).max() < 0.1


def test_a_sample_is_of_an_index_of_what_one_node_can_read() -> None:
    """Each node has files of its own; the largest are not the first."""
    files = [InputFile(f"{node}/part", size) for node, size in (("a", 8), ("b", 24), ("all", 16))]
    chunks = [Chunk(0, 0, 8, 1), Chunk(1, 0, 16, 2), Chunk(1, 16, 8, 1), Chunk(2, 0, 16, 2)]
    ids = [FileId(file.name, 0, file.bytes, 0, 0) for file in files]
    given = ClusterInput(Index(FixedWidth("f8"), files, chunks), ids, [["a"], ["b"], None])
    node, index = given.node_with_most(["a", "b"])
    found = from_bytes(to_bytes(index), "the index")
    assert node == "b" and found.files == files[1:]
    assert found.chunks == [chunk._replace(file=chunk.file - 1) for chunk in chunks[1:]]


@given(
    files=st.lists(st.sets(st.sampled_from(NODES), min_size=1) | st.none(), min_size=1, max_size=5),
    chunks=st.lists(st.integers(0, 4), max_size=40),
    seed=st.integers(0, 1 << 32),
)
def test_a_ledger_counts_each_chunk_once(
    files: list[set[str] | None], chunks: list[int], seed: int
) -> None:
    draw = random.Random(seed)
    of = [Chunk(file % len(files), place, 1 + place, 1) for place, file in enumerate(chunks)]
    ledger = ChunkLedger(of, files)
    has: Mapping[str, list[int]] = {node: [] for node in NODES}
    kept: list[int] = []
    for _ in range(400):
        node = draw.choice(NODES)
        if draw.random() < 0.1:
            stays = [number for number in has[node] if draw.random() < 0.5]
            ledger.note_checkpointed(stays)
            kept += stays
            lost = {ledger.handed_out[number].chunk for number in has[node]}
            lost -= {ledger.handed_out[number].chunk for number in stays}
            assert {*ledger.note_lost(node)} == lost
            has[node].clear()
        elif (found := ledger.next(node)) is not None:
            number, chunk = found
            holders = files[chunk.file]
            assert holders is None or node in holders
            has[node].append(number)
            if draw.random() < 0.7:
                ledger.note_retrieved(number)
    numbers = [*kept, *(number for node in NODES for number in has[node])]
    done = [ledger.handed_out[number].chunk for number in numbers]
    assert len(done) == len({*done})
    there, unread = ledger.remaining(NODES)
    assert unread == [] and ledger.is_complete == (not there) == (len(done) == len(of))


class InTurn(ReduceMachines):
    """Has b die at work; a, once it has ended a step; then a again, when objects are merged."""

    def __init__(self) -> None:
        super().__init__("a", "b")
        self._ended = False

    def _dies(self, name: str, message: protocol.Message, reply: Any) -> bool:
        polled = isinstance(message, protocol.Poll)
        at_work = polled and bool(reply.news) and reply.result is None
        with self._lock:
            if polled and name == "a" and self.died == ["b"] and reply.result:
                self._ended = True
            dies = (
                (self.died == [] and name == "b" and at_work)
                or (self.died == ["b"] and name == "a" and at_work and self._ended)
                or (self.died == ["b", "a"] and name == "a" and isinstance(message, TRANSFERS))
            )
            if dies:
                self.died.append(name)
            return dies


def test_what_was_sent_in_a_step_before_counts_once(tmp_path: Path, s3: Bucket) -> None:
    rows, cluster = put(s3), InTurn()
    job = asked(Checksum(), [f"s3://{BUCKET}/in/"], s3)
    result, _ = reduce_on_cluster(cluster, tmp_path / "job", job)
    assert cluster.died == ["b", "a", "a"]
    assert result == total(rows)


def test_who_is_lost_waits_for_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    told = NodeReports()
    thread = ThreadReport(1, 1, 1, 0.0, 0.0, 0.0)
    reduced = ReduceResult([1], [thread], {}, [], 1, "")
    for node in "ab":
        told.note_step(node, StepResult(reduced), clock[0])
    clock[0] = 1.0
    told.note_waits()
    told.note_lost("a")
    clock[0] = 5.0
    told.note_waits()
    waits = {node: each["synchronisation_seconds"] for (node, _), each in told.workers.items()}
    assert waits == {"a": 1.0, "b": 5.0}
