"""From rates that nodes had at several times to the law of all such nodes.

What was measured within an hour was measured together: a look. A node's rate in a look is the
median of its trials. Looks that have nodes in common are of one fleet, seen again; of a fleet

    log rate = node + time + mood

by Tukey's median polish (Exploratory Data Analysis, 1977, chapter 11), so that a few slow nodes
move no time and a slow day moves no node. Nodes make the law (`tonnage.model.profiles.fit`), each counted
once however often it was seen. How times vary, beyond what moods bring about by chance, adds to
what fleets differ by. Moods, which are each node's own and not the time's, add to nodes' spread: a
job meets a node in one of them.

Nodes that were measured each alone, at times of their own, do not tell nodes and times apart: all
is put to the nodes' account, which makes the slowest of many slower.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from msgspec import structs

from tonnage.base import formatting
from tonnage.base.records.profile import CapacityDistribution
from tonnage.model.profiles.fit import fit_distribution
from tonnage.model.profiles.rates import NodeRate

TOGETHER_SECONDS = 3600.0
SWEEPS = 10
"""The polish is done long before."""

Look = dict[str, float]
"""The logarithm of each node's rate."""


@dataclass(frozen=True)
class Decomposition:
    """What its looks come to, as logarithms."""

    nodes: dict[str, float]
    times: list[float]
    moods: list[float]
    seen: int
    """Rates in all looks."""

    @property
    def freedom(self) -> int:
        """Of the moods."""
        return self.seen - len(self.nodes) - len(self.times) + 1


def fit_over_times(
    resource: str, rates: Sequence[NodeRate], *, source: str
) -> CapacityDistribution:
    """The law of the nodes that had these rates, measured at one time or at several.

    Raises:
        ValueError: There are none, or one is not positive and finite.
    """
    fleets = [_polished(looks) for looks in _seen_again(_looks(rates))]
    alone = [each for each in fleets if len(each.nodes) == 1]
    groups = [list(each.nodes.values()) for each in fleets if len(each.nodes) > 1]
    if alone:
        groups.append([node for each in alone for node in each.nodes.values()])
    found = fit_distribution(
        resource,
        [[math.exp(node) for node in group] for group in groups],
        evidence="measured",
        source=source,
    )
    mood = _moods(fleets)
    times = sum(len(each.times) for each in fleets)
    nodes = sum(len(each.nodes) for each in fleets)
    # A node's rate is a median over its looks already, which is a part of its mood.
    kept = 1 - nodes / sum(each.seen for each in fleets)
    seen = f"{formatting.several(nodes, 'node')} at {formatting.several(times, 'time')}"
    assumed = "; the spread of nodes is assumed" if nodes == 1 else ""
    unknown = "; what times differ by is not known" if times == 1 else ""
    return structs.replace(
        found,
        modes=[
            structs.replace(mode, spread=math.hypot(mode.spread, mood * math.sqrt(kept)))
            for mode in found.modes
        ],
        fleet_spread=math.hypot(found.fleet_spread, _of_times(fleets, mood)),
        fleets=times,
        spread_source=f"{seen}{assumed}{unknown}",
    )


def _looks(rates: Sequence[NodeRate]) -> list[Look]:
    """What was measured together, each within an hour of its first."""
    looks: list[dict[str, list[float]]] = []
    began = -math.inf
    for each in sorted(rates, key=lambda rate: rate.moment):
        if each.moment - began > TOGETHER_SECONDS:
            began = each.moment
            looks.append({})
        looks[-1].setdefault(each.node, []).append(math.log(each.value))
    return [{node: statistics.median(several) for node, several in x.items()} for x in looks]


def _seen_again(looks: Sequence[Look]) -> list[list[Look]]:
    """Looks that have nodes in common, directly or through others."""
    fleets: list[list[Look]] = []
    for look in looks:
        same = [each for each in fleets if any(look.keys() & other.keys() for other in each)]
        fleets = [each for each in fleets if each not in same]
        fleets.append([other for each in same for other in each] + [look])
    return fleets


def _polished(looks: Sequence[Look]) -> Decomposition:
    nodes = dict.fromkeys((node for look in looks for node in look), 0.0)
    times = [0.0] * len(looks)
    for _ in range(SWEEPS):
        nodes = {
            node: statistics.median(
                look[node] - time for look, time in zip(looks, times, strict=True) if node in look
            )
            for node in nodes
        }
        times = [statistics.median(look[node] - nodes[node] for node in look) for look in looks]
    centre = statistics.fmean(times)
    moods = [
        look[node] - nodes[node] - time
        for look, time in zip(looks, times, strict=True)
        for node in look
    ]
    return Decomposition(
        nodes={node: value + centre for node, value in nodes.items()},
        times=[time - centre for time in times],
        moods=moods,
        seen=len(moods),
    )


def _moods(fleets: Sequence[Decomposition]) -> float:
    """The standard deviation of moods; 0 where no node was seen again beside another."""
    freedom = sum(each.freedom for each in fleets)
    squares = sum(mood**2 for each in fleets for mood in each.moods)
    return math.sqrt(squares / freedom) if freedom > 0 else 0.0


def _of_times(fleets: Sequence[Decomposition], mood: float) -> float:
    """The standard deviation of times, without what moods bring about by chance."""
    freedom = sum(len(each.times) - 1 for each in fleets)
    if not freedom:
        return 0.0
    squares = sum(time**2 for each in fleets for time in each.times)
    # A median's variance is pi / 2 times a mean's.
    chance = math.pi / 2 * mood**2 * statistics.fmean(1 / len(each.nodes) for each in fleets)
    return math.sqrt(max(squares / freedom - chance, 0.0))
