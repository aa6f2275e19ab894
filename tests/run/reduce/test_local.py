"""Reductions give the same results as NumPy over all rows, wherever these are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.stores.s3 import BUCKET, Bucket, server
from tonnage.base import core
from tonnage.run.formats import chunk_format, detect_chunk_format
from tonnage.run.reduce import Reduction
from tonnage.run.reduce.builtin.kmeans import KMeans
from tonnage.run.reduce.chunk_pool import (
    LEFT_SHARE,
    MIN_CHUNK_BYTES,
    SELECTIVE,
    SEQUENTIAL,
    Chunk,
    ChunkPool,
)
from tonnage.run.reduce.index import build_index
from tonnage.run.reduce.local import LocalReduction, LocalResult
from tonnage.run.reduce.local_round import LocalReducer, ReduceSettings
from tonnage.run.storage.object_store import ObjectStoreOptions
from tonnage.run.storage.sources import InputFile, Sources

COLUMNS = 3
ROW_BYTES = COLUMNS * 8
DTYPE = f"{COLUMNS}f8"


def found(place: str, volumes: ObjectStoreOptions | None = None) -> list[InputFile]:
    """The files of a place."""
    return list(Sources(volumes or ObjectStoreOptions(), 1).find(place))


class Total(Reduction[dict[str, Any]]):
    """Sums and numbers of rows: whole numbers, so that they are exact."""

    def begin(self, known: Any) -> dict[str, Any]:
        return {"sum": np.zeros(COLUMNS), "rows": 0}

    def local(self, rows: npt.NDArray[Any], into: dict[str, Any]) -> dict[str, Any]:
        into["sum"] += rows.sum(axis=0)
        into["rows"] += len(rows)
        return into

    def merge(self, one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
        return {name: one[name] + other[name] for name in one}


def rows_of(seed: int, count: int) -> npt.NDArray[np.float64]:
    """Whole numbers."""
    return np.random.default_rng(seed).integers(-1000, 1000, (count, COLUMNS)).astype(float)


def ran(
    reduction: Reduction[Any],
    files: Sequence[InputFile],
    volumes: ObjectStoreOptions | None = None,
    **more: Any,
) -> tuple[LocalResult, LocalReducer]:
    """What a reduction comes to, in chunks of a few rows, and who has done it."""
    usual: dict[str, Any] = {"chunk_bytes": 4096, "range_bytes": 1000, "memory_bytes": 1 << 20}
    usual |= {"workers": 2, "object_store": volumes or ObjectStoreOptions()} | more
    settings = ReduceSettings(**usual)
    sources = Sources(settings.object_store, 1)
    format = detect_chunk_format(files, None, DTYPE, sources)
    index = build_index(files, format, settings.chunk_bytes, sources)
    job = LocalReduction(reduction, index, settings)
    done = job.run()
    assert sum(worker.chunks for worker in job.reducer.workers) == done.rounds * len(index.chunks)
    return done, job.reducer


def reduced(*of: Any, **more: Any) -> LocalResult:
    """What a reduction comes to."""
    return ran(*of, **more)[0]


@pytest.mark.parametrize("assignment", [SELECTIVE, SEQUENTIAL])
def test_files_come_to_what_numpy_says(disk: Path, assignment: str) -> None:
    parts = [rows_of(seed, count) for seed, count in enumerate([5000, 1, 0, 777])]
    for number, part in enumerate(parts):
        part.tofile(disk / f"{number}")
    done = reduced(Total(), found(str(disk)), assignment=assignment)
    whole = np.concatenate(parts)
    assert done.result["rows"] == len(whole)
    np.testing.assert_array_equal(done.result["sum"], whole.sum(axis=0))


def test_objects_come_to_what_numpy_says_whatever_the_store_answers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "tester")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "a secret for tests")
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    parts = [rows_of(seed, 3000) for seed in range(4)]
    with server("-errors", "0.05", "-cuts", "0.05", "-seed", "3") as running:
        bucket = Bucket(running)
        for number, part in enumerate(parts):
            bucket.put(f"in/{number}", part.tobytes())
        volumes = ObjectStoreOptions(running.endpoint)
        done, machine = ran(Total(), found(f"s3://{BUCKET}/in/", volumes), volumes)
    whole = np.concatenate(parts)
    assert done.result["rows"] == len(whole)
    np.testing.assert_array_equal(done.result["sum"], whole.sum(axis=0))
    assert machine.requests[0]["retries"] > 0


def test_k_means_is_lloyds(disk: Path) -> None:
    rows = rows_of(7, 4000)
    rows.tofile(disk / "rows")
    first = rows[:5].copy()
    done = reduced(KMeans(first, rounds=4), found(str(disk)))
    centres = first
    for _ in range(done.rounds):
        apart = ((rows[:, None, :] - centres[None]) ** 2).sum(axis=2)
        nearest, inertia = apart.argmin(axis=1), apart.min(axis=1).sum()
        centres = np.array([rows[nearest == each].mean(axis=0) for each in range(5)])
    np.testing.assert_allclose(done.result.centres, centres, rtol=1e-12)
    assert done.result.inertia == pytest.approx(inertia)
    assert Counter(nearest) == dict(enumerate(done.result.rows))


def test_a_row_that_is_no_point_is_told(disk: Path) -> None:
    rows = rows_of(7, 4000)
    rows[3999, 1] = np.nan
    rows.tofile(disk / "rows")
    with pytest.raises(core.RunError, match=r"rows, .* bytes at offset .*is not finite"):
        reduced(KMeans(rows[:5], rounds=1), found(str(disk)))


def test_what_is_no_multiple_of_a_row_is_refused(disk: Path) -> None:
    (disk / "rows").write_bytes(bytes(ROW_BYTES + 1))
    with pytest.raises(core.UsageError, match="1 extra bytes at offset 24"):
        reduced(Total(), found(str(disk)))


def test_a_file_that_is_gone_is_named(disk: Path) -> None:
    rows_of(1, 4000).tofile(disk / "rows")
    files = found(str(disk))
    (disk / "rows").unlink()
    with pytest.raises(core.RunError, match="rows"):
        reduced(Total(), files)


@given(
    st.lists(st.integers(0, 7), max_size=60),
    st.sampled_from([SELECTIVE, SEQUENTIAL]),
    st.randoms(use_true_random=False),
)
def test_each_chunk_is_assigned_once_and_from_the_least_busy(
    files: list[int], assignment: str, draw: Any
) -> None:
    chunks = [Chunk(file, number, 1, 1) for number, file in enumerate(files)]
    pool, under_way, seen = ChunkPool(chunks, assignment), Counter[int](), list[int]()
    busy: list[int] = []
    while (number := pool.next()) is not None:
        left = {chunks[each].file for each in {*range(len(chunks))} - {*seen}}
        if assignment == SELECTIVE:
            least = min(under_way[file] for file in left)
            assert under_way[chunks[number].file] == least
        else:
            assert chunks[number].file == min(left, key=[*dict.fromkeys(files)].index)
        seen.append(number)
        busy.append(number)
        under_way[chunks[number].file] += 1
        while busy and draw.random() < 0.5:
            ended = busy.pop(draw.randrange(len(busy)))
            under_way[chunks[ended].file] -= 1
            pool.note_done(ended)
    assert sorted(seen) == [*range(len(chunks))]


MIB, ROW = 1 << 20, 100


@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(1, 64 * MIB // ROW)), max_size=30),
    st.integers(1, 9),
    st.sampled_from([SELECTIVE, SEQUENTIAL]),
    st.randoms(use_true_random=False),
)
def test_chunks_become_shorter_towards_the_end_and_hold_each_row_once(
    sizes: list[tuple[int, int]], takers: int, assignment: str, draw: Any
) -> None:
    ends: Counter[int] = Counter()
    chunks = []
    for file, rows in sizes:
        chunks.append(Chunk(file, ends[file], rows * ROW, rows))
        ends[file] += rows * ROW
    pool = ChunkPool(chunks, assignment, takers, chunk_format("rows", f"V{ROW}").first_rows)
    left, given_out = sum(chunk.bytes for chunk in chunks), dict[int, Chunk]()
    while (number := pool.next()) is not None:
        chunk = given_out[number] = pool.chunks[number]
        assert 0 < chunk.bytes <= max(left / (LEFT_SHARE * takers), MIN_CHUNK_BYTES)
        left -= chunk.bytes
        pool.note_done(number)
        if draw.random() < 0.1:
            left += given_out.pop(number).bytes
            pool.put_back(number)
    assert left == 0
    for file in ends:
        spans = sorted(chunk[1:4] for chunk in given_out.values() if chunk.file == file)
        assert [begin for begin, *_ in spans] == [
            0,
            *np.cumsum([size for _, size, _ in spans])[:-1],
        ]
        assert sum(rows * ROW for *_, rows in spans) == ends[file]
