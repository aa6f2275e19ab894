"""The network edge of a shuffle alone: every endpoint sends to every other, out of memory.

An endpoint is a process that runs the core's ``net_bench``, on loopback or in a network namespace
of its own. All send for the same time over so many TCP connections to each other. A shuffle ends
with its slowest endpoint, so that is the figure, beside what all carried together (Themis'
NetBench). What a round found is kept when it is done; one that was killed is done again.
"""

from __future__ import annotations

import dataclasses
import resource
import secrets
import socket
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tonnage
from tonnage import engine
from tonnage.artifacts import Beside, Figure, Measurement, Reading, Source, Step, Trial
from tonnage.artifacts.together import (
    ALL,
    RECEIVE,
    SEND,
    SLOWEST,
    of_way,
    trials_a_round,
    whole_rounds,
)
from tonnage.engine import probes
from tonnage.measure import beside, environment, rounds
from tonnage.measure.kept import kept
from tonnage.measure.net.endpoint import Place, run_together
from tonnage.measure.net.namespaces import namespaces, refuse_unable
from tonnage.measure.rounds import Rounds
from tonnage.measure.trials import WANTED_SHARE, WARM_UP_SECONDS, figure, now, trial

HALVES = {SEND: slice(0, 2), RECEIVE: slice(2, 4)}
"""The stages of each way: generate -> send, and receive -> discard."""
LOOPBACK = "127.0.0.1"
PORT = 7411
"""In a namespace of one's own any will do."""
BUFFERS_PER_CONNECTION = 4
"""Of a connection's two ends, two each (``crates/graphs/src/net_bench.rs``)."""
MEETING_SECONDS = 30.0
"""Within this all endpoints have to be there."""
ENDING_SECONDS = 30.0
"""Within this they have to end when their time is up."""


@dataclass(frozen=True)
class Settings:
    """How to measure."""

    endpoints: int
    connections: int
    """From each endpoint to each other."""
    block_bytes: int
    """What one of them hands over at a time."""
    seconds: float
    rounds: int
    """At most, if they end when the slowest endpoint's rate is known well enough."""
    until_confidence: float | None
    """As `tonnage.measure.rounds`."""
    one_way: bool
    """Only the first endpoint sends."""
    namespaces: bool
    """Endpoints have a network of their own each, instead of loopback together."""
    rate_bits_per_second: int | None
    """Of each endpoint's link, one way; ``None`` for what the machine can do."""

    @property
    def memory_bytes(self) -> int:
        """The buffers of all endpoints."""
        connections = self.endpoints * (self.endpoints - 1) * self.connections
        return connections * BUFFERS_PER_CONNECTION * self.block_bytes

    @property
    def repeated(self) -> Rounds:
        """How many rounds there are."""
        return Rounds(self.rounds, self.until_confidence)


def measure_net(
    out: Path,
    settings: Settings,
    *,
    command: list[str],
    labels: Mapping[str, str] | None = None,
    on_progress: engine.OnProgress | None = None,
) -> Iterator[Trial | Measurement]:
    """Runs the rounds that ``out`` does not have yet: gives their trials, and the measurement.

    Args:
        out: Where trials are kept; see `tonnage.measure.kept`.
        settings: What to do.
        command: How it can be repeated.
        labels: What else is known of where it is done, like its region.
        on_progress: Called now and then.

    Raises:
        Refused: ``out`` holds trials of other settings; or namespaces cannot be had, which is found
            before anything is written.
        Failed: An endpoint failed or was killed; rounds that were done are in ``out``.
        KeyboardInterrupt: Ctrl-C; likewise. No process and no namespace is left.
    """
    if settings.namespaces:
        refuse_unable()
    with (
        kept(
            out,
            "net",
            dataclasses.asdict(settings),
            command=command,
            environment=environment.capture([], labels),
            stopping_rule=f"rounds in which all send for {settings.seconds:g} s (the first "
            f"{warm_up(settings.seconds):g} s are not counted); the slowest endpoint's rate of "
            f"each way: {rounds.rule(settings.repeated)}",
            page_cache="untouched: no file was read or written",
        ) as trials,
        ExitStack() as stack,
    ):
        places: list[Place] = []
        while not is_enough(whole(trials.trials, settings), settings.repeated):
            places = places or stack.enter_context(_places(settings))
            number = 1 + max((each.step.round for each in trials.trials if each.step), default=-1)
            for found in _round(number, places, settings, on_progress):
                yield trials.keep(found)
        wanted_share = settings.until_confidence or WANTED_SHARE
        yield trials.close(shuffle_figures(whole(trials.trials, settings), wanted_share))


def warm_up(seconds: float) -> float:
    """How much of a round of this length is not counted."""
    return min(WARM_UP_SECONDS, seconds / 4)


def whole(trials: Sequence[Trial], settings: Settings) -> list[list[Trial]]:
    """The trials of each round that was kept whole."""
    return whole_rounds(trials, trials_a_round(settings.endpoints, settings.one_way))


def is_enough(done: Sequence[Sequence[Trial]], repeated: Rounds) -> bool:
    """Whether rounds are enough: as many as may be, or each way's slowest endpoint is known."""
    return len(done) >= repeated.most or all(
        rounds.is_known(slowest(done, way), repeated.until_confidence) for way in HALVES
    )


def slowest(done: Sequence[Sequence[Trial]], way: str) -> list[float]:
    """What the slowest endpoint had in each round."""
    return [min(of_round) for of_round in _rates(done, way)]


