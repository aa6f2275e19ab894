"""What a shuffle's network costs: core seconds of its two ways, and segments sent again."""

from __future__ import annotations

import statistics
from dataclasses import dataclass

from tonnage.artifacts import Measurement


@dataclass(frozen=True)
class Costs:
    """What the cores and the kernel did for a measurement of the network."""

    cpu_seconds_per_byte: dict[str, float]
    """Core seconds of the threads of each way, send and receive: the median over the trials."""
    retransmits: int | None
    """Segments sent again, in all rounds; ``None`` if the kernel did not count them."""
    connections: int
    """That were sent on: those of all rounds, each of which has its own."""


def costs(measurement: Measurement) -> Costs:
    """What the trials of a measurement of the network cost."""
    used: dict[str, list[float]] = {}
    for trial in measurement.trials:
        if trial.reading:
            used.setdefault(trial.reading.operation, []).append(trial.cpu_seconds_per_byte)
    connections = [
        each for reading in measurement.readings for each in reading.details.get("connections", ())
    ]
    again = [each["retransmits"] for each in connections]
    return Costs(
        cpu_seconds_per_byte={way: statistics.median(each) for way, each in used.items()},
        retransmits=None if None in again else sum(again),
        connections=len(connections),
    )
