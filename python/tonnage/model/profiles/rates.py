"""From measurements to the rates of nodes, resource by resource, as jobs' demands name them.

Disks were measured by the sort's first pass without its work: ``rw`` is the mix, each way while
both are used, ``ro`` and ``wo`` are one way alone. A measurement that read some devices and wrote
others tells only the mix: of one way alone it has some of the node's disks. A device's model tells
whether it is a network-attached volume; those whose models tell nothing are taken for what the user
says.

A rate has a manner, how it was had: a layout, a size of chunks. Rates of different manners are
never put together, and of several the one that carried most is what an offer is planned with
(`best`), since that is how a job would be run.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from urllib.parse import urlsplit

from tonnage.base import formatting
from tonnage.base.records import Device, Measurement, Trial
from tonnage.base.records.network_rounds import (
    ALL_TO_ALL,
    ALONE,
    RECEIVE,
    SEND,
    UNEVENLY,
    between_machines,
    in_direction,
    trials_per_round,
    whole_rounds,
)
from tonnage.base.records.network_rounds import DIRECTIONS as BOTH
from tonnage.base.records.profile import UnusedMeasurements
from tonnage.model.profiles.offer_matching import MatchedMeasurement

VOLUMES = ("Amazon Elastic Block Store", "PersistentDisk", "nvme_card-pd", "MSFT NVMe Accelerator")
"""How models of network-attached volumes begin: EBS, Google's persistent disks, Azure's."""
OWN = ("Amazon EC2 NVMe Instance Storage", "nvme_card", "EphemeralDisk", "Microsoft NVMe Direct")
"""How models of a machine's own disks begin; those above are looked for first."""
MEMORY = ("tmpfs", "ramfs")
WAYS = {"rw": "both", "ro": "read", "wo": "write"}
MOST = 1e12
"""Bytes a second that no node moves: what claims more was not measured."""
NOTHING = "moved nothing, or so much that it cannot be"
USELESS = {
    **dict.fromkeys(
        ("ops", "over-time"),
        "single operations at random places, and jobs read and write in order: tonnage measure "
        "disk has those rates",
    ),
    "stream": "files in order as IOR does it, not as jobs do: tonnage measure disk has those rates",
}
LOOPBACK = ("localhost", "127.", "::1")


@dataclass(frozen=True)
class NodeRate:
    """What one node had of a resource in one trial."""

    resource: str
    node: str
    moment: float
    """When, in seconds since 1970."""
    value: float
    """Bytes a second."""
    measurement: str
    method: str
    """How it was had, in words that follow the resource's name."""
    nodes: int = 1
    """How many did it together."""


Found = NodeRate | UnusedMeasurements


def node_rates(taken: MatchedMeasurement, *, volumes: bool) -> Iterator[Found]:
    """All that a measurement says of its node, and what is left out of it.

    Args:
        taken: The measurement.
        volumes: Whether devices that do not tell what they are, are network-attached volumes.
    """
    measurement = taken.measurement
    readers: dict[str, Callable[[], Iterable[Found]]] = {
        "disk": lambda: _disks(taken, volumes),
        "layouts": lambda: _disks(taken, volumes),
        "cpu": lambda: _cores(taken),
        "net": lambda: _shuffle(taken) if between_machines(measurement) else _network(taken),
        "object": lambda: _objects(taken),
    }
    if measurement.kind not in readers:
        why = USELESS.get(measurement.kind, f"what {measurement.kind} measures, no plan asks for")
        yield left_out(measurement, why)
        return
    try:
        datetime.fromisoformat(measurement.began_at)
    except ValueError:
        yield left_out(measurement, "when it was measured cannot be read")
        return
    found = list(readers[measurement.kind]())
    yield from found
    if not found:
        yield left_out(measurement, "it holds no trial of what a plan asks for")


def left_out(measurement: Measurement, why: str) -> UnusedMeasurements:
    """The measurement, left out."""
    return UnusedMeasurements(measurements=[measurement.id], why=why)


