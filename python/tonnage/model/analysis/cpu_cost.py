"""CPU cost of disk layouts and of the network, in core seconds, and summaries of network rounds."""

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
    """Core seconds for each byte of output."""

    own: float  # Of the measuring threads
    machine: float  # Of the whole machine, including kernel threads and unrelated processes


def layout_costs(measurement: Measurement) -> dict[str, LayoutCost]:
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
    moved = trial.phase.stages[-1].bytes if trial.phase.stages else 0
    if not moved or trial.activity is None:
        return None
    own = sum(stage.cpu_seconds for stage in trial.phase.stages)
    return LayoutCost(own / moved, (own + trial.activity.foreign_cpu_seconds) / moved)


@dataclass(frozen=True)
class NetworkCost:
    cpu_seconds_per_byte: dict[str, float]
    """Core seconds of the threads of each direction, send and receive: the median over trials."""
    retransmits: int | None
    """Retransmitted segments of all rounds; ``None`` if the kernel did not count them."""
    connections: int  # Sending connections of all rounds, each of which opens its own


def network_cost(measurement: Measurement) -> NetworkCost:
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
    settings = measurement.settings
    size = trials_per_round(settings["endpoints"], settings["one_way"])
    for together in whole_rounds(measurement.trials, size):
        yield from (in_direction(together, way) for way in DIRECTIONS)


def round_summary(together: Sequence[Trial]) -> dict[str, Trial]:
    """One direction of a round, each as a trial: slowest endpoint, and the sum.

    A median over endpoints would be meaningless, since a shuffle waits for the slowest.
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
        )
        if readings
        else None,
    )
