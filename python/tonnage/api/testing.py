"""A test for users' reductions."""

import dataclasses
import itertools
import pickle
from types import SimpleNamespace
from typing import Any

import numpy as np

from tonnage.run.formats import Rows
from tonnage.run.reduce.reduction import Reduction


def check_reduction(
    reduction: Reduction[Any],
    rows: Rows,
    *,
    known: Any = None,
    rtol: float = 1e-9,
    tries: int = 20,
    seed: int = 0,
) -> Any:
    """Check that the result does not depend on the order of rows; gives the result.

    Each try cuts the rows into random chunks, assigns these to random workers (some get none),
    reduces them in a random order, pickles the objects and merges them in a random order.

    Args:
        reduction: The reduction.
        rows: An array or a record batch, of at least a few hundred rows to be meaningful.
        known: The previous round's result.
        rtol: The relative tolerance of numbers.
        tries: How many tries.
        seed: Of the random choices.

    Raises:
        AssertionError: Two tries have different results; the message shows where they differ.
    """
    draw = np.random.default_rng(seed)
    expected = reduction.finish(_reduce_assigned(reduction, [[rows]], known), known)
    for number in range(tries):
        cuts = np.sort(draw.integers(0, len(rows) + 1, draw.integers(1, 12)))
        ends = [0, *cuts.tolist(), len(rows)]
        chunks = [_slice(rows, *span) for span in itertools.pairwise(ends)]
        assigned: list[list[Rows]] = [[] for _ in range(draw.integers(1, 6))]
        for place in draw.permutation(len(chunks)):
            assigned[draw.integers(len(assigned))].append(chunks[place])
        order = [assigned[place] for place in draw.permutation(len(assigned))]
        found = reduction.finish(_reduce_assigned(reduction, order, known), known)
        if differs := _difference(expected, found, rtol, "the result"):
            raise AssertionError(
                "the result depends on the order in which local or merge are called: with chunks "
                f"that begin at rows {ends[:-1]}, assigned to {len(assigned)} workers (attempt "
                f"{number}, seed {seed}), {differs}"
            )
    return expected


def _reduce_assigned(reduction: Reduction[Any], assigned: list[list[Rows]], known: Any) -> Any:
    wholes = []
    for chunks in assigned:
        whole = reduction.begin(known)
        for chunk in chunks:
            whole = reduction.local(chunk, whole)
            if isinstance(chunk, np.ndarray) and chunk.base is None and len(assigned) > 1:
                chunk.flags.writeable = True
                chunk.view(np.uint8).fill(255)  # The memory of a chunk is reused.
        wholes.append(pickle.loads(pickle.dumps(whole)))
    whole = wholes[0]
    for other in wholes[1:]:
        whole = reduction.merge(whole, other)
    return whole


def _slice(rows: Rows, begin: int, end: int) -> Rows:
    if isinstance(rows, np.ndarray):
        chunk = rows[begin:end].copy()
        chunk.flags.writeable = False  # Like a chunk's memory.
        return chunk
    return rows.slice(begin, end - begin)


def _difference(one: Any, other: Any, rtol: float, where: str) -> str | None:
    """Where two results differ, in words; ``None`` if they are equal."""
    if type(one) is type(other) and _is_its_fields(one):
        one, other = vars(one), vars(other)
    if isinstance(one, dict) and isinstance(other, dict):
        if one.keys() != other.keys():
            return f"{where} has {sorted(map(str, one))} and {sorted(map(str, other))}"
        parts = [(f"{where}.{name}", one[name], other[name]) for name in one]
    elif isinstance(one, (list, tuple)) and isinstance(other, (list, tuple)):
        if len(one) != len(other):
            return f"{where} has {len(one)} and {len(other)} parts"
        pairs = enumerate(zip(one, other, strict=True))
        parts = [(f"{where}[{place}]", here, there) for place, (here, there) in pairs]
    else:
        return _leaf_difference(one, other, rtol, where)
    return next(filter(None, (_difference(a, b, rtol, name) for name, a, b in parts)), None)


def _is_its_fields(one: Any) -> bool:
    """Whether two of this type are to be compared by their fields."""
    if dataclasses.is_dataclass(one) or isinstance(one, SimpleNamespace):
        return not isinstance(one, type)
    compares: Any = type(one).__eq__
    return compares is object.__eq__ and hasattr(one, "__dict__")


def _leaf_difference(one: Any, other: Any, rtol: float, where: str) -> str | None:
    if isinstance(one, (float, np.ndarray, np.generic)):
        here, there = np.asarray(one), np.asarray(other)
        if here.shape != there.shape:
            return f"{where} has the shapes {here.shape} and {there.shape}"
        if here.dtype.kind in "fc":
            scale = np.abs(here[np.isfinite(here)]).max(initial=0.0)
            if np.allclose(here, there, rtol=rtol, atol=rtol * scale, equal_nan=True):
                return None
        elif (here == there).all():
            return None
        return f"{where} is {one!r} and {other!r}"
    return None if one == other else f"{where} is {one!r} and {other!r}"
