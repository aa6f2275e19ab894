"""PageRank (Brin and Page 1998) of a graph that is given by its edges, as in MATE-EC2.

A row is an edge: the numbers of two nodes, from 0 on. The first round counts the edges that leave
each node. In each later round every node distributes its rank equally among the nodes it points to.
The rank of nodes without outgoing edges is divided among all nodes, and so is ``1 - damping`` of
all rank. A number without edges is not a node.

Node numbers are positions in arrays, so one edge with a large number would demand all memory.
Arrays get half of the memory, and larger ones are refused before they are made.
"""

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
MAX_NODES = 1 << 31
"""The range of 32 bits."""
_SHARES = threading.Lock()


def node_bytes(workers: int) -> int:
    """The memory that a node of the graph takes, at most, on one machine.

    While edges are counted, each worker has the out-degree (8 bytes), whether an edge comes in (1),
    and the out-degree again while the array grows (8). While rank is distributed there are the
    rank, the out-degree and whether it is a node (17), its share for each edge (8), and each
    worker's sum (8). At the end, that and the result (9).
    """
    return max(17 * workers, 25 + 8 * workers, 42)


@dataclass(frozen=True)
class PageRanks:
    """The result of a round.

    Attributes:
        ranks: Of each node, 0 of numbers that are not nodes; their sum is 1.
        out: The number of edges that leave each node.
        nodes: Whether each number is a node.
        moved: The total change of ranks.
        rounds: How many rounds distributed rank.
    """

    ranks: Ranks
    out: npt.NDArray[np.int64]
    nodes: npt.NDArray[np.bool_]
    moved: float
    rounds: int

    @property
    def share(self) -> Ranks:
        """What each node gives along an edge; computed once a round for all workers."""
        with _SHARES:
            if (known := vars(self).get("_share")) is None:
                known = vars(self)["_share"] = self.ranks / np.maximum(self.out, 1)
            found: Ranks = known
            return found

    def __getstate__(self) -> dict[str, Any]:
        return {name: each for name, each in vars(self).items() if name != "_share"}


@dataclass
class EdgeCounts:
    """The object of the first round: each node's out-degree, and whether an edge comes in."""

    out: npt.NDArray[np.int64]
    into: npt.NDArray[np.bool_]

    def grow(self, count: int) -> None:
        """Extend the arrays, one after the other, so that only one exists twice."""
        self.out = _longer(self.out, count)
        self.into = _longer(self.into, count)


@dataclass
class RankSums:
    """The object of later rounds.

    Attributes:
        share: What each node gives along an edge: the same for all workers, and not pickled, since
            merging does not need it.
        rank: What each node has received.
    """

    share: Ranks
    rank: Ranks

    def __getstate__(self) -> dict[str, Any]:
        return {"share": np.zeros(0), "rank": self.rank}


