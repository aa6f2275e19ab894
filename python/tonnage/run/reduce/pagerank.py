"""PageRank (Brin and Page 1998) of a graph given by its edges, as MATE-EC2 has it.

Rows are edges: from a node to a node, whole numbers from 0 on. The first round counts how many
edges leave each node; each other one has every node give its rank to those it points to, in equal
shares. The rank of nodes that point nowhere goes to all, and so does ``1 - damping`` of all rank. A
number that no edge has is no node.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tonnage import engine
from tonnage.run.reduce.formats import Rows, column_of, names_of
from tonnage.run.reduce.reduction import Reduction

Ranks = npt.NDArray[np.float64]
FIRST = 10
"""So many nodes a record tells."""
NODES_AT_MOST = 1 << 31
"""As 32 bits have them."""
NODE_BYTES = 33
"""Of each node there are at least: how many edges leave it, whether one comes in, what rank it has,
what it gives along an edge, and what it is given."""


@dataclass(frozen=True)
class Ranked:
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


class PageRank(Reduction[dict[str, Any]]):
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

    def begin(self, known: Ranked | None) -> dict[str, Any]:
        """No edge yet."""
        if known is None:
            return {"out": np.zeros(0, np.int64), "into": np.zeros(0, np.bool_)}
        share = known.ranks / np.maximum(known.out, 1)
        return {"share": share, "rank": np.zeros(len(known.ranks))}

    def local(self, rows: Rows, into: dict[str, Any]) -> dict[str, Any]:
        """Adds edges.

        Raises:
            ValueError: A row is no edge, or one that was not there before.
        """
        found = edges(rows, self._columns)
        if "rank" in into:
            bad = engine.give_rank(found, into["share"], into["rank"])
            if bad is not None:
                said = f"row {bad} of these is {found[bad].tolist()}"
                raise ValueError(f"{said}: there was no such node before")
            return into
        if not len(found):
            return into
        count = int(found.max()) + 1
        if found.min() < 0 or count > NODES_AT_MOST:
            bad = int(((found < 0) | (found >= NODES_AT_MOST)).any(axis=1).argmax())
            said = f"row {bad} of these is {found[bad].tolist()}"
            raise ValueError(f"{said}: nodes are numbers from 0 to {NODES_AT_MOST - 1}")
        if count > len(into["out"]):
            _refuse_large(count)
            more = (0, count - len(into["out"]))
            into = {name: np.pad(each, more) for name, each in into.items()}
        engine.count_edges(found, into["out"], into["into"].view(np.uint8))
        return into

    def merge(self, one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
        """Adds them up."""
        if "rank" in one:
            one["rank"] += other["rank"]
            return one
        longer, shorter = (one, other) if len(one["out"]) >= len(other["out"]) else (other, one)
        longer["out"][: len(shorter["out"])] += shorter["out"]
        longer["into"][: len(shorter["into"])] |= shorter["into"]
        return longer

    def finish(self, whole: dict[str, Any], known: Ranked | None) -> Ranked:
        """What each node has.

        Raises:
            Refused: There is no edge.
        """
        if known is None:
            nodes = (whole["out"] > 0) | whole["into"]
            if not nodes.any():
                raise engine.Refused("PageRank: there is no edge")
            return Ranked(nodes / nodes.sum(), whole["out"], nodes, 1.0, 0)
        nothing = known.ranks[known.out == 0].sum()
        given = self._damping * (whole["rank"] + nothing / known.nodes.sum())
        ranks = np.where(known.nodes, given + (1 - self._damping) / known.nodes.sum(), 0.0)
        moved = float(np.abs(ranks - known.ranks).sum())
        return Ranked(ranks, known.out, known.nodes, moved, known.rounds + 1)

    def summary(self, result: Ranked) -> dict[str, Any]:
        """How many nodes and edges there are, and the nodes that have most."""
        first = np.argsort(result.ranks, kind="stable")[::-1][:FIRST]
        return {
            "nodes": int(result.nodes.sum()),
            "edges": int(result.out.sum()),
            "moved": result.moved,
            "first": [
                [int(node), float(result.ranks[node])] for node in first if result.nodes[node]
            ],
        }

    def until(self, result: Ranked, known: Any, rounds: int) -> bool:
        """When next to nothing moves any more, or there were enough rounds."""
        return result.moved <= self._tolerance or result.rounds >= self._rounds


def _refuse_large(count: int) -> None:
    """Numbers of nodes are places in arrays.

    Raises:
        ValueError: So many take more memory than there is.
    """
    wanted = count * NODE_BYTES
    if wanted > os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"):
        raise ValueError(
            f"an edge has node {count - 1}, and numbers up to there take {wanted >> 30} GiB, which "
            "is more than this machine has: number nodes from 0 on without gaps"
        )


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
