"""What may come: times and costs of machines with so many nodes each, in every imagined fleet."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tonnage.plan.evaluate import Array, Charged, term_work, usd, work
from tonnage.plan.options import Group
from tonnage.plan.rates import Rates
from tonnage.plan.search import figures_of, machine_usd
from tonnage.plan.shapes import Thing

CONFIDENCE = 0.9
INTERVAL_RULE = (
    "the middle 90 % of 400 imagined fleets: of each the slowest node, with what is not known of "
    "its law drawn too"
)
LOW, HIGH = (1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2


@dataclass(frozen=True)
class Outcome:
    """Of some machines of a group, each with its number of nodes."""

    nodes: Array
    seconds: Array
    """With every resource at its middle."""
    usd: Array
    usd_per_hour: Array
    """Of a node with its volumes."""
    drawn_seconds: Array
    """In each fleet, shape ``(fleets, machines)``."""
    seconds_between: Array
    """The ends of the interval, shape ``(2, machines)``."""
    usd_between: Array
    phases: list[tuple[str, list[tuple[Thing, Array]]]]
    """Of each phase and each of its terms the seconds, every resource at its middle."""

    def in_time(self, deadline_seconds: float) -> Array:
        """The share of fleets that meet the deadline, of each machine."""
        return np.asarray(np.mean(self.drawn_seconds <= deadline_seconds, axis=0))


def outcome(
    group: Group,
    places: Sequence[int] | npt.NDArray[np.int64],
    nodes: Sequence[int] | npt.NDArray[np.int64],
    size: int,
    rates: Rates,
    charged: Charged,
) -> Outcome:
    """What comes of the machines at these places of the group with so many nodes each."""
    sizes = np.asarray(nodes, dtype=np.int64)
    fleet = sizes.astype(np.float64)
    machines = [group.machines[place] for place in places]
    figures = figures_of(machines)
    prices = machine_usd(group, machines)
    volumes = group.shape.volumes
    volume_usd: Array | float = volumes.usd_per_hour(fleet) if volumes else 0.0

    def cost(spent: Array) -> Array:
        return usd(
            spent,
            fleet,
            prices,
            volume_usd,
            group.request_usd,
            group.catalog.billing,
            charged,
        )

    phases = [
        (
            name,
            [
                (
                    term.thing,
                    np.broadcast_to(
                        term_work(
                            term,
                            group.shape,
                            size,
                            lambda law: rates.middle_of(law, sizes),
                            fleet,
                            figures,
                        )
                        / fleet,
                        fleet.shape,
                    ),
                )
                for term in terms
            ],
        )
        for name, terms in group.shape.phases
    ]
    middle = np.asarray(
        sum(np.max([each for _, each in terms], axis=0) for _, terms in phases if terms)
        + np.zeros_like(fleet)
    )
    drawn = work(group.shape, size, lambda law: rates.draws(law, sizes), fleet, figures)
    paid = cost(middle * fleet)
    return Outcome(
        nodes=sizes,
        seconds=middle,
        usd=paid,
        usd_per_hour=prices + volume_usd,
        drawn_seconds=drawn / fleet,
        seconds_between=_between(drawn / fleet, middle),
        usd_between=_between(cost(drawn), paid),
        phases=phases,
    )


def _between(drawn: Array, middle: Array) -> Array:
    """The ends of the interval, and never on one side of the middle.

    Where several resources are nearly as slow as each other, few fleets are at the middle of all.
    """
    low, high = np.quantile(np.broadcast_to(drawn, (len(drawn), len(middle))), [LOW, HIGH], axis=0)
    return np.array([np.minimum(low, middle), np.maximum(high, middle)])
