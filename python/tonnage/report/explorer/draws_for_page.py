"""Write the random draws of the sampled clusters, so that the page uses the same ones.

The draws of one name are a permutation of evenly spread numbers, and are written as that
permutation. Gamma quantiles are taken at evenly spread numbers, so one sorted table for each shape
is enough for every permutation.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from tonnage.base.records.profile import CapacityDistribution
from tonnage.base.stats import distributions
from tonnage.model.profiles.network_scaling import UNKNOWN_ERROR
from tonnage.model.slowest_node import FEW, ClusterDraws, fleet_freedom
from tonnage.plan.monte_carlo import RUNS_VARY
from tonnage.plan.search import UNMEASURED_CREDIT


def random_draws(laws: Sequence[CapacityDistribution]) -> dict[str, Any]:
    """Draws by name, gamma quantiles by shape, the normal's polynomials, and assumptions."""
    clusters = ClusterDraws()
    even = (np.arange(clusters.count) + 0.5) / clusters.count
    dice, shapes = {"fleet", "fleet spread", "curve", UNMEASURED_CREDIT, RUNS_VARY}, set()
    for law in laws:
        dice |= set(_dice(law))
        shapes |= set(_shapes(law))
    return {
        "count": clusters.count,
        "few": FEW,
        "unknown_error": UNKNOWN_ERROR,
        "dice": {
            name: np.round(clusters.uniform(name) * clusters.count - 0.5).astype(int).tolist()
            for name in sorted(dice)
        },
        # By the name that JavaScript gives the number.
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
    """The names of the draws that a distribution uses in `ClusterDraws`."""
    for place in range(len(law.modes)):
        for what in ("least", "spread", "mean", "share", "belong"):
            yield f"{law.resource} {place} {what}"


def _shapes(law: CapacityDistribution) -> Iterator[float]:
    for mode in law.modes:
        yield (max(mode.instances, FEW) - 1) / 2
        yield mode.instances + 0.5
    yield fleet_freedom(law) / 2