def best_method(found: Sequence[NodeRate], order: Sequence[str]) -> str:
    """The manner that carried most: by the median node's rate, of the first resource in order."""
    for resource in order:
        medians = {
            manner: median_rate(of_manner)
            for manner in dict.fromkeys(each.method for each in found)
            if (of_manner := [e for e in found if (e.resource, e.method) == (resource, manner)])
        }
        if medians:
            return max(medians, key=lambda manner: medians[manner])
    raise ValueError(f"no rate of {', '.join(order)}")


def median_rate(found: Sequence[NodeRate]) -> float:
    """The median over nodes of each one's median."""
    return statistics.median(node_medians(found).values())


def node_medians(found: Sequence[NodeRate]) -> dict[str, float]:
    """Each node's median."""
    several: dict[str, list[float]] = {}
    for each in found:
        several.setdefault(each.node, []).append(each.value)
    return {node: statistics.median(values) for node, values in several.items()}


def _made(
    taken: MatchedMeasurement, resource: str, trial: Trial, value: float, manner: str
) -> Found:
    measurement = taken.measurement
    if not (math.isfinite(value) and 0 < value <= MOST):
        return left_out(measurement, f"{resource}: {NOTHING}")
    if trial.reading and trial.reading.cached:
        return left_out(measurement, f"{resource}: from a cache, {trial.reading.cached}")
    moment = _moment(trial, measurement)
    return NodeRate(resource, taken.host, moment, value, measurement.id, manner)


def _moment(trial: Trial, measurement: Measurement) -> float:
    try:
        return datetime.fromisoformat(trial.began_at or measurement.began_at).timestamp()
    except ValueError:
        return datetime.fromisoformat(measurement.began_at).timestamp()


def _disks(taken: MatchedMeasurement, volumes: bool) -> Iterator[Found]:
    measurement = taken.measurement
    devices = measurement.environment.devices if measurement.environment else []
    where = {_place(device) for device in devices} or {None}
    if any(device.file_system in MEMORY for device in devices):
        yield left_out(measurement, "memory, where a disk was meant: its directory is on a tmpfs")
        return
    if {"local", "volume"} <= where:
        why = "it read one of local disks and volumes and wrote the other: the rate is of neither"
        yield left_out(measurement, why)
        return
    place = next((each for each in where if each), "volume" if volumes else "local")
    names = [name for device in devices for name in device.name.split(", ")]
    layout = measurement.settings.get("layout")
    manner = formatting.several(max(len(names), 1), "device")
    manner = f"{layout} of {manner}" if layout else manner
    if None in where:
        supposed = "network-attached" if place == "volume" else "the machine's own"
        manner += f" taken for {supposed}, since no model says"
    for trial in measurement.trials:
        way = WAYS.get(trial.name)
        if way is None:
            continue  # The harness alone.
        if place == "volume" and way == "both":
            why = "volume, both ways at once: a plan adds both ways' times, as they share the link"
            yield left_out(measurement, why)
        elif way != "both" and _is_parted(measurement):
            why = f"{place} {way}: of some devices only, since others were for the other way"
            yield left_out(measurement, why)
        else:
            yield _made(taken, f"{place} {way}", trial, trial.bytes_per_second, manner)


def _place(device: Device) -> str | None:
    """Whether a device is a volume or the machine's own; ``None`` where its model does not tell."""
    model = device.model or ""
    if model.startswith(VOLUMES):
        return "volume"
    return "local" if model.startswith(OWN) else None


def _is_parted(measurement: Measurement) -> bool:
    """Whether some devices were read and others written."""
    devices = measurement.environment.devices if measurement.environment else []
    read, write = (measurement.settings.get(name) for name in ("read", "write"))
    return len(devices) > 1 and read != write


def _cores(taken: MatchedMeasurement) -> Iterator[Found]:
    """What a core does of each stage's work."""
    for trial in taken.measurement.trials:
        used = trial.cpu_seconds_per_byte
        yield _made(taken, f"cpu {trial.name}", trial, 1 / used if used else 0.0, "one core")


def _network(taken: MatchedMeasurement) -> Iterator[Found]:
    """What each endpoint both sent and received in a round: the less of the two."""
    measurement, settings = taken.measurement, taken.measurement.settings
    links = settings.get("rate_bits_per_second")
    if not settings.get("namespaces") or not links:
        why = "network: within one machine, where no network is"
    elif not taken.said:
        why = (
            "network: links that were set up within one machine, not those of its offer (say with "
            "--offer HOST=PROVIDER/TYPE if they stand for them)"
        )
    elif settings["one_way"]:
        why = "network: one way, and a shuffle goes both ways"
    else:
        endpoints = settings["endpoints"]
        connections = formatting.several(settings["connections"], "connection")
        manner = f"links of {formatting.gigabits(links / 8)}, {connections} a pair"
        for together in whole_rounds(measurement.trials, trials_per_round(endpoints, False)):
            ways = zip(in_direction(together, SEND), in_direction(together, RECEIVE), strict=True)
            for place, (sent, received) in enumerate(ways):
                value = min(sent.bytes_per_second, received.bytes_per_second)
                made = _made(taken, "network", sent, value, manner)
                if isinstance(made, NodeRate):
                    node = f"{taken.host}, endpoint {place}"
                    made = NodeRate(
                        "network", node, made.moment, value, measurement.id, manner, endpoints
                    )
                yield made
        return
    yield left_out(measurement, why)


def _shuffle(taken: MatchedMeasurement) -> Iterator[Found]:
    """What the node both sent and received, all to all: the less of the two.

    Between unlike machines the slowest set the pace of all: there its own link counts, which it had
    alone with all others.
    """
    done: dict[tuple[str, int, int, int], dict[str, Trial]] = {}
    several: list[str] = []
    for trial in taken.measurement.trials:
        if trial.reading and trial.step:
            details = trial.reading.details
            several = max(several, details["machine_types"], key=len)
            pattern: str = details["pattern"]
            pattern = ALL_TO_ALL if pattern.startswith(ALL_TO_ALL) else pattern
            size, connections = details["endpoints"], details["connections_per_pair"]
            key = pattern, size, connections, trial.step.round
            done.setdefault(key, {})[trial.step.operation] = trial
    wanted: tuple[str, ...] = (ALL_TO_ALL,)
    if len(several) > 1:
        wanted = (ALONE, UNEVENLY)
        between = formatting.listing(several)
        why = f"network, all to all between {between}: the slowest set the pace of all"
        yield left_out(taken.measurement, why)
    for (pattern, nodes, connections, _), ways in done.items():
        if pattern in wanted and len(ways) == len(BOTH):
            value = min(trial.bytes_per_second for trial in ways.values())
            manner = f"{pattern}, {formatting.several(connections, 'connection')} a pair"
            made = _made(taken, "network", ways[SEND], value, manner)
            yield replace(made, nodes=nodes) if isinstance(made, NodeRate) else made


def _objects(taken: MatchedMeasurement) -> Iterator[Found]:
    measurement = taken.measurement
    host = urlsplit(str(measurement.settings.get("endpoint") or "")).hostname or ""
    if host.startswith(LOOPBACK) and not taken.said:
        why = (
            "object storage: a store on the machine itself, not that of its provider (say with "
            "--offer HOST=PROVIDER/TYPE if it stands for that)"
        )
        yield left_out(measurement, why)
        return
    for trial in measurement.trials:
        reading, step = trial.reading, trial.step
        if not reading or not step or reading.operation not in ("get", "put"):
            continue
        parts = "parts" if step.operation == "multipart" else "chunks"
        manner = (
            f"{parts} of {formatting.memory(reading.block_bytes or 0)} by "
            f"{formatting.several(step.outstanding, 'thread')}"
        )
        resource = f"object {reading.operation}"
        yield _made(taken, resource, trial, trial.bytes_per_second, manner)
