"""PageRank (Brin and Page 1998) of a graph given by its edges, as MATE-EC2 has it.

Rows are edges: from a node to a node, whole numbers from 0 on. The first round counts how many
edges leave each node; each other one has every node give its rank to those it points to, in equal
shares. The rank of nodes that point nowhere goes to all, and so does ``1 - damping`` of all rank. A
number that no edge has is no node.

Numbers of nodes are places in arrays, so one edge with a large number would ask for all memory that
there is: arrays have half of ``--memory``, and what would not fit is refused before it is made.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tonnage.base import core
from tonnage.run.formats import Rows, column_of, names_of
from tonnage.run.reduce.reduction import Reduction

Ranks = npt.NDArray[np.float64]
TOP_NODES = 10
"""So many nodes a record tells."""
MAX_NODES = 1 << 31
"""As 32 bits have them."""
_SHARES = threading.Lock()


def node_bytes(workers: int) -> int:
    """What a node takes at most, on one machine.

    While edges are counted, of each worker: how many leave it (8), whether one comes in (1), and
    the first once more while it grows (8). While rank is given: what it had, its edges, and whether
    it is one (17), what it gives along an edge (8), and of each worker what it is given (8). At the
    end one of these, and what it comes to (9).
    """
    return max(17 * workers, 25 + 8 * workers, 42)


@dataclass(frozen=True)
class PageRanks:
    """Where a round has led to.

    Attributes:
        ranks: Of each node by its number; of one that is none 0. They add up to 1.
        out: Edges that leave each node.
        nodes: Whether each number is a node.
        moved: How much rank went elsewhere, in all.
        rounds: How many rounds gave rank.
    """

    ranks: Ranks
    out: npt.NDArray[np.int64]
    nodes: npt.NDArray[np.bool_]
    moved: float
    rounds: int

    @property
    def share(self) -> Ranks:
        """What each node gives along an edge: made once a round, for all workers of a machine."""
        with _SHARES:
            if (known := vars(self).get("_share")) is None:
                known = vars(self)["_share"] = self.ranks / np.maximum(self.out, 1)
            found: Ranks = known
            return found

    def __getstate__(self) -> dict[str, Any]:
        return {name: each for name, each in vars(self).items() if name != "_share"}


@dataclass
class EdgeCounts:
    """Edges of a worker: the object of the first round.

    Attributes:
        out: How many leave each node.
        into: Whether one comes in.
    """

    out: npt.NDArray[np.int64]
    into: npt.NDArray[np.bool_]

    def grow(self, count: int) -> None:
        """Has room for so many nodes; one array after the other, as both would be there twice."""
        self.out = _longer(self.out, count)
        self.into = _longer(self.into, count)


@dataclass
class RankSums:
    """Rank that a worker's edges give: the object of any other round.

    Attributes:
        share: What each node gives along an edge. All workers have the same one, and who merges
            has no use for it: it is not sent along.
        rank: What each node is given.
    """

    share: Ranks
    rank: Ranks

    def __getstate__(self) -> dict[str, Any]:
        return {"share": np.zeros(0), "rank": self.rank}


class PageRank(Reduction[EdgeCounts | RankSums]):
    """PageRank.

    Args:
        damping: The share of rank that goes along edges.
        tolerance: When no more rank than this goes elsewhere, it is enough.
        rounds: How many at most.
        columns: Names of the columns from and to, where they have names; by default the first two.
    """

    def __init__(
        self,
        damping: float = 0.85,
        tolerance: float = 1e-6,
        rounds: int = 100,
        columns: Sequence[str] | None = None,
    ) -> None:
        self._damping, self._tolerance, self._rounds = damping, tolerance, rounds
        self._columns = columns
        self._most_bytes: int | None = None
        self._workers = 1

    def allow(self, memory_bytes: int, workers: int) -> int:
        """Arrays have half of it."""
        self._most_bytes, self._workers = memory_bytes // 2, workers
        return memory_bytes - self._most_bytes

    def begin(self, known: PageRanks | None) -> EdgeCounts | RankSums:
        """No edge yet."""
        if known is None:
            return EdgeCounts(np.zeros(0, np.int64), np.zeros(0, np.bool_))
        return RankSums(known.share, np.zeros(len(known.ranks)))

    def local(self, rows: Rows, into: EdgeCounts | RankSums) -> EdgeCounts | RankSums:
        """Adds edges.

        Raises:
            ValueError: A row is no edge, or one that was not there before.
        """
        found = edges(rows, self._columns)
        if isinstance(into, RankSums):
            bad = core.assign_rank(found, into.share, into.rank)
            if bad is not None:
                said = f"row {bad} of these is {found[bad].tolist()}"
                raise ValueError(f"{said}: there was no such node before")
            return into
        if not len(found):
            return into
        count = int(found.max()) + 1
        if found.min() < 0 or count > MAX_NODES:
            bad = int(((found < 0) | (found >= MAX_NODES)).any(axis=1).argmax())
            said = f"row {bad} of these is {found[bad].tolist()}"
            raise ValueError(f"{said}: nodes are numbers from 0 to {MAX_NODES - 1}")
        if count > len(into.out):
            self._refuse_large(count)
            into.grow(count)
        core.count_edges(found, into.out, into.into.view(np.uint8))
        return into

    def _refuse_large(self, count: int) -> None:
        """Refuses more nodes than there is memory for.

        Raises:
            ValueError: There are.
        """
        wanted = count * node_bytes(self._workers)
        if self._most_bytes is not None and wanted > self._most_bytes:
            most = -(-wanted // (1 << 20))
            raise ValueError(
                f"an edge has node {count - 1}, and arrays up to there take {most} MiB with "
                f"--workers {self._workers}, more than half of --memory: number nodes from 0 on "
                f"without gaps, or give --memory {2 * most}MiB"
            )

    def merge(
        self, one: EdgeCounts | RankSums, other: EdgeCounts | RankSums
    ) -> EdgeCounts | RankSums:
        """Adds them up."""
        if isinstance(one, RankSums) or isinstance(other, RankSums):
            assert isinstance(one, RankSums) and isinstance(other, RankSums)
            one.rank += other.rank
            return one
        longer, shorter = (one, other) if len(one.out) >= len(other.out) else (other, one)
        longer.out[: len(shorter.out)] += shorter.out
        longer.into[: len(shorter.into)] |= shorter.into
        return longer

    def finish(self, whole: EdgeCounts | RankSums, known: PageRanks | None) -> PageRanks:
        """What each node has.

        Raises:
            UsageError: There is no edge.
        """
        if isinstance(whole, EdgeCounts):
            nodes = (whole.out > 0) | whole.into
            if not nodes.any():
                raise core.UsageError("PageRank: there is no edge")
            return PageRanks(nodes / nodes.sum(), whole.out, nodes, 1.0, 0)
        assert known is not None
        count = known.nodes.sum()
        nothing = known.ranks[known.out == 0].sum()
        ranks = whole.rank  # In its place: there may be many.
        ranks += nothing / count
        ranks *= self._damping
        ranks += (1 - self._damping) / count
        ranks[~known.nodes] = 0.0
        apart = ranks - known.ranks
        moved = float(np.abs(apart, out=apart).sum())
        return PageRanks(ranks, known.out, known.nodes, moved, known.rounds + 1)

    def summary(self, result: PageRanks) -> dict[str, Any]:
        """How many nodes and edges there are, and the nodes that have most."""
        first = np.argsort(result.ranks, kind="stable")[::-1][:TOP_NODES]
        return {
            "nodes": int(result.nodes.sum()),
            "edges": int(result.out.sum()),
            "moved": result.moved,
            "first": [
                [int(node), float(result.ranks[node])] for node in first if result.nodes[node]
            ],
        }

    def until(self, result: PageRanks, known: Any, rounds: int) -> bool:
        """When next to nothing moves any more, or there were enough rounds."""
        return result.moved <= self._tolerance or result.rounds >= self._rounds


def _longer(array: npt.NDArray[Any], count: int) -> npt.NDArray[Any]:
    """An array with nothing after it, up to this length."""
    found = np.zeros(count, array.dtype)
    found[: len(array)] = array
    return found


def edges(rows: Rows, columns: Sequence[str] | None = None) -> npt.NDArray[Any]:
    """Edges, (edges, 2), of 32 or 64 bits a node, end to end: as they are, if they lie so.

    Raises:
        ValueError: Rows are no two whole numbers.
    """
    if isinstance(rows, np.ndarray) and rows.dtype.names is None:
        found = rows[:, :2] if rows.ndim == 2 and rows.shape[1] >= 2 else None
    else:
        found = _pairs(rows, columns or names_of(rows)[:2])
    if found is None or found.dtype.kind not in "iu":
        raise ValueError("an edge is two whole numbers: from a node, to a node")
    kind = np.int32 if np.can_cast(found.dtype, np.int32) else np.int64
    return np.require(found, kind, ["C", "A"])


def _pairs(rows: Rows, names: Sequence[str]) -> npt.NDArray[Any] | None:
    """Two columns as one array: a view of rows that are nothing else; ``None`` if they are none."""
    columns = [column_of(rows, name) for name in names]
    if len(columns) != 2 or {each.dtype.kind for each in columns} - {*"iu"}:
        return None
    kind = columns[0].dtype
    if isinstance(rows, np.ndarray) and rows.dtype == np.dtype([(name, kind) for name in names]):
        found: npt.NDArray[Any] = rows.view(kind).reshape(-1, 2)
        return found
    return np.column_stack(columns)
