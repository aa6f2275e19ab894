"""Helpers for tests of one's own reductions."""

from __future__ import annotations

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
    """Whether what a round comes to depends on how rows come; gives what it comes to.

    Rows are cut in chunks at random places, these are dealt at random to workers of whom some get
    none, reduced in a random order, and the objects, each pickled as if it came from elsewhere, are
    merged in a random order.

    Args:
        reduction: What to look at.
        rows: An array or a record batch, of a few hundred rows at least if it is to say much.
        known: What the round before has finished with.
        rtol: How far numbers may differ, as a share of themselves.
        tries: How often it is tried.
        seed: Of the drawing.

    Raises:
        AssertionError: Two ways come to different results; the message shows where they differ.
    """
    draw = np.random.default_rng(seed)
    expected = reduction.finish(_reduced(reduction, [[rows]], known), known)
    for number in range(tries):
        cuts = np.sort(draw.integers(0, len(rows) + 1, draw.integers(1, 12)))
        ends = [0, *cuts.tolist(), len(rows)]
        chunks = [_slice(rows, *span) for span in itertools.pairwise(ends)]
        dealt: list[list[Rows]] = [[] for _ in range(draw.integers(1, 6))]
        for place in draw.permutation(len(chunks)):
            dealt[draw.integers(len(dealt))].append(chunks[place])
        order = [dealt[place] for place in draw.permutation(len(dealt))]
        found = reduction.finish(_reduced(reduction, order, known), known)
        if differs := _difference(expected, found, rtol, "the result"):
            raise AssertionError(
                f"in chunks that begin at rows {ends[:-1]}, dealt to {len(dealt)} workers (try "
                f"{number} of seed {seed}), {differs}: local or merge depends on the order"
            )
    return expected


def _reduced(reduction: Reduction[Any], dealt: list[list[Rows]], known: Any) -> Any:
    wholes = []
    for chunks in dealt:
        whole = reduction.begin(known)
        for chunk in chunks:
            whole = reduction.local(chunk, whole)
            if isinstance(chunk, np.ndarray) and chunk.base is None and len(dealt) > 1:
                chunk.flags.writeable = True
                chunk.view(np.uint8).fill(255)  # A chunk's memory is another's afterwards.
        wholes.append(pickle.loads(pickle.dumps(whole)))
    whole = wholes[0]
    for other in wholes[1:]:
        whole = reduction.merge(whole, other)
    return whole


def _slice(rows: Rows, begin: int, end: int) -> Rows:
    if isinstance(rows, np.ndarray):
        found = rows[begin:end].copy()
        found.flags.writeable = False  # As of a chunk.
        return found
    return rows.slice(begin, end - begin)


def _difference(one: Any, other: Any, rtol: float, where: str) -> str | None:
    """Where two results differ, in words; ``None`` if they do not."""
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
        return _apart(one, other, rtol, where)
    return next(filter(None, (_difference(a, b, rtol, name) for name, a, b in parts)), None)


def _is_its_fields(one: Any) -> bool:
    """Whether two of this kind are equal if their fields are, and nothing else tells it."""
    if dataclasses.is_dataclass(one) or isinstance(one, SimpleNamespace):
        return not isinstance(one, type)
    compares: Any = type(one).__eq__
    return compares is object.__eq__ and hasattr(one, "__dict__")


def _apart(one: Any, other: Any, rtol: float, where: str) -> str | None:
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
