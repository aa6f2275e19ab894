"""An endpoint's part of a round: what the core is told, and the trials that came of it; pure.

Wherever endpoints are, on loopback, in namespaces or on a fleet's machines, a round is the same:
each sends to those that it is told to, all for the same time.
"""

from __future__ import annotations

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
"""The stages of each way: generate -> send, and receive -> discard."""


@dataclass(frozen=True)
class RoundSpec:
    """What endpoints do at once."""

    number: int
    sends_to: tuple[tuple[int, ...], ...]
    """Of each endpoint, to which others."""
    connections: int
    """From each endpoint to each other."""
    block_bytes: int
    seconds: float
    evenly: bool = True
    """Whether each of them is sent the same, as in a shuffle, or as much as it takes."""

    @property
    def endpoints(self) -> int:
        """How many take part."""
        return len(self.sends_to)

    def peers(self, endpoint: int, way: str) -> int:
        """How many an endpoint sends to, or how many send to it."""
        if way == SEND:
            return len(self.sends_to[endpoint])
        return sum(endpoint in others for others in self.sends_to)

    def ways(self, endpoint: int) -> list[str]:
        """Those that an endpoint uses."""
        return [way for way in DIRECTIONS if self.peers(endpoint, way)]


def all_to_all(endpoints: int) -> tuple[tuple[int, ...], ...]:
    """Each sends to every other."""
    everyone = range(endpoints)
    return tuple(tuple(to for to in everyone if to != number) for number in everyone)


def one_to_all(endpoints: int) -> tuple[tuple[int, ...], ...]:
    """The first sends to all others, which only receive."""
    return (tuple(range(1, endpoints)), *[()] * (endpoints - 1))


def all_to_one(endpoints: int) -> tuple[tuple[int, ...], ...]:
    """All others send to the first."""
    return ((), *[(0,)] * (endpoints - 1))


def warm_up(seconds: float) -> float:
    """How much of a round of this length is not counted."""
    return min(WARM_UP_SECONDS, seconds / 4)


def core_configs(
    addresses: Sequence[str], together: RoundSpec, patience_seconds: float
) -> list[dict[str, Any]]:
    """The core's configuration of each endpoint, with a secret that only these have.

    Args:
        addresses: Theirs, ``HOST:PORT``.
        together: What they do.
        patience_seconds: Within this all have to be there.
    """
    mesh = {
        "endpoints": list(addresses),
        "connections": together.connections,
        "secret": secrets.token_hex(32),
        "patience_seconds": patience_seconds,
    }
    return [
        {
            "mesh": mesh | {"number": number},
            "block_bytes": together.block_bytes,
            "sends_to": list(sends_to),
            "evenly": together.evenly,
            "seconds": together.seconds,
        }
        for number, sends_to in enumerate(together.sends_to)
    ]


def endpoint_trials(
    endpoint: int, together: RoundSpec, answer: dict[str, Any], began_at: str
) -> Iterator[Trial]:
    """What an endpoint sent, and received, in a round; CPU is that of the stages that did.

    Args:
        endpoint: Its number.
        together: The round.
        answer: What its process told; see `tonnage.measure.net.endpoint`.
        began_at: When the round began.
    """
    (reported,) = answer["outcome"]["phases"]
    for way in together.ways(endpoint):
        found = trial_from_phase(_half(reported, HALVES[way]), together.seconds)
        reading = _reading(way, endpoint, together, answer, found)
        yield structs.replace(
            found,
            name=f"{way}, endpoint {endpoint}",
            began_at=began_at,
            step=TrialSpec(
                operation=way,
                outstanding=reading.concurrency or 0,
                round=together.number,
                suite="net",
            ),
            settings={name: answer[name] for name in ("congestion_control", "mtu")},
            phase=stage_stats.phase_record(reported),
            reading=reading,
        )


def _reading(
    way: str, endpoint: int, together: RoundSpec, answer: dict[str, Any], found: Trial
) -> Metric:
    outcome = answer["outcome"]
    moved = sum(outcome["phases"][0]["stages"][place]["bytes"] for place in (1, 2))
    used = answer["cpu_user_seconds"] + answer["cpu_system_seconds"]
    details: dict[str, Any] = {
        "protocol": "TCP",
        "endpoint": endpoint,
        "endpoints": together.endpoints,
        "connections_per_pair": together.connections,
        "process_cpu_seconds_per_byte": used / moved if moved else None,
    }
    if way == SEND:
        details["connections"] = outcome["sent"]
        details["retransmits"] = _sum(sent["retransmits"] for sent in outcome["sent"])
    return Metric(
        source=Source(tool="tonnage", version=tonnage.__version__),
        operation=way,
        block_bytes=together.block_bytes,
        concurrency=together.peers(endpoint, way) * together.connections,
        bandwidth_bytes_per_second=found.bytes_per_second,
        details=details,
    )


def _half(reported: dict[str, Any], stages: slice) -> dict[str, Any]:
    """A phase as the core reports it, with these stages alone."""
    timeline = [sample | {"stages": sample["stages"][stages]} for sample in reported["timeline"]]
    return reported | {"stages": reported["stages"][stages], "timeline": timeline}


def _sum(counts: Iterator[int | None]) -> int | None:
    """The sum, unless one of them is not known."""
    known = list(counts)
    return None if None in known else sum(count or 0 for count in known)
