"""CPU cost: core seconds of disk layouts and of the network, and the summary of a network's round."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from msgspec import structs

from tonnage.base.records import Measurement, Trial
from tonnage.base.records.network_rounds import (
    ALL,
    DIRECTIONS,
    SLOWEST,
    in_direction,
    trials_per_round,
    whole_rounds,
)


@dataclass(frozen=True)
class LayoutCost:
    """Core seconds for each byte that came out."""

    own: float
    """Of the threads that measured."""
    machine: float
    """Of all that ran meanwhile, the kernel's threads and what had nothing to do with it."""


def layout_costs(measurement: Measurement) -> dict[str, LayoutCost]:
    """For each mode, the medians of what its trials cost."""
    found: dict[str, list[LayoutCost]] = {}
    for trial in measurement.trials:
        if known := _cost(trial):
            found.setdefault(trial.name, []).append(known)
    return {
        mode: LayoutCost(
            own=statistics.median(each.own for each in several),
            machine=statistics.median(each.machine for each in several),
        )
        for mode, several in found.items()
    }


def _cost(trial: Trial) -> LayoutCost | None:
    """What a trial cost; ``None`` if nothing came out of it, or nobody looked."""
    moved = trial.phase.stages[-1].bytes if trial.phase.stages else 0
    if not moved or trial.beside is None:
        return None
    own = sum(stage.cpu_seconds for stage in trial.phase.stages)
    return LayoutCost(own / moved, (own + trial.beside.foreign_cpu_seconds) / moved)


@dataclass(frozen=True)
class NetworkCost:
    """What the cores and the kernel did for a measurement of the network."""

    cpu_seconds_per_byte: dict[str, float]
    """Core seconds of the threads of each way, send and receive: the median over the trials."""
    retransmits: int | None
    """Segments sent again, in all rounds; ``None`` if the kernel did not count them."""
    connections: int
    """That were sent on: those of all rounds, each of which has its own."""


def network_cost(measurement: Measurement) -> NetworkCost:
    """What the trials of a measurement of the network cost."""
    used: dict[str, list[float]] = {}
    for trial in measurement.trials:
        if trial.reading:
            used.setdefault(trial.reading.operation, []).append(trial.cpu_seconds_per_byte)
    connections = [
        each for reading in measurement.readings for each in reading.details.get("connections", ())
    ]
    again = [each["retransmits"] for each in connections]
    return NetworkCost(
        cpu_seconds_per_byte={way: statistics.median(each) for way, each in used.items()},
        retransmits=None if None in again else sum(again),
        connections=len(connections),
    )


def round_directions(measurement: Measurement) -> Iterator[list[Trial]]:
    """The endpoints' trials of each way of each round that was kept whole."""
    settings = measurement.settings
    size = trials_per_round(settings["endpoints"], settings["one_way"])
    for together in whole_rounds(measurement.trials, size):
        yield from (in_direction(together, way) for way in DIRECTIONS)


def round_summary(together: Sequence[Trial]) -> dict[str, Trial]:
    """What one way of a round comes to, as a trial each: its slowest endpoint, and all of them.

    Endpoints share a machine and a round, so they are no trials of the same thing: to take the
    median over them would call the middle one what a shuffle waits for.
    """
    return {SLOWEST: min(together, key=lambda each: each.bytes_per_second), ALL: _as_one(together)}


def _as_one(together: Sequence[Trial]) -> Trial:
    rate = sum(each.bytes_per_second for each in together)
    spent = sum(each.bytes_per_second * each.cpu_seconds_per_byte for each in together)
    readings = [each.reading for each in together if each.reading]
    return structs.replace(
        together[0],
        bytes_per_second=rate,
        cpu_seconds_per_byte=spent / rate if rate else 0.0,
        reading=structs.replace(
            readings[0],
            concurrency=sum(each.concurrency or 0 for each in readings),
            bandwidth_bytes_per_second=rate,
        ),
    )
