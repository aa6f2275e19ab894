"""Measure the network part of a shuffle on one machine: every endpoint sends to every other.

An endpoint is a process that runs the core's ``net_bench``, on loopback or in a network namespace
of its own. All endpoints send memory to each other for the same time, over several TCP connections
per pair. A shuffle ends with its slowest endpoint, so the result is its rate, next to the sum over
all (Themis' NetBench). A round is recorded when it is complete; an interrupted one is repeated.
"""

import dataclasses
import resource
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path

from msgspec import structs

from tonnage.base import core
from tonnage.base.clock import utc_now
from tonnage.base.records import Measurement, Summary, Trial
from tonnage.base.records.network_rounds import (
    ALL,
    DIRECTIONS,
    SLOWEST,
    in_direction,
    trials_per_round,
    whole_rounds,
)
from tonnage.base.system.activity import ActivityMonitor
from tonnage.measure.net.endpoint import EndpointHost, run_endpoints
from tonnage.measure.net.endpoint_round import (
    RoundSpec,
    all_to_all,
    core_configs,
    endpoint_trials,
    one_to_all,
    warm_up,
)
from tonnage.measure.net.namespaces import namespaces, require_namespaces
from tonnage.measure.trial import environment, repetition
from tonnage.measure.trial.repetition import RepetitionPlan
from tonnage.measure.trial.session import open_session
from tonnage.measure.trial.trial import WANTED_SHARE, summarise

LOOPBACK = "127.0.0.1"
PORT = 7411
"""Any port is free in a new namespace."""
BUFFERS_PER_CONNECTION = 4
"""Two at each end (``crates/graphs/src/benches/net.rs``)."""
CONNECT_TIMEOUT_SECONDS = 30.0
END_TIMEOUT_SECONDS = 30.0
"""Endpoints have to end within this time after the round."""


@dataclass(frozen=True)
class NetSettings:
    endpoints: int
    connections: int
    """From each endpoint to each other."""
    block_bytes: int
    """The size of one send."""
    seconds: float
    rounds: int
    """With ``until_confidence``, at most."""
    until_confidence: float | None
    """Of the slowest endpoint's rate; see `tonnage.measure.trial.repetition`."""
    one_way: bool
    """Only the first endpoint sends."""
    namespaces: bool
    """Each endpoint has a network namespace, instead of sharing loopback."""
    rate_bits_per_second: int | None
    """Rate limit of each endpoint's link, per direction; ``None`` for no limit."""

    @property
    def memory_bytes(self) -> int:
        connections = self.endpoints * (self.endpoints - 1) * self.connections
        return connections * BUFFERS_PER_CONNECTION * self.block_bytes

    @property
    def repetition_plan(self) -> RepetitionPlan:
        return RepetitionPlan(self.rounds, self.until_confidence)


def measure_net(
    out: Path,
    settings: NetSettings,
    *,
    command: list[str],
    labels: Mapping[str, str] | None = None,
    on_progress: core.OnProgress | None = None,
) -> Iterator[Trial | Measurement]:
    """Yield the trials of the missing rounds, and finally the measurement.

    Unavailable namespaces are refused before anything is written. No process or namespace is left.
    """
    if settings.namespaces:
        require_namespaces()
    with (
        open_session(
            out,
            "net",
            dataclasses.asdict(settings),
            command=command,
            environment=environment.capture([], labels),
            stopping_rule=f"rounds in which all send for {settings.seconds:g} s (the first "
            f"{warm_up(settings.seconds):g} s are not counted); the slowest endpoint's rate in "
            f"each direction: {repetition.stopping_rule(settings.repetition_plan)}",
            page_cache="untouched: no file was read or written",
        ) as session,
        ExitStack() as stack,
    ):
        hosts: list[EndpointHost] = []
        while not are_rounds_precise(
            complete_rounds(session.trials, settings), settings.repetition_plan
        ):
            hosts = hosts or stack.enter_context(_endpoint_hosts(settings))
            number = 1 + max((each.step.round for each in session.trials if each.step), default=-1)
            for trial in _run_round(number, hosts, settings, on_progress):
                yield session.add(trial)
        wanted_share = settings.until_confidence or WANTED_SHARE
        yield session.finish(
            shuffle_summaries(complete_rounds(session.trials, settings), wanted_share)
        )


