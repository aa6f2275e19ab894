"""The inputs and the expected answers: made once for each size, and stored.

Points are drawn around distant centres, and the first centres are near those. A few targets of
edges are frequent, one node in a hundred has no outgoing edges, and each node has an incoming edge,
so that all numbers are nodes. NumPy computes the answers in the simplest way, from the server's own
files, without any of the peers' functions.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
import stores

COLUMNS, K, OBJECTS = 8, 16, 16
EDGES_A_NODE, BYTES_A_NODE = 13, 1000
"""With 1 GB of points there are 13 million edges and a million nodes."""
ROUNDS, DAMPING = 10, 0.85
BINS, LOW, HIGH = 128, -64.0, 64.0
"""Bins of width one: a value's bin does not depend on how it is computed."""
DRAW_ROWS = 1 << 16
Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Data:
    """Inputs of one size, on a server.

    Attributes:
        endpoint: The server's address.
        directory: The served directory.
        bytes: Approximate size of the points.
    """

    endpoint: str
    directory: Path
    bytes: int

    @property
    def rows(self) -> int:
        """Points in each object."""
        return self.bytes // (OBJECTS * COLUMNS * 8)

    @property
    def nodes(self) -> int:
        return self.bytes // BYTES_A_NODE

    @property
    def edges(self) -> int:
        """Edges in each object."""
        return self.nodes * EDGES_A_NODE // OBJECTS

    @property
    def folder(self) -> str:
        return f"{self.bytes}"

    @property
    def answers(self) -> Path:
        """Directory of centres and answers."""
        return self.directory / f"answers-{self.bytes}"

    @property
    def centres(self) -> Path:
        """File of the first centres."""
        return self.answers / "centres.bin"

    def lay_out(self) -> None:
        """Make the inputs, unless they exist."""
        done = self.answers / "laid-out"
        if done.exists():
            return
        self.answers.mkdir(parents=True, exist_ok=True)
        draw = np.random.default_rng(1)
        middles = draw.normal(0, 10, (K, COLUMNS))
        (middles + draw.normal(0, 2, middles.shape)).tofile(self.centres)
        names = [f"x{each}" for each in range(COLUMNS)]
        for number in range(OBJECTS):
            draw = np.random.default_rng((1, number))
            points = middles[draw.integers(0, K, self.rows)]
            points += draw.normal(0, 1, points.shape)
            self._put("points", number, points, names)
        draw = np.random.default_rng(2)
        count = self.edges * OBJECTS
        origin = draw.integers(0, self.nodes * 99 // 100, count, np.int32)
        frequent = (self.nodes * draw.random(count - self.nodes) ** 3).astype(np.int32)
        target = draw.permutation(np.concatenate([np.arange(self.nodes, dtype=np.int32), frequent]))
        edges = np.stack([origin, target], axis=1)
        for number, part in enumerate(np.split(edges, OBJECTS)):
            self._put("edges", number, part, ["origin", "target"])
        done.touch()

    def _put(self, kind: str, number: int, rows: npt.NDArray[Any], names: list[str]) -> None:
        self._put_object(f"{kind}/{number:02}.bin", rows.tobytes())
        table = pa.table({name: rows[:, at] for at, name in enumerate(names)})
        written = io.BytesIO()
        pq.write_table(table, written, compression="none", use_dictionary=False)
        self._put_object(f"{kind}-parquet/{number:02}.parquet", written.getvalue())

    def _put_object(self, name: str, content: bytes) -> None:
        stores.put(self.endpoint, f"{self.folder}/{name}", content)

    def task(self, job: str) -> dict[str, Any]:
        """Return the fields of a task for a job on these inputs."""
        row_bytes = (self.edges * 8) if job == "pagerank" else (self.rows * COLUMNS * 8)
        return {
            "job": job,
            "endpoint": self.endpoint,
            "bucket": stores.BUCKET,
            "points": f"{self.folder}/points",
            "edges": f"{self.folder}/edges",
            "points_parquet": f"{self.folder}/points-parquet",
            "edges_parquet": f"{self.folder}/edges-parquet",
            "objects": OBJECTS,
            "object_bytes": row_bytes,
            "columns": COLUMNS,
            "k": K,
            "centres": str(self.centres),
            "nodes": self.nodes,
            "rounds": ROUNDS,
            "damping": DAMPING,
            "bins": BINS,
            "low": LOW,
            "high": HIGH,
        }

    def answer(self, job: str) -> list[Array]:
        """Return the expected answer, in sections of numbers of one kind."""
        file = self.answers / f"{job}.npz"
        if not file.exists():
            made = {
                "kmeans": self._kmeans,
                "covariance": self._covariance,
                "pagerank": self._pagerank,
                "histogram": self._histogram,
            }[job]()
            np.savez(file, *made)
        with np.load(file) as opened:
            return [opened[each] for each in opened.files]

    def _rows(self, kind: str, dtype: str, width: int) -> Iterator[npt.NDArray[Any]]:
        for number in range(OBJECTS):
            name = f"{self.folder}/{kind}/{number:02}.bin"
            yield np.fromfile(self.directory / stores.BUCKET / name, dtype).reshape(-1, width)

    def _points(self) -> Array:
        return np.concatenate(list(self._rows("points", "<f8", COLUMNS)))

    def _kmeans(self) -> list[Array]:
        before = np.fromfile(self.centres).reshape(K, COLUMNS)
        points, inertia = self._points(), 0.0
        sums, counts = np.zeros((K, COLUMNS)), np.zeros(K)
        for begin in range(0, len(points), DRAW_ROWS):
            block = points[begin : begin + DRAW_ROWS]
            apart = ((block[:, None, :] - before) ** 2).sum(axis=2)
            nearest = apart.argmin(axis=1)
            np.add.at(sums, nearest, block)
            counts += np.bincount(nearest, minlength=K)
            inertia += apart.min(axis=1).sum()
        centres = np.where(counts[:, None] > 0, sums / np.maximum(counts, 1)[:, None], before)
        return [centres.ravel(), counts, np.array([inertia])]

    def _covariance(self) -> list[Array]:
        points = self._points()
        return [points.mean(axis=0), np.cov(points, rowvar=False).ravel()]

    def _histogram(self) -> list[Array]:
        points, edges = self._points(), np.linspace(LOW, HIGH, BINS + 1)
        counted = [np.histogram(points[:, at], edges)[0] for at in range(COLUMNS)]
        whole = np.concatenate(counted).astype(np.float64)
        assert whole.sum() == points.size, "points are within the bins"
        return [whole]

    def _pagerank(self) -> list[Array]:
        origin, target = np.concatenate(list(self._rows("edges", "<i4", 2))).T
        out = np.bincount(origin, minlength=self.nodes)
        ranks = np.full(self.nodes, 1 / self.nodes)
        for _ in range(ROUNDS):
            given = np.zeros(self.nodes)
            np.add.at(given, target, ranks[origin] / out[origin])
            given += ranks[out == 0].sum() / self.nodes
            ranks = (1 - DAMPING) / self.nodes + DAMPING * given
        return [ranks]


def off(found: Array, expected: list[Array]) -> float:
    """Return the error of an answer: a section's largest difference as a share of its largest
    number; the largest of all sections. NaN means that the system does not return the value.
    """
    if len(found) != sum(map(len, expected)):
        return np.inf
    most, at = 0.0, 0
    for section in expected:
        here = found[at : at + len(section)]
        at += len(section)
        returned = ~np.isnan(here)
        if returned.any():
            apart = np.abs(here - section)[returned].max()
            most = max(most, float(apart / np.abs(section).max()) if apart else 0.0)
    return most
