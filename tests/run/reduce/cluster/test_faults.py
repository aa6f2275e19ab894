"""With faults in a tenth of requests, each row counts once, or the object that changed is named.

The store is a real one (`support.stores.s3`), which answers 500 or 503, resets connections, cuts
answers short and stalls in the middle of them, each a fortieth of all, drawn by a seed. On a
cluster workers and machines die at the same time. A sum of rows' digests proves it
(`support.cluster.checksums`). Ten seeds, or those of ``TONNAGE_REDUCE_SEEDS``: ``0:100`` are a
hundred, ``17`` is one alone.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.cluster.checksums import COLUMNS, SEEDS, Checksum, Rows, put, rows_of, total
from support.cluster.reducers import ReduceMachines, asked
from support.stores.s3 import BUCKET, KEYS, Bucket, server
from tonnage.base import core
from tonnage.run.formats import chunk_format
from tonnage.run.reduce.chunk_pool import SEQUENTIAL
from tonnage.run.reduce.cluster.driver import reduce_on_cluster
from tonnage.run.reduce.index import build_index
from tonnage.run.reduce.local import LocalReduction
from tonnage.run.reduce.local_round import ReduceSettings
from tonnage.run.storage.object_store import ObjectStoreOptions, sum_requests
from tonnage.run.storage.sources import Sources
from tonnage.run.two_pass.job_dir import FatalJobError

pytestmark = pytest.mark.slow

OBJECTS, ROWS = 5, 2000
FAULTS = ("-errors=.025", "-resets=.025", "-cuts=.025", "-stalls=.025", "-stall=200ms")


@pytest.fixture(params=SEEDS)
def seed(request: pytest.FixtureRequest) -> int:
    """What a case is drawn from."""
    return int(request.param)


@pytest.fixture
def faulty(monkeypatch: pytest.MonkeyPatch, seed: int) -> Iterator[Bucket]:
    """A bucket of a store that fails."""
    for name, value in KEYS.items() | {("AWS_REGION", "us-east-1")}:
        monkeypatch.setenv(name, value)
    with server(*FAULTS, f"-seed={seed}") as running:
        yield Bucket(running)


def job(reduction: Checksum, bucket: Bucket, seed: int, **more: Any) -> LocalReduction:
    """A reduction in chunks and ranges of a few rows, drawn like the number of requests at once."""
    draw = random.Random(seed)
    volumes = ObjectStoreOptions(bucket.endpoint, requests=draw.choice([None, 1, 3, 16]))
    sources, chunk_bytes = Sources(volumes, 1), draw.randrange(1000, 9000)
    files = list(sources.find(f"s3://{BUCKET}/in/"))
    index = build_index(files, chunk_format("rows", f"{COLUMNS}f8"), chunk_bytes, sources)
    settings = ReduceSettings(
        chunk_bytes=chunk_bytes,
        range_bytes=draw.randrange(500, 3000),
        memory_bytes=4 * (chunk_bytes + (8 << 10)),
        workers=draw.randrange(1, 4),
        object_store=volumes,
        **more,
    )
    return LocalReduction(reduction, index, settings)


def test_each_row_counts_once_whatever_the_store_answers(faulty: Bucket, seed: int) -> None:
    rows = put(faulty, OBJECTS, ROWS)
    run = job(Checksum(rounds=2), faulty, seed)
    assert run.run().result == total(rows, rounds=2)
    requests = sum_requests(run.reducer.requests)
    assert requests["retries"] > 0 and requests["errors"]


class Changing(Checksum):
    """A reduction during which another process writes an object."""

    def __init__(self, bucket: Bucket, key: str, after: int) -> None:
        super().__init__()
        self._bucket, self._key, self._after = bucket, key, after
        self._lock = threading.Lock()

    def local(self, rows: Rows, into: dict[str, int]) -> dict[str, int]:
        with self._lock:  # No worker ends while the put is repeated.
            self._after -= 1
            if self._after == 0:
                self._bucket.put(self._key, rows_of(99, ROWS).tobytes())
        return super().local(rows, into)


def test_an_object_that_is_changed_meanwhile_is_named(faulty: Bucket, seed: int) -> None:
    put(faulty, OBJECTS, ROWS)
    changed = f"in/{OBJECTS - 1}"  # The last, of which nothing is under way so early.
    run = job(Changing(faulty, changed, after=1 + seed % 7), faulty, seed, assignment=SEQUENTIAL)
    with pytest.raises(core.RunError, match=f"{changed} was changed while it was read"):
        run.run()


def machines(seed: int, deaths: int) -> ReduceMachines:
    """A cluster of which workers die, in odd cases with a machine."""
    gone = ("b",) if seed % 2 else ()
    return ReduceMachines("a", "b", "c", deaths=deaths, seed=seed, gone=gone)


def test_each_row_counts_once_on_a_fleet_whoever_dies_and_whatever_the_store_answers(
    tmp_path: Path, faulty: Bucket, seed: int
) -> None:
    rows, cluster = put(faulty, OBJECTS, ROWS), machines(seed, deaths=3)
    kept = [0.0, 60.0][seed // 2 % 2]
    job = asked(
        Checksum(2), [f"s3://{BUCKET}/in/"], faulty, checkpoint_seconds=kept, patience_seconds=60.0
    )
    result, record = reduce_on_cluster(cluster, tmp_path / "job", job)
    assert result == total(rows, rounds=2)
    assert (record.rounds, record.rows) == (2, len(rows))
    assert cluster.died and {*record.lost} <= {*cluster.died}


def test_an_object_that_is_changed_meanwhile_ends_a_job_on_a_fleet(
    tmp_path: Path, faulty: Bucket, seed: int
) -> None:
    put(faulty, OBJECTS, ROWS)
    changed, is_changed = f"in/{seed % OBJECTS}", False

    def change(number: int, came: int, _: int) -> None:
        nonlocal is_changed
        if came and number == 1 + seed % 2 and not is_changed:
            is_changed = True
            faulty.put(changed, rows_of(99, ROWS).tobytes())

    # In the round after that at the latest a worker reads it.
    job = asked(Checksum(4), [f"s3://{BUCKET}/in/"], faulty, patience_seconds=60.0)
    with pytest.raises(
        FatalJobError, match=f"{changed} was changed while it was read; .*start again"
    ):
        reduce_on_cluster(machines(seed, deaths=1), tmp_path / "job", job, change)
    with pytest.raises(FatalJobError, match=f"{changed} has changed since the job began"):
        reduce_on_cluster(machines(seed, deaths=1), tmp_path / "job", job)
