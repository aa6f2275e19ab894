"""The best number of nodes of every machine of a group: all of them are computed.

Times are those with every resource at its middle. In single precision, some hundred machines at
once, since the arrays then stay in a processor's cache; what is reported is computed in double.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from tonnage.artifacts.profile import Law
from tonnage.plan.evaluate import Array, Charged, usd, work
from tonnage.plan.options import Group, Machine
from tonnage.plan.rates import Rates
from tonnage.plan.shapes import Thing

Objective = Literal["cost", "time", "nearest"]
AT_ONCE = 1 << 17
"""Machines times fleet sizes that are computed at once."""
ALIKE = 3e-6
"""What differs by less is a tie, in single precision."""


@dataclass(frozen=True)
class Limits:
    """What a plan has to keep; ``nearest`` minimises by how much the worst of them is missed."""

    least_nodes: int = 1
    most_nodes: int = 1_000
    deadline_seconds: float = math.inf
    budget_usd: float = math.inf
    objective: Objective = "cost"
    charged: Charged = "seconds"


@dataclass(frozen=True)
class Found:
    """For each machine of a group its best number of nodes, and what it can do at best.

    ``nodes`` is 0 where no number keeps the limits. The fastest and the cheapest are over all
    numbers of nodes that hold the job, whatever the deadline and the budget.
    """

    nodes: npt.NDArray[np.int64]
    value: Array
    """What was minimised, at that number."""
    fastest_seconds: Array
    cheapest_usd: Array


def search_all(groups: Sequence[Group], size: int, rates: Rates, limits: Limits) -> list[Found]:
    """The best of each group, on all cores: NumPy computes without holding the interpreter."""
    with ThreadPoolExecutor(os.cpu_count()) as threads:
        return list(threads.map(lambda group: search(group, size, rates, limits), groups))


def search(group: Group, size: int, rates: Rates, limits: Limits) -> Found:
    """The best number of nodes of each machine; of those that tie the fewest."""
    sizes = np.arange(limits.least_nodes, limits.most_nodes + 1, dtype=np.int64)
    rows = _Rows(group, sizes, rates)
    step = max(AT_ONCE // len(sizes), 1)
    chunks = [
        _search(group, rows, slice(begin, begin + step), size, limits)
        for begin in range(0, len(group.machines), step)
    ]
    return Found(*(np.concatenate(each) for each in zip(*chunks, strict=True)))


class _Rows:
    """What all machines of a group have in common, for each fleet size."""

    def __init__(self, group: Group, sizes: npt.NDArray[np.int64], rates: Rates) -> None:
        self.sizes = sizes
        self.nodes = sizes[None, :].astype(np.float64)
        self.nodes32 = self.nodes.astype(np.float32)
        self._rates = rates
        volumes = group.shape.volumes
        self.volume_usd: Array | float = 0.0
        if volumes:
            self.volume_usd = volumes.usd_per_hour(self.nodes).astype(np.float32)

    def rate(self, law: Law) -> Array:
        return self._rates.middle_of(law, self.sizes)[None, :]


def _search(
    group: Group, rows: _Rows, of: slice, size: int, limits: Limits
) -> tuple[npt.NDArray[np.int64], Array, Array, Array]:
    machines = group.machines[of]
    figures = {
        thing: each[:, None].astype(np.float32) for thing, each in figures_of(machines).items()
    }
    needed = np.array(group.least_nodes[of], dtype=np.int64)[:, None]
    prices = machine_usd(group, machines)[:, None].astype(np.float32)
    spent = work(group.shape, size, rows.rate, rows.nodes, figures, np.float32)
    spent = np.broadcast_to(spent, (len(machines), len(rows.sizes)))
    cost = usd(
        spent,
        rows.nodes32,
        prices,
        rows.volume_usd,
        group.request_usd,
        group.catalog.billing,
        limits.charged,
    )
    seconds = spent / rows.nodes32
    if needed.max() > rows.sizes[0]:
        small = rows.sizes[None, :] < needed
        cost = np.where(small, np.float32(np.inf), cost)
        seconds = np.where(small, np.float32(np.inf), seconds)
    fastest, cheapest = seconds.min(axis=1), cost.min(axis=1)
    value = cost if limits.objective == "cost" else seconds
    if limits.objective == "nearest":
        value = missed_by(seconds, cost, limits)
    else:
        if math.isfinite(limits.deadline_seconds):
            value = np.where(seconds > np.float32(limits.deadline_seconds), np.inf, value)
        if math.isfinite(limits.budget_usd):
            value = np.where(cost > np.float32(limits.budget_usd), np.inf, value)
    least = value.min(axis=1)
    first = np.argmax(value <= (least * np.float32(1 + ALIKE))[:, None], axis=1)
    return np.where(np.isfinite(least), rows.sizes[first], 0), least, fastest, cheapest


def missed_by(seconds: Array, cost: Array, limits: Limits) -> Array:
    """By what factor the worst of the limits is missed."""
    found = np.zeros_like(seconds)
    for what, limit in ((seconds, limits.deadline_seconds), (cost, limits.budget_usd)):
        if math.isfinite(limit):
            found = np.maximum(found, what / limit)
    return np.where(np.isfinite(seconds), found, np.inf)


def figures_of(machines: Sequence[Machine]) -> Mapping[Thing, Array]:
    """What is advertised of the machines, as far as all have it."""
    common = set.intersection(*(set(machine.figures) for machine in machines))
    return {
        thing: np.array([machine.figures[thing] for machine in machines], dtype=np.float64)
        for thing in common
    }


def machine_usd(group: Group, machines: Sequence[Machine]) -> Array:
    """The price of a node by the hour, without its volumes."""
    attached = group.shape.volumes is not None
    return np.array(
        [
            machine.usd_per_hour + ((machine.link_usd_per_hour or 0.0) if attached else 0.0)
            for machine in machines
        ]
    )
