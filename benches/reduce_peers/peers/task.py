"""A peer's task, and the main function of every Python peer.

A peer is a program whose first argument is a file of ``name=value`` lines, a `Task`. It makes
itself ready, prints ``#ready``, and does the job once for each line of standard input: it writes
the answer to ``result``, as consecutive float64, and prints ``#done SECONDS``. What else it
prints does not count. It ends when its input does.
"""

from __future__ import annotations

import dataclasses
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

EDGES = "pagerank"
"""The job on edges; all others are on points."""


@dataclass(frozen=True)
class Task:
    """A job on a store. Keys and region are in the environment, as for every S3 client."""

    job: str
    """``kmeans``, ``covariance``, ``pagerank`` or ``histogram``."""
    endpoint: str
    bucket: str
    points: str
    """The folder of objects ``00.bin``, ``01.bin`` ...: rows of ``columns`` float64."""
    edges: str
    """The same for edges, rows of two int32: from a node, to a node."""
    points_parquet: str
    """The folder of the same points as ``00.parquet`` ...: columns ``x0``, ``x1`` ..."""
    edges_parquet: str
    """The same for edges: columns ``origin`` and ``target``."""
    objects: int
    """Number of objects in each folder."""
    object_bytes: int
    """Size of each object ``NN.bin`` of this job."""
    columns: int
    k: int
    centres: str
    """A file: the centres to begin with, k rows of ``columns`` float64."""
    nodes: int
    rounds: int
    """Rounds of PageRank, after one that counts the outgoing edges of each node."""
    damping: float
    bins: int
    """Bins of each column's histogram, of equal width, from ``low`` to ``high``."""
    low: float
    high: float
    workers: int
    """Cores that a peer may keep busy."""
    result: str
    scratch: str
    """An empty directory."""

    @staticmethod
    def read(path: str) -> Task:
        """Read a file of ``name=value`` lines."""
        told = dict(line.split("=", 1) for line in Path(path).read_text().splitlines())
        types = {"int": int, "float": float, "str": str}
        fields = dataclasses.fields(Task)
        return Task(**{each.name: types[str(each.type)](told[each.name]) for each in fields})

    def write(self, path: Path) -> None:
        """Writes such a file."""
        told = dataclasses.asdict(self).items()
        path.write_text("".join(f"{name}={value}\n" for name, value in told))

    @property
    def keys(self) -> list[str]:
        """The objects of this job."""
        folder = self.edges if self.job == EDGES else self.points
        return [f"{folder}/{number:02}.bin" for number in range(self.objects)]

    @property
    def parquet(self) -> list[str]:
        """The objects that hold the same rows as Parquet."""
        folder = self.edges_parquet if self.job == EDGES else self.points_parquet
        return [f"{folder}/{number:02}.parquet" for number in range(self.objects)]

    @property
    def dtype(self) -> np.dtype[Any]:
        """Of a number in a row."""
        return np.dtype("<i4" if self.job == EDGES else "<f8")

    @property
    def width(self) -> int:
        """Numbers in a row."""
        return 2 if self.job == EDGES else self.columns

    def rows(self, data: Any) -> npt.NDArray[Any]:
        """Bytes of whole rows as an array, without a copy."""
        return np.frombuffer(data, self.dtype).reshape(-1, self.width)


def serve(begin: Callable[[Task], Callable[[], npt.NDArray[np.float64]]]) -> None:
    """Does what the module says, with what ``begin`` makes of a task: what does its job once."""
    task = Task.read(sys.argv[1])
    once = begin(task)
    print("#ready", flush=True)
    for _ in sys.stdin:
        began = time.perf_counter()
        result = once()
        seconds = time.perf_counter() - began
        np.ascontiguousarray(result, np.float64).tofile(task.result)
        print(f"#done {seconds:.6f}", flush=True)
