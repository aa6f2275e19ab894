"""A reduction that proves that each row counted once, on any node, in any chunks."""

from __future__ import annotations

import hashlib
import os
from typing import Any

import numpy as np
import numpy.typing as npt

from support.stores.s3 import Bucket
from tonnage.run.reduce.reduction import Reduction

COLUMNS = 3
FIRST, _, END = os.environ.get("TONNAGE_REDUCE_SEEDS", "0:10").partition(":")
SEEDS = range(int(FIRST), int(END or int(FIRST) + 1))
"""Seeds of the runs with faults: ten unless ``TONNAGE_REDUCE_SEEDS`` is set."""
Rows = npt.NDArray[np.float64]


class Checksum(Reduction[dict[str, int]]):
    """A sum of rows' digests, and how many there are: what counts twice, or not, is seen.

    Each round's sum begins with that of the one before.
    """

    def __init__(self, rounds: int = 1) -> None:
        self._rounds = rounds

    def begin(self, known: Any) -> dict[str, int]:
        return {"sum": 0, "rows": 0}

    def local(self, rows: Rows, into: dict[str, int]) -> dict[str, int]:
        return {"sum": into["sum"] + digest(rows), "rows": into["rows"] + len(rows)}

    def merge(self, one: dict[str, int], other: dict[str, int]) -> dict[str, int]:
        return {name: one[name] + other[name] for name in one}

    def finish(self, whole: dict[str, int], known: dict[str, int] | None) -> dict[str, int]:
        before = known or {"sum": 0, "rows": 0}
        return {name: before[name] + whole[name] for name in whole}

    def until(self, result: Any, known: Any, rounds: int) -> bool:
        return rounds >= self._rounds


def digest(rows: Rows) -> int:
    """Of rows, in any order and any chunks."""
    return sum(
        int.from_bytes(hashlib.blake2b(row.tobytes(), digest_size=8).digest(), "little")
        for row in rows
    )


def rows_of(seed: int, count: int) -> Rows:
    return np.random.default_rng(seed).random((count, COLUMNS))


def put(bucket: Bucket, objects: int = 5, rows: int = 2000) -> Rows:
    """Rows in objects."""
    parts = [rows_of(seed, rows + seed) for seed in range(objects)]
    for number, part in enumerate(parts):
        bucket.put(f"in/{number}", part.tobytes())
    return np.concatenate(parts)


def total(rows: Rows, rounds: int = 1) -> dict[str, int]:
    return {"sum": rounds * digest(rows), "rows": rounds * len(rows)}
