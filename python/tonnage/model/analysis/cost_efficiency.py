"""Cost efficiency: operations and bytes per dollar, on machines with a known price.

``per dollar = rate * 3600 s / USD per hour``. Machines of one price form a group. Prices of volumes
and requests are not included.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tonnage.base import formatting
from tonnage.base.records import Measurement
from tonnage.base.records.analysis import CostEfficiency
from tonnage.model.analysis.estimates import median_estimate, values_of
from tonnage.model.analysis.grouping import (
    Sample,
    by_instance,
    instance_of,
    measurement_ids,
    rate_in,
)

SECONDS = 3600.0


@dataclass(frozen=True)
class Price:
    usd_per_hour: float
    source: str


@dataclass(frozen=True)
class MachinePrice:
    """A machine's price, and the type that has it; None: the host itself has it."""

    price: Price
    type: str | None


def machine_price(measurement: Measurement, prices: Mapping[str, Price]) -> MachinePrice | None:
    """The price of a measurement's machine, by its host, or a type that its firmware states."""
    own = instance_of(measurement)
    if own in prices:
        return MachinePrice(prices[own], None)
    if measurement.environment is None:
        return None
    for word in re.findall(r"[^\s()]+", measurement.environment.virtualisation):
        if word in prices:
            return MachinePrice(prices[word], word)
    return None


def per_dollar(
    subject: str, samples: Sequence[Sample], machines: Mapping[str, MachinePrice]
) -> list[CostEfficiency]:
    alike: dict[MachinePrice, list[Sample]] = {}
    for sample in samples:
        if sample.instance in machines:
            alike.setdefault(machines[sample.instance], []).append(sample)
    return [_efficiency(subject, known, of_price) for known, of_price in alike.items()]


def _efficiency(subject: str, known: MachinePrice, samples: Sequence[Sample]) -> CostEfficiency:
    usd = known.price.usd_per_hour
    per_rate = SECONDS / usd
    names = list(by_instance(samples))
    alone = (
        names[0] if len(names) == 1 else f"{formatting.count(len(names))} machines at {usd:g} USD"
    )
    return CostEfficiency(
        subject=subject,
        priced_as=known.type or alone,
        usd_per_hour=usd,
        operations=median_estimate(values_of(samples, rate_in("operations", per_rate))),
        bytes=median_estimate(values_of(samples, rate_in("bytes", per_rate))),
        measurements=measurement_ids(samples),
    )
