"""k-means (Lloyd 1982), as MATE-EC2 has it: a round adds each point to the nearest centre.

The object of a worker is the sum of the points of each centre, how many they are, and the sum of
squared distances; the next centres are the means. A centre without points stays where it is.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypedDict

import numpy as np
import numpy.typing as npt

from tonnage.base import core
from tonnage.run.formats import Rows, blocks_of_points
from tonnage.run.reduce.reduction import Reduction

Points = npt.NDArray[np.float64]
ROUNDS = 20
"""In which centres are moved over some points before they are compared, at most."""
LARGE = "squared distances are larger than 64-bit numbers: scale columns, like to between 0 and 1"
"""From where about 1e154 lies between two numbers."""


class CentreSums(TypedDict):
    """What points come to."""

    centres: Points
    """Those of this round: (k, columns)."""
    sums: Points
    """Of each centre's points."""
    rows: npt.NDArray[np.uint64]
    inertia: float


@dataclass(frozen=True)
class Centres:
    """Where centres are, and how far points are from them.

    Attributes:
        centres: (k, columns).
        rows: Points of each centre, of the centres before these.
        inertia: Sum of the squared distances to them.
        moved: How far the centre moved that moved most.
    """

    centres: Points
    rows: npt.NDArray[np.uint64]
    inertia: float
    moved: float


class KMeans(Reduction[CentreSums]):
    """k-means over rows of numbers.

    Args:
        centres: Where centres are at first: (k, columns).
        rounds: How many rounds at most.
        tolerance: Centres that move no further than this stay: it is enough.
        columns: Names of those that count, where they have names; by default all.
    """

    def __init__(
        self,
        centres: Points,
        rounds: int,
        tolerance: float = 0.0,
        columns: Sequence[str] | None = None,
    ) -> None:
        self._columns = columns
        self._first = np.ascontiguousarray(centres, np.float64)
        self._rounds, self._tolerance = rounds, tolerance

    def begin(self, known: Centres | None) -> CentreSums:
        """No point yet."""
        centres = self._first if known is None else known.centres
        return {
            "centres": centres,
            "sums": np.zeros(centres.shape),
            "rows": np.zeros(len(centres), np.uint64),
            "inertia": 0.0,
        }

    def local(self, rows: Rows, into: CentreSums) -> CentreSums:
        """Adds points.

        Raises:
            ValueError: A row is no point.
        """
        centres = into["centres"]
        nearest = core.NearestCentres(centres, centres.shape[1])
        for first, points in blocks_of_points(rows, self._columns):
            if points.shape[1] != centres.shape[1]:
                raise ValueError(
                    f"rows have {points.shape[1]} columns, and centres {centres.shape[1]}"
                )
            sums, bad = nearest.sums(np.ascontiguousarray(points))
            if sums is None:
                assert bad is not None
                said = f"row {first + bad} of these is {{}}: {points[bad].tolist()}"
                is_far = np.isfinite(points[bad]).all()
                raise ValueError(said.format(f"so far away that {LARGE}" if is_far else "no point"))
            of_centres, counts, inertia = sums
            into["rows"] += np.frombuffer(counts, np.uint64)
            _add(into, np.frombuffer(of_centres).reshape(into["sums"].shape), inertia)
        return into

    def merge(self, one: CentreSums, other: CentreSums) -> CentreSums:
        """Adds them up."""
        one["rows"] += other["rows"]
        _add(one, other["sums"], other["inertia"])
        return one

    def finish(self, whole: CentreSums, known: Centres | None) -> Centres:
        """Centres are the means of their points."""
        before = self._first if known is None else known.centres
        rows = whole["rows"][:, None]
        centres = np.where(rows > 0, whole["sums"] / np.maximum(rows, 1), before)
        moved = float(np.sqrt(((centres - before) ** 2).sum(axis=1)).max(initial=0.0))
        return Centres(centres, whole["rows"], whole["inertia"], moved)

    def until(self, result: Centres, known: Any, rounds: int) -> bool:
        """When there were enough rounds, or nothing moves any more."""
        return rounds >= self._rounds or result.moved <= self._tolerance


def _add(into: CentreSums, sums: Points, inertia: float) -> None:
    """Adds sums.

    Raises:
        ValueError: They are no numbers any more.
    """
    with np.errstate(over="ignore", invalid="ignore"):  # It is told below.
        into["sums"] += sums
    into["inertia"] += inertia
    if not (math.isfinite(into["inertia"]) and np.isfinite(into["sums"]).all()):
        raise ValueError(f"rows are so many, or so large, that {LARGE}")


def first_centres(points: Points, k: int, seed: int = 0) -> Points:
    """Where centres are at first, by k-means++ (Arthur and Vassilvitskii 2007).

    Each is drawn of the points, in proportion to its squared distance to those drawn before.

    Args:
        points: Some of all: (rows, columns); a round tells of those that are none.
        k: How many.
        seed: Of the drawing.

    Raises:
        UsageError: There are fewer different points.
    """
    draw = np.random.default_rng(seed)
    points = points[np.isfinite(points).all(axis=1)]
    if not len(points):
        raise core.UsageError(f"--k {k}: there are no points")
    found = [points[draw.integers(len(points))]]
    apart = _squared(points, found[0])
    while len(found) < k:
        whole = apart.sum()
        if not math.isfinite(whole):
            raise core.UsageError(f"k-means: rows are so far apart that {LARGE}")
        if not whole > 0:
            raise core.UsageError(
                f"--k {k}: of {len(points)} points that were looked at {len(found)} differ: give a "
                "smaller --k"
            )
        found.append(points[draw.choice(len(points), p=apart / whole)])
        apart = np.minimum(apart, _squared(points, found[-1]))
    return np.array(found, np.float64)


def best_centres(points: Points, k: int, seed: int = 0, restarts: int = 1) -> Points:
    """Where centres are at first: the best of several drawings, moved over these points alone.

    A drawing may leave two groups of points to one centre, and no round mends that. So it is drawn
    several times, each is moved by rounds over some of all points, and that of the least inertia
    counts (Bradley and Fayyad, "Refining Initial Points for K-Means Clustering", 1998).

    Args:
        points: Some of all: (rows, columns).
        k: How many.
        seed: Of the first drawing; the others have those that follow.
        restarts: How many drawings; of one its centres are not moved.

    Raises:
        UsageError: There are fewer different points.
    """
    if restarts == 1:
        return first_centres(points, k, seed)
    points = np.ascontiguousarray(points[np.isfinite(points).all(axis=1)])
    tried = [_moved(points, first_centres(points, k, seed + each)) for each in range(restarts)]
    return min(tried, key=lambda each: each.inertia).centres


def _moved(points: Points, centres: Points) -> Centres:
    """Centres after some rounds over these points."""
    means, known = KMeans(centres, ROUNDS), None
    for rounds in range(1, ROUNDS + 1):
        known = means.finish(means.local(points, means.begin(known)), known)
        if means.until(known, None, rounds):
            break
    assert known is not None
    return known


def _squared(points: Points, centre: Points) -> Points:
    """Squared distances, infinite of what is too far away: that is told where they are used."""
    with np.errstate(over="ignore", invalid="ignore"):
        found: Points = ((points - centre) ** 2).sum(axis=1)
    return found
