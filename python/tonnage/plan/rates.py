"""What nodes of every law carry, for fleets of every size: the middle, and all draws.

Laws that differ only in how fast they are have the same factors, which are drawn once.
"""

from __future__ import annotations

import dataclasses

import numpy as np
import numpy.typing as npt

from tonnage.artifacts.profile import Law
from tonnage.model.slowest import Draws, Fleets

AT_ONCE = 1_000
"""Fleet sizes whose draws are held at once."""

Floats = npt.NDArray[np.float64]
Sizes = npt.NDArray[np.int64]


class Rates:
    """The slowest of N nodes, N from ``least_nodes`` to ``most_nodes``."""

    def __init__(self, most_nodes: int, least_nodes: int = 1, fleets: Fleets | None = None) -> None:
        self.most_nodes = most_nodes
        self.least_nodes = least_nodes
        self.fleets = fleets or Fleets()
        self._middles: dict[object, Floats] = {}
        self._drawn: dict[object, Draws] = {}

    def middle(self, law: Law) -> Floats:
        """The median over fleets, of each number of nodes; a single one where it is that of any."""
        if law.of_fleet and len(law.modes) == 1:
            return np.array(
                [law.modes[0].median]
            )  # What is unknown of it is as much as it is less.
        scale, shape, key = _shape(law)
        if key not in self._middles:
            sizes = np.arange(self.least_nodes, self.most_nodes + 1)
            sizes = sizes[:1] if law.of_fleet else sizes
            self._middles[key] = np.concatenate(
                [
                    np.median(self.fleets.slowest(shape, sizes[begin : begin + AT_ONCE]), axis=0)
                    for begin in range(0, len(sizes), AT_ONCE)
                ]
            )
        return scale * self._middles[key]

    def middle_of(self, law: Law, nodes: Sizes) -> Floats:
        """The median over fleets of these sizes."""
        middles = self.middle(law)
        return middles if law.of_fleet else middles[nodes - self.least_nodes]

    def draws(self, law: Law, nodes: Sizes) -> Draws:
        """Each fleet's slowest node, ``(fleets, len(nodes))``; of any number ``(fleets, 1)``."""
        if law.of_fleet:
            scale, shape, key = _shape(law)
            if key not in self._drawn:
                self._drawn[key] = self.fleets.slowest(shape, [1])
            return scale * self._drawn[key]
        different, back = np.unique(nodes, return_inverse=True)
        return self.fleets.slowest(law, different)[:, back]


def _shape(law: Law) -> tuple[float, Law, object]:
    """How fast, the same law at a rate of about 1, and what tells its factors from others'."""
    scale = law.modes[0].median
    modes = [dataclasses.replace(each, median=each.median / scale) for each in law.modes]
    key = (
        law.resource,
        tuple(dataclasses.astuple(each) for each in modes),
        law.of_fleet,
        law.fleet_spread,
        law.fleets,
    )
    return scale, dataclasses.replace(law, modes=modes), key