def shuffle_figures(
    done: Sequence[Sequence[Trial]], wanted_share: float = WANTED_SHARE
) -> list[Figure]:
    """Of each way what the slowest endpoint had, and all together: the median over the rounds.

    Args:
        done: The trials of each round.
        wanted_share: How precise they are to be; see `tonnage.measure.trials`.
    """
    figures = []
    for way in HALVES:
        together = [sum(of_round) for of_round in _rates(done, way)]
        figures += [
            figure(f"{way}, {SLOWEST}", slowest(done, way), wanted_share),
            figure(f"{way}, {ALL}", together, wanted_share),
        ]
    return figures


def _rates(done: Sequence[Sequence[Trial]], way: str) -> list[list[float]]:
    return [[each.bytes_per_second for each in of_way(together, way)] for together in done]


def _places(settings: Settings) -> AbstractContextManager[list[Place]]:
    if settings.namespaces:
        return namespaces(settings.endpoints, settings.rate_bits_per_second)
    return nullcontext([Place(LOOPBACK)] * settings.endpoints)


def _round(
    number: int, places: list[Place], settings: Settings, on_progress: engine.OnProgress | None
) -> Iterator[Trial]:
    """One round: the trials of each endpoint."""
    configs = configurations(_addresses(places, settings), settings)
    began_at = now()
    before = _children_seconds()
    with beside.Watch("lo") as watch:
        answers = run_together(
            places,
            configs,
            most_seconds=MEETING_SECONDS + settings.seconds + ENDING_SECONDS,
            on_progress=on_progress,
        )
    happened = watch.beside
    if happened:
        foreign = happened.foreign_cpu_seconds - (_children_seconds() - before)
        happened = dataclasses.replace(happened, foreign_cpu_seconds=max(foreign, 0.0))
    for endpoint, (config, answer) in enumerate(zip(configs, answers, strict=True)):
        ways = [SEND] if config["sends"] else []
        if not settings.one_way or endpoint:
            ways.append(RECEIVE)
        for way in ways:
            yield _trial(way, number, endpoint, settings, answer, began_at, happened)


def configurations(addresses: Sequence[str], settings: Settings) -> list[dict[str, Any]]:
    """The core's configuration of each endpoint; ``addresses`` are theirs, ``HOST:PORT``."""
    mesh = {
        "endpoints": list(addresses),
        "connections": settings.connections,
        "secret": secrets.token_hex(32),
        "patience_seconds": MEETING_SECONDS,
    }
    return [
        {
            "mesh": mesh | {"number": number},
            "block_bytes": settings.block_bytes,
            "sends": number == 0 or not settings.one_way,
            "seconds": settings.seconds,
        }
        for number in range(len(addresses))
    ]


def _addresses(places: Sequence[Place], settings: Settings) -> list[str]:
    """An address for each endpoint; on loopback with a port that nobody listens on."""
    if settings.namespaces:
        return [f"{place.host}:{PORT}" for place in places]
    with ExitStack() as stack:
        # All at once, so that none is given twice. The kernel dials from the other half of its
        # ports, so no connection takes one of these before its endpoint listens on it.
        sockets = [stack.enter_context(socket.socket()) for _ in places]
        for place, listener in zip(places, sockets, strict=True):
            listener.bind((place.host, 0))
        return ["{}:{}".format(*listener.getsockname()) for listener in sockets]


def _children_seconds() -> float:
    """Core seconds of the processes that this one has waited for."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _trial(
    way: str,
    number: int,
    endpoint: int,
    settings: Settings,
    answer: dict[str, Any],
    began_at: str,
    happened: Beside | None,
) -> Trial:
    """What an endpoint sent, or received, in a round; its CPU is that of the stages that did."""
    outcome = answer["outcome"]
    (reported,) = outcome["phases"]
    found = trial(_half(reported, HALVES[way]), settings.seconds)
    moved = sum(reported["stages"][place]["bytes"] for place in (1, 2))
    used = answer["cpu_user_seconds"] + answer["cpu_system_seconds"]
    details: dict[str, Any] = {
        "protocol": "TCP",
        "endpoint": endpoint,
        "endpoints": settings.endpoints,
        "connections_per_pair": settings.connections,
        "process_cpu_seconds_per_byte": used / moved if moved else None,
    }
    if way == SEND:
        details["connections"] = outcome["sent"]
        details["retransmits"] = _sum(sent["retransmits"] for sent in outcome["sent"])
    peers = 1 if settings.one_way and way == RECEIVE else settings.endpoints - 1
    reading = Reading(
        source=Source(tool="tonnage", version=tonnage.__version__),
        operation=way,
        block_bytes=settings.block_bytes,
        concurrency=peers * settings.connections,
        bandwidth_bytes_per_second=found.bytes_per_second,
        details=details,
    )
    return dataclasses.replace(
        found,
        name=f"{way}, endpoint {endpoint}",
        began_at=began_at,
        step=Step(operation=way, outstanding=reading.concurrency or 0, round=number, suite="net"),
        settings={name: answer[name] for name in ("congestion_control", "mtu")},
        phase=probes.phase(reported),
        reading=reading,
        beside=happened,
    )


def _half(reported: dict[str, Any], stages: slice) -> dict[str, Any]:
    """A phase as the core reports it, with these stages alone."""
    timeline = [sample | {"stages": sample["stages"][stages]} for sample in reported["timeline"]]
    return reported | {"stages": reported["stages"][stages], "timeline": timeline}


def _sum(counts: Iterator[int | None]) -> int | None:
    """The sum, unless one of them is not known."""
    known = list(counts)
    return None if None in known else sum(count or 0 for count in known)
