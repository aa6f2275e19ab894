"""The dice of imagined fleets, as a page needs them to throw the same ones.

A die's numbers are a permutation of as many evenly spread ones, so it is written as that. Quantiles
of the gamma distribution are computed of numbers that are evenly spread, so of each shape one
table, in order, is enough for every die.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from tonnage.base.records.profile import CapacityDistribution
from tonnage.base.stats import distributions
from tonnage.model.profiles.network_scaling import UNKNOWN_ERROR
from tonnage.model.slowest_node import FEW, ClusterDraws


def random_draws(laws: Sequence[CapacityDistribution]) -> dict[str, Any]:
    """Dice by name, gamma quantiles by shape, the normal's polynomials, and what laws assume."""
    fleets = ClusterDraws()
    even = (np.arange(fleets.count) + 0.5) / fleets.count
    dice, shapes = {"fleet", "fleet spread", "curve"}, set()
    for law in laws:
        dice |= set(_dice(law))
        shapes |= set(_shapes(law))
    return {
        "count": fleets.count,
        "few": FEW,
        "unknown_error": UNKNOWN_ERROR,
        "dice": {
            name: np.round(fleets.uniform(name) * fleets.count - 0.5).astype(int).tolist()
            for name in sorted(dice)
        },
        # By the name that a script gives the number.
        "gammas": {
            f"{shape:g}": distributions.gamma_quantiles(shape, even).tolist()
            for shape in sorted(shapes)
        },
        "normal": {
            name: [each.tolist() for each in polynomials]
            for name, polynomials in (
                ("middle", distributions.MIDDLE),
                ("tail", distributions.TAIL),
                ("far", distributions.FAR_TAIL),
            )
        },
    }


def _dice(law: CapacityDistribution) -> Iterator[str]:
    """What is thrown for a law, by its `Fleets`."""
    for place in range(len(law.modes)):
        for what in ("least", "spread", "mean", "share", "belong"):
            yield f"{law.resource} {place} {what}"


def _shapes(law: CapacityDistribution) -> Iterator[float]:
    """Of which gamma distributions quantiles are needed."""
    for mode in law.modes:
        yield (max(mode.instances, FEW) - 1) / 2
        yield mode.instances + 0.5
    yield (max(law.fleets, 3) - 1) / 2
