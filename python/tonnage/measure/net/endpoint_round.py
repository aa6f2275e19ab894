"""A round of endpoints: the core's configuration of each, and the trials from its answer; pure.

A round is the same on loopback, in namespaces and on the nodes of a cluster: each endpoint sends to
given others, all for the same time.
"""

import secrets
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from msgspec import structs

import tonnage
from tonnage.base.core import stage_stats
from tonnage.base.records import Metric, Source, Trial, TrialSpec
from tonnage.base.records.network_rounds import DIRECTIONS, RECEIVE, SEND
from tonnage.measure.trial.trial import WARM_UP_SECONDS, trial_from_phase

HALVES = {SEND: slice(0, 2), RECEIVE: slice(2, 4)}
"""The stages of each direction: generate -> send, and receive -> discard."""


@dataclass(frozen=True)
class RoundSpec:
    number: int
    sends_to: tuple[tuple[int, ...], ...]
    """For each endpoint, the others that it sends to."""
    connections: int
    """From each endpoint to each other."""
    block_bytes: int
    seconds: float
    evenly: bool = True
    """Whether each gets the same amount, as in a shuffle, or as much as it can receive."""

    @property
    def endpoints(self) -> int:
        return len(self.sends_to)

    def peers(self, endpoint: int, direction: str) -> int:
        if direction == SEND:
            return len(self.sends_to[endpoint])
        return sum(endpoint in others for others in self.sends_to)

    def directions(self, endpoint: int) -> list[str]:
        return [direction for direction in DIRECTIONS if self.peers(endpoint, direction)]


def all_to_all(endpoints: int) -> tuple[tuple[int, ...], ...]:
    everyone = range(endpoints)
    return tuple(tuple(peer for peer in everyone if peer != number) for number in everyone)


def one_to_all(endpoints: int) -> tuple[tuple[int, ...], ...]:
    """The first sends to all others, which only receive."""
    return (tuple(range(1, endpoints)), *[()] * (endpoints - 1))


def all_to_one(endpoints: int) -> tuple[tuple[int, ...], ...]:
    return ((), *[(0,)] * (endpoints - 1))


def warm_up(seconds: float) -> float:
    """How many seconds of a round of this length are not counted."""
    return min(WARM_UP_SECONDS, seconds / 4)


def core_configs(
    addresses: Sequence[str], spec: RoundSpec, patience_seconds: float, secret: str | None = None
) -> list[dict[str, Any]]:
    """The core's configuration of each endpoint; ``secret`` is hexadecimal, by default new."""
    mesh = {
        "endpoints": list(addresses),
        "connections": spec.connections,
        "secret": secret or secrets.token_hex(32),
        "patience_seconds": patience_seconds,
    }
    return [
        {
            "mesh": mesh | {"number": number},
            "block_bytes": spec.block_bytes,
            "sends_to": list(sends_to),
            "evenly": spec.evenly,
            "seconds": spec.seconds,
        }
        for number, sends_to in enumerate(spec.sends_to)
    ]


def endpoint_trials(
    endpoint: int, spec: RoundSpec, answer: dict[str, Any], began_at: str
) -> Iterator[Trial]:
    """The trials of an endpoint, one per direction, from its answer in `run_endpoints`."""
    (reported,) = answer["outcome"]["phases"]
    for direction in spec.directions(endpoint):
        trial = trial_from_phase(_direction_report(reported, HALVES[direction]), spec.seconds)
        metric = _metric(direction, endpoint, spec, answer, trial)
        yield structs.replace(
            trial,
            name=f"{direction}, endpoint {endpoint}",
            began_at=began_at,
            step=TrialSpec(
                operation=direction,
                outstanding=metric.concurrency or 0,
                round=spec.number,
                suite="net",
            ),
            settings={name: answer[name] for name in ("congestion_control", "mtu")},
            phase=stage_stats.phase_record(reported),
            reading=metric,
        )


def _metric(
    direction: str, endpoint: int, spec: RoundSpec, answer: dict[str, Any], trial: Trial
) -> Metric:
    outcome = answer["outcome"]
    moved = sum(outcome["phases"][0]["stages"][place]["bytes"] for place in (1, 2))
    cpu = answer["cpu_user_seconds"] + answer["cpu_system_seconds"]
    details: dict[str, Any] = {
        "protocol": "TCP",
        "endpoint": endpoint,
        "endpoints": spec.endpoints,
        "connections_per_pair": spec.connections,
        "process_cpu_seconds_per_byte": cpu / moved if moved else None,
    }
    if direction == SEND:
        details["connections"] = outcome["sent"]
        details["retransmits"] = _sum(sent["retransmits"] for sent in outcome["sent"])
    return Metric(
        source=Source(tool="tonnage", version=tonnage.__version__),
        operation=direction,
        block_bytes=spec.block_bytes,
        concurrency=spec.peers(endpoint, direction) * spec.connections,
        bandwidth_bytes_per_second=trial.bytes_per_second,
        details=details,
    )


def _direction_report(reported: dict[str, Any], stages: slice) -> dict[str, Any]:
    timeline = [sample | {"stages": sample["stages"][stages]} for sample in reported["timeline"]]
    return reported | {"stages": reported["stages"][stages], "timeline": timeline}


def _sum(counts: Iterator[int | None]) -> int | None:
    known = list(counts)
    return None if None in known else sum(count or 0 for count in known)