class PageRank(Reduction[EdgeCounts | RankSums]):
    """PageRank.

    Args:
        damping: The share of rank that is distributed along edges.
        tolerance: Ends when the total change of ranks is not larger.
        columns: The names of the two columns; by default the first two.
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
        self._max_bytes: int | None = None
        self._workers = 1

    def allow(self, memory_bytes: int, workers: int) -> int:
        self._max_bytes, self._workers = memory_bytes // 2, workers
        return memory_bytes - self._max_bytes

    def begin(self, known: PageRanks | None) -> EdgeCounts | RankSums:
        if known is None:
            return EdgeCounts(np.zeros(0, np.int64), np.zeros(0, np.bool_))
        return RankSums(known.share, np.zeros(len(known.ranks)))

    def local(self, rows: Rows, into: EdgeCounts | RankSums) -> EdgeCounts | RankSums:
        """Add edges; `ValueError` if a row is not an edge, or was not there in the first round."""
        pairs = edges(rows, self._columns)
        if isinstance(into, RankSums):
            bad = core.assign_rank(pairs, into.share, into.rank)
            if bad is not None:
                row = f"row {bad} of this chunk is {pairs[bad].tolist()}"
                raise ValueError(
                    f"{row}: one of these nodes was absent from the first round: "
                    "the input may have changed; run again"
                )
            return into
        if not len(pairs):
            return into
        count = int(pairs.max()) + 1
        if pairs.min() < 0 or count > MAX_NODES:
            bad = int(((pairs < 0) | (pairs >= MAX_NODES)).any(axis=1).argmax())
            row = f"row {bad} of this chunk is {pairs[bad].tolist()}"
            raise ValueError(f"{row}: nodes must be numbers from 0 to {MAX_NODES - 1}")
        if count > len(into.out):
            self._refuse_large(count)
            into.grow(count)
        core.count_edges(pairs, into.out, into.into.view(np.uint8))
        return into

    def _refuse_large(self, count: int) -> None:
        wanted = count * node_bytes(self._workers)
        if self._max_bytes is not None and wanted > self._max_bytes:
            most = -(-wanted // (1 << 20))
            raise ValueError(
                f"the largest node number is {count - 1}, so the arrays of {self._workers} workers "
                f"need {most} MiB, more than half of the memory; number nodes from 0 without gaps, "
                f"or use {2 * most}MiB of memory"
            )

    def merge(
        self, one: EdgeCounts | RankSums, other: EdgeCounts | RankSums
    ) -> EdgeCounts | RankSums:
        if isinstance(one, RankSums) or isinstance(other, RankSums):
            assert isinstance(one, RankSums) and isinstance(other, RankSums)
            one.rank += other.rank
            return one
        longer, shorter = (one, other) if len(one.out) >= len(other.out) else (other, one)
        longer.out[: len(shorter.out)] += shorter.out
        longer.into[: len(shorter.into)] |= shorter.into
        return longer

    def finish(self, whole: EdgeCounts | RankSums, known: PageRanks | None) -> PageRanks:
        """Compute the ranks; `UsageError` if there are no edges."""
        if isinstance(whole, EdgeCounts):
            nodes = (whole.out > 0) | whole.into
            if not nodes.any():
                raise core.UsageError("PageRank: there are no edges")
            return PageRanks(nodes / nodes.sum(), whole.out, nodes, 1.0, 0)
        assert known is not None
        count = known.nodes.sum()
        nothing = known.ranks[known.out == 0].sum()
        ranks = whole.rank  # In place: the array may be large.
        ranks += nothing / count
        ranks *= self._damping
        ranks += (1 - self._damping) / count
        ranks[~known.nodes] = 0.0
        apart = ranks - known.ranks
        moved = float(np.abs(apart, out=apart).sum())
        return PageRanks(ranks, known.out, known.nodes, moved, known.rounds + 1)

    def summary(self, result: PageRanks) -> dict[str, Any]:
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
        return result.moved <= self._tolerance or result.rounds >= self._rounds


def _longer(array: npt.NDArray[Any], count: int) -> npt.NDArray[Any]:
    longer = np.zeros(count, array.dtype)
    longer[: len(array)] = array
    return longer


def edges(rows: Rows, columns: Sequence[str] | None = None) -> npt.NDArray[Any]:
    """Edges as a contiguous integer array (edges, 2), a view if possible; else `ValueError`."""
    if isinstance(rows, np.ndarray) and rows.dtype.names is None:
        pairs = rows[:, :2] if rows.ndim == 2 and rows.shape[1] >= 2 else None
    else:
        pairs = _pairs(rows, columns or names_of(rows)[:2])
    if pairs is None or pairs.dtype.kind not in "iu":
        raise ValueError("an edge must be two whole numbers: the source node and the target node")
    kind = np.int32 if np.can_cast(pairs.dtype, np.int32) else np.int64
    return np.require(pairs, kind, ["C", "A"])


def _pairs(rows: Rows, names: Sequence[str]) -> npt.NDArray[Any] | None:
    """Two columns as one array, a view if rows have no others; ``None`` if they do not fit."""
    columns = [column_of(rows, name) for name in names]
    if len(columns) != 2 or {each.dtype.kind for each in columns} - {*"iu"}:
        return None
    kind = columns[0].dtype
    if isinstance(rows, np.ndarray) and rows.dtype == np.dtype([(name, kind) for name in names]):
        view: npt.NDArray[Any] = rows.view(kind).reshape(-1, 2)
        return view
    return np.column_stack(columns)
