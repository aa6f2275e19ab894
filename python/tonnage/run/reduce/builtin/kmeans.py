"""k-means (Lloyd 1982), as in MATE-EC2: a round adds each point to the nearest centre.

A worker's object has the sum and number of each centre's points, and the sum of squared distances.
The next centres are the means; a centre without points stays where it is.
"""

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
"""The maximum of rounds over a sample before centres are compared."""
LARGE = "squared distances overflow 64-bit floats; scale the columns, for example to [0, 1]"
"""That is, from differences of about 1e154 on."""


class CentreSums(TypedDict):
    centres: Points
    """Of this round: (k, columns)."""
    sums: Points
    rows: npt.NDArray[np.uint64]
    inertia: float


@dataclass(frozen=True)
class Centres:
    """The result of a round.

    Attributes:
        centres: The new centres: (k, columns).
        rows: The number of points of each of the previous centres.
        inertia: The sum of squared distances to the previous centres.
        moved: The largest distance that a centre moved.
    """

    centres: Points
    rows: npt.NDArray[np.uint64]
    inertia: float
    moved: float


class KMeans(Reduction[CentreSums]):
    """k-means over rows of numbers.

    Args:
        centres: The first centres: (k, columns).
        tolerance: Ends when no centre moves further.
        columns: The names of the columns to use; by default all.
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
        centres = self._first if known is None else known.centres
        return {
            "centres": centres,
            "sums": np.zeros(centres.shape),
            "rows": np.zeros(len(centres), np.uint64),
            "inertia": 0.0,
        }

    def local(self, rows: Rows, into: CentreSums) -> CentreSums:
        """Add points; `ValueError` if a row is not a point."""
        centres = into["centres"]
        nearest = core.NearestCentres(centres, centres.shape[1])
        for first, points in blocks_of_points(rows, self._columns):
            if points.shape[1] != centres.shape[1]:
                raise ValueError(
                    f"rows have {points.shape[1]} columns, but centres have {centres.shape[1]}"
                )
            sums, bad = nearest.sums(np.ascontiguousarray(points))
            if sums is None:
                assert bad is not None
                is_far = np.isfinite(points[bad]).all()
                what = f"so far away that {LARGE}" if is_far else "not finite"
                raise ValueError(
                    f"row {first + bad} of this chunk, {points[bad].tolist()}, is {what}"
                )
            of_centres, counts, inertia = sums
            into["rows"] += np.frombuffer(counts, np.uint64)
            _add(into, np.frombuffer(of_centres).reshape(into["sums"].shape), inertia)
        return into

    def merge(self, one: CentreSums, other: CentreSums) -> CentreSums:
        one["rows"] += other["rows"]
        _add(one, other["sums"], other["inertia"])
        return one

    def finish(self, whole: CentreSums, known: Centres | None) -> Centres:
        before = self._first if known is None else known.centres
        rows = whole["rows"][:, None]
        centres = np.where(rows > 0, whole["sums"] / np.maximum(rows, 1), before)
        moved = float(np.sqrt(((centres - before) ** 2).sum(axis=1)).max(initial=0.0))
        return Centres(centres, whole["rows"], whole["inertia"], moved)

    def until(self, result: Centres, known: Any, rounds: int) -> bool:
        return rounds >= self._rounds or result.moved <= self._tolerance


def _add(into: CentreSums, sums: Points, inertia: float) -> None:
    with np.errstate(over="ignore", invalid="ignore"):  # Told below.
        into["sums"] += sums
    into["inertia"] += inertia
    if not (math.isfinite(into["inertia"]) and np.isfinite(into["sums"]).all()):
        raise ValueError(f"too many rows, or too large values: {LARGE}")


def first_centres(points: Points, k: int, seed: int = 0) -> Points:
    """First centres by k-means++ (Arthur and Vassilvitskii 2007).

    Each is drawn from a sample of points, with a probability proportional to its squared distance
    from those drawn before. Points that are not finite are ignored here; a round tells them.
    `UsageError` if there are fewer distinct points.
    """
    draw = np.random.default_rng(seed)
    points = points[np.isfinite(points).all(axis=1)]
    if not len(points):
        raise core.UsageError("there are no points", setting="k")
    found = [points[draw.integers(len(points))]]
    apart = _squared(points, found[0])
    while len(found) < k:
        whole = apart.sum()
        if not math.isfinite(whole):
            raise core.UsageError(f"k-means: rows are so far apart that {LARGE}")
        if not whole > 0:
            raise core.UsageError(
                f"{k} is too large: the sample has only {len(found)} distinct points; use at most "
                f"{len(found)}",
                setting="k",
            )
        found.append(points[draw.choice(len(points), p=apart / whole)])
        apart = np.minimum(apart, _squared(points, found[-1]))
    return np.array(found, np.float64)


def best_centres(points: Points, k: int, seed: int = 0, restarts: int = 1) -> Points:
    """First centres: the best of several drawings.

    A drawing may leave two groups of points to one centre, which no round repairs. So each of
    several drawings is refined by rounds over the sample, and the one with least inertia is used
    (Bradley and Fayyad, "Refining Initial Points for K-Means Clustering", 1998). A single drawing
    is not refined. Seeds are consecutive.

    Raises:
        UsageError: There are fewer distinct points.
    """
    if restarts == 1:
        return first_centres(points, k, seed)
    points = np.ascontiguousarray(points[np.isfinite(points).all(axis=1)])
    tried = [_iterate(points, first_centres(points, k, seed + each)) for each in range(restarts)]
    return min(tried, key=lambda each: each.inertia).centres


def _iterate(points: Points, centres: Points) -> Centres:
    means, known = KMeans(centres, ROUNDS), None
    for rounds in range(1, ROUNDS + 1):
        known = means.finish(means.local(points, means.begin(known)), known)
        if means.until(known, None, rounds):
            break
    assert known is not None
    return known


def _squared(points: Points, centre: Points) -> Points:
    """Squared distances, infinite if too large; callers tell that."""
    with np.errstate(over="ignore", invalid="ignore"):
        squared: Points = ((points - centre) ** 2).sum(axis=1)
    return squared