def complete_rounds(trials: Sequence[Trial], settings: NetSettings) -> list[list[Trial]]:
    return whole_rounds(trials, trials_per_round(settings.endpoints, settings.one_way))


def are_rounds_precise(rounds: Sequence[Sequence[Trial]], plan: RepetitionPlan) -> bool:
    """Whether there are enough rounds: the most, or a precise slowest rate in each direction."""
    return len(rounds) >= plan.most or all(
        repetition.are_precise(slowest_rates(rounds, direction), plan.until_confidence)
        for direction in DIRECTIONS
    )


def slowest_rates(rounds: Sequence[Sequence[Trial]], direction: str) -> list[float]:
    return [min(rates) for rates in _rates(rounds, direction)]


def shuffle_summaries(
    rounds: Sequence[Sequence[Trial]], wanted_share: float = WANTED_SHARE
) -> list[Summary]:
    """Summarise the slowest endpoint, and all endpoints together, in each direction."""
    result = []
    for direction in DIRECTIONS:
        sums = [sum(rates) for rates in _rates(rounds, direction)]
        result += [
            summarise(f"{direction}, {SLOWEST}", slowest_rates(rounds, direction), wanted_share),
            summarise(f"{direction}, {ALL}", sums, wanted_share),
        ]
    return result


def _rates(rounds: Sequence[Sequence[Trial]], direction: str) -> list[list[float]]:
    return [
        [trial.bytes_per_second for trial in in_direction(trials, direction)] for trials in rounds
    ]


def _endpoint_hosts(settings: NetSettings) -> AbstractContextManager[list[EndpointHost]]:
    if settings.namespaces:
        return namespaces(settings.endpoints, settings.rate_bits_per_second)
    return nullcontext([EndpointHost(LOOPBACK)] * settings.endpoints)


def _run_round(
    number: int,
    hosts: list[EndpointHost],
    settings: NetSettings,
    on_progress: core.OnProgress | None,
) -> Iterator[Trial]:
    sends_to = one_to_all if settings.one_way else all_to_all
    spec = RoundSpec(
        number=number,
        sends_to=sends_to(settings.endpoints),
        connections=settings.connections,
        block_bytes=settings.block_bytes,
        seconds=settings.seconds,
    )
    began_at = utc_now()
    before = _children_seconds()
    with _addresses(hosts, settings) as addresses, ActivityMonitor("lo") as monitor:
        configs = core_configs(addresses, spec, CONNECT_TIMEOUT_SECONDS)
        answers = run_endpoints(
            hosts,
            configs,
            timeout_seconds=CONNECT_TIMEOUT_SECONDS + settings.seconds + END_TIMEOUT_SECONDS,
            on_progress=on_progress,
        )
    activity = monitor.activity
    if activity:
        foreign = activity.foreign_cpu_seconds - (_children_seconds() - before)
        activity = structs.replace(activity, foreign_cpu_seconds=max(foreign, 0.0))
    for endpoint, answer in enumerate(answers):
        for trial in endpoint_trials(endpoint, spec, answer, began_at):
            yield structs.replace(trial, activity=activity)


@contextmanager
def _addresses(hosts: Sequence[EndpointHost], settings: NetSettings) -> Iterator[list[str]]:
    if settings.namespaces:
        yield [f"{host.host}:{PORT}" for host in hosts]
        return
    with ExitStack() as stack:
        yield [str(stack.enter_context(core.ReservedPort(host.host))) for host in hosts]


def _children_seconds() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime
