"""Extract nodes' rates from measurements, by the resources of jobs.

Disks are measured by the sort's first pass without its CPU work: ``rw`` is the mixed rate, each way
while both are used, ``ro`` and ``wo`` are one way alone. If a measurement read some devices and
wrote others, only the mix counts: one way alone covers only some of the node's disks. The model of
a device shows whether it is a network-attached volume; for unknown models the user decides.

A rate has a method: a layout, a size of chunks. Rates of different methods are never combined;
plans use the fastest one (`best_method`), since jobs would, too.
"""

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
from tonnage.model.profiles.offer_matching import MatchedMeasurement, unused

VOLUMES = ("Amazon Elastic Block Store", "PersistentDisk", "nvme_card-pd", "MSFT NVMe Accelerator")
"""Model prefixes of network-attached volumes: EBS, Google's persistent disks, Azure's."""
OWN = ("Amazon EC2 NVMe Instance Storage", "nvme_card", "EphemeralDisk", "Microsoft NVMe Direct")
"""Model prefixes of local disks; the ones above take precedence."""
MEMORY = ("tmpfs", "ramfs")
WAYS = {"rw": "both", "ro": "read", "wo": "write"}
MOST = 1e12  # Bytes a second; higher rates are invalid
NOTHING = "the trial moved no data, or an impossible amount"
USELESS = {
    **dict.fromkeys(
        ("ops", "over-time"),
        "random single operations, while jobs read and write sequentially; use tonnage measure "
        "disk",
    ),
    "stream": "sequential files like those of IOR, not those of a job; use tonnage measure disk",
}
LOOPBACK = ("localhost", "127.", "::1")


@dataclass(frozen=True)
class NodeRate:
    resource: str
    node: str
    moment: float  # When, in seconds since 1970
    value: float  # Bytes a second
    measurement: str
    method: str  # In words that follow the resource's name
    nodes: int = 1  # Number of nodes that were measured together


RateResult = NodeRate | UnusedMeasurements


def node_rates(matched: MatchedMeasurement, *, volumes: bool) -> Iterator[RateResult]:
    """The rates of a node; and the unused parts. ``volumes``: unknown devices are volumes."""
    measurement = matched.measurement
    readers: dict[str, Callable[[], Iterable[RateResult]]] = {
        "disk": lambda: _disks(matched, volumes),
        "layouts": lambda: _disks(matched, volumes),
        "cpu": lambda: _cores(matched),
        "net": lambda: _shuffle(matched) if between_machines(measurement) else _network(matched),
        "object": lambda: _objects(matched),
    }
    if measurement.kind not in readers:
        why = USELESS.get(measurement.kind, f"plans do not use {measurement.kind} measurements")
        yield unused(measurement.id, why)
        return
    try:
        datetime.fromisoformat(measurement.began_at)
    except ValueError:
        yield unused(measurement.id, "the time of the measurement is invalid")
        return
    found = list(readers[measurement.kind]())
    yield from found
    if not found:
        yield unused(measurement.id, "the measurement has no trial that plans use")


def best_method(found: Sequence[NodeRate], order: Sequence[str]) -> str:
    """The method with the highest median rate of the first resource in ``order`` that has any."""
    for resource in order:
        medians = {
            method: median_rate(of_method)
            for method in dict.fromkeys(each.method for each in found)
            if (of_method := [e for e in found if (e.resource, e.method) == (resource, method)])
        }
        if medians:
            return max(medians, key=lambda method: medians[method])
    raise ValueError(f"no rate of {', '.join(order)}")


def median_rate(found: Sequence[NodeRate]) -> float:
    return statistics.median(node_medians(found).values())


def node_medians(found: Sequence[NodeRate]) -> dict[str, float]:
    several: dict[str, list[float]] = {}
    for each in found:
        several.setdefault(each.node, []).append(each.value)
    return {node: statistics.median(values) for node, values in several.items()}


def _rate_or_reason(
    matched: MatchedMeasurement, resource: str, trial: Trial, value: float, method: str
) -> RateResult:
    measurement = matched.measurement
    if not (math.isfinite(value) and 0 < value <= MOST):
        return unused(measurement.id, f"{resource}: {NOTHING}")
    if trial.reading and trial.reading.cached:
        return unused(measurement.id, f"{resource}: from a cache, {trial.reading.cached}")
    moment = _timestamp(trial, measurement)
    return NodeRate(resource, matched.host, moment, value, measurement.id, method)


def _timestamp(trial: Trial, measurement: Measurement) -> float:
    try:
        return datetime.fromisoformat(trial.began_at or measurement.began_at).timestamp()
    except ValueError:
        return datetime.fromisoformat(measurement.began_at).timestamp()


def _disks(matched: MatchedMeasurement, volumes: bool) -> Iterator[RateResult]:
    measurement = matched.measurement
    devices = measurement.environment.devices if measurement.environment else []
    where = {_device_kind(device) for device in devices} or {None}
    if any(device.file_system in MEMORY for device in devices):
        yield unused(measurement.id, "memory, not a disk, since its directory is on a tmpfs")
        return
    if {"local", "volume"} <= where:
        why = "one direction used local disks and the other volumes, so the rate is of neither"
        yield unused(measurement.id, why)
        return
    place = next((each for each in where if each), "volume" if volumes else "local")
    names = [name for device in devices for name in device.name.split(", ")]
    layout = measurement.settings.get("layout")
    method = formatting.several(max(len(names), 1), "device")
    method = f"{layout} of {method}" if layout else method
    if None in where:
        supposed = "network-attached" if place == "volume" else "the machine's own"
        method += f" assumed to be {supposed}, as the model is unknown"
    for trial in measurement.trials:
        way = WAYS.get(trial.name)
        if way is None:
            continue  # A trial of the harness itself.
        if place == "volume" and way == "both":
            why = (
                "volume, both ways at once; plans add the times of both ways, which share the link"
            )
            yield unused(measurement.id, why)
        elif way != "both" and _has_separate_devices(measurement):
            why = f"{place} {way}: only some of the devices; the other direction used the others"
            yield unused(measurement.id, why)
        else:
            yield _rate_or_reason(matched, f"{place} {way}", trial, trial.bytes_per_second, method)


def _device_kind(device: Device) -> str | None:
    """``volume`` or ``local``; ``None`` if the device's model is unknown."""
    model = device.model or ""
    if model.startswith(VOLUMES):
        return "volume"
    return "local" if model.startswith(OWN) else None


def _has_separate_devices(measurement: Measurement) -> bool:
    devices = measurement.environment.devices if measurement.environment else []
    read, write = (measurement.settings.get(name) for name in ("read", "write"))
    return len(devices) > 1 and read != write


def _cores(matched: MatchedMeasurement) -> Iterator[RateResult]:
    for trial in matched.measurement.trials:
        used = trial.cpu_seconds_per_byte
        yield _rate_or_reason(
            matched, f"cpu {trial.name}", trial, 1 / used if used else 0.0, "one core"
        )


def _network(matched: MatchedMeasurement) -> Iterator[RateResult]:
    """Each endpoint's rate in a round: the lesser of sent and received."""
    measurement, settings = matched.measurement, matched.measurement.settings
    links = settings.get("rate_bits_per_second")
    if not settings.get("namespaces") or not links:
        why = "network: measured within one machine, without a network"
    elif not matched.assigned:
        why = (
            "network: links emulated within one machine, not the links of its offer; "
            "assign it an offer, as in HOST=PROVIDER/TYPE, if they represent its links"
        )
    elif settings["one_way"]:
        why = "network: measured in one direction, while a shuffle uses both"
    else:
        endpoints = settings["endpoints"]
        connections = formatting.several(settings["connections"], "connection")
        method = f"links of {formatting.gigabits(links / 8)}, {connections} a pair"
        for together in whole_rounds(measurement.trials, trials_per_round(endpoints, False)):
            ways = zip(in_direction(together, SEND), in_direction(together, RECEIVE), strict=True)
            for place, (sent, received) in enumerate(ways):
                value = min(sent.bytes_per_second, received.bytes_per_second)
                checked = _rate_or_reason(matched, "network", sent, value, method)
                if isinstance(checked, NodeRate):
                    node = f"{matched.host}, endpoint {place}"
                    checked = NodeRate(
                        "network", node, checked.moment, value, measurement.id, method, endpoints
                    )
                yield checked
        return
    yield unused(measurement.id, why)


def _shuffle(matched: MatchedMeasurement) -> Iterator[RateResult]:
    """The node's rate, all to all: the lesser of sent and received.

    Between unlike machines the slowest limits all, so the rate alone with all others counts.
    """
    done: dict[tuple[str, int, int, int], dict[str, Trial]] = {}
    several: list[str] = []
    for trial in matched.measurement.trials:
        if trial.reading and trial.step:
            details = trial.reading.details
            several = max(several, details.get("machine_types", ()), key=len)
            pattern: str = details["pattern"]
            pattern = ALL_TO_ALL if pattern.startswith(ALL_TO_ALL) else pattern
            size, connections = details["endpoints"], details["connections_per_pair"]
            key = pattern, size, connections, trial.step.round
            done.setdefault(key, {})[trial.step.operation] = trial
    wanted: tuple[str, ...] = (ALL_TO_ALL,)
    if len(several) > 1:
        wanted = (ALONE, UNEVENLY)
        between = formatting.listing(several)
        why = f"network, all to all between {between}; the slowest node limits the rate of all"
        yield unused(matched.measurement.id, why)
    for (pattern, nodes, connections, _), ways in done.items():
        if pattern in wanted and len(ways) == len(BOTH):
            value = min(trial.bytes_per_second for trial in ways.values())
            method = f"{pattern}, {formatting.several(connections, 'connection')} a pair"
            checked = _rate_or_reason(matched, "network", ways[SEND], value, method)
            yield replace(checked, nodes=nodes) if isinstance(checked, NodeRate) else checked


def _objects(matched: MatchedMeasurement) -> Iterator[RateResult]:
    measurement = matched.measurement
    host = urlsplit(str(measurement.settings.get("endpoint") or "")).hostname or ""
    if host.startswith(LOOPBACK) and not matched.assigned:
        why = (
            "object storage: a store on the machine itself, not the provider's store; "
            "assign the machine an offer, as in HOST=PROVIDER/TYPE, if it represents that store"
        )
        yield unused(measurement.id, why)
        return
    for trial in measurement.trials:
        reading, step = trial.reading, trial.step
        if not reading or not step or reading.operation not in ("get", "put"):
            continue
        parts = "parts" if step.operation == "multipart" else "chunks"
        method = (
            f"{parts} of {formatting.memory(reading.block_bytes or 0)} by "
            f"{formatting.several(step.outstanding, 'thread')}"
        )
        resource = f"object {reading.operation}"
        yield _rate_or_reason(matched, resource, trial, trial.bytes_per_second, method)
