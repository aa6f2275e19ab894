"""The network edge of a shuffle alone: every endpoint sends to every other, out of memory.

An endpoint is a process that runs the core's ``net_bench``, on loopback or in a network namespace
of its own. All send for the same time over so many TCP connections to each other. A shuffle ends
with its slowest endpoint, so that is the figure, beside what all carried together (Themis'
NetBench). What a round found is kept when it is done; one that was killed is done again.
"""

from __future__ import annotations

import dataclasses
import resource
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path

from msgspec import structs

from tonnage.base import core
from tonnage.base.records import Measurement, Summary, Trial
from tonnage.base.records.network_rounds import (
    ALL,
    DIRECTIONS,
    SLOWEST,
    in_direction,
    trials_per_round,
    whole_rounds,
)
from tonnage.base.system import activity
from tonnage.measure.net import endpoint_round
from tonnage.measure.net.endpoint import EndpointHost, run_endpoints
from tonnage.measure.net.endpoint_round import (
    RoundSpec,
    all_to_all,
    core_configs,
    one_to_all,
    warm_up,
)
from tonnage.measure.net.namespaces import namespaces, require_namespaces
from tonnage.measure.trial import environment, repetition
from tonnage.measure.trial.repetition import RepetitionPlan
from tonnage.measure.trial.session import open_session
from tonnage.measure.trial.trial import WANTED_SHARE, summarise, utc_now

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
class NetSettings:
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
    """As `tonnage.measure.trial.repetition`."""
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
    def repetition_plan(self) -> RepetitionPlan:
        """How many rounds there are."""
        return RepetitionPlan(self.rounds, self.until_confidence)


def measure_net(
    out: Path,
    settings: NetSettings,
    *,
    command: list[str],
    labels: Mapping[str, str] | None = None,
    on_progress: core.OnProgress | None = None,
) -> Iterator[Trial | Measurement]:
    """Runs the rounds that ``out`` does not have yet: gives their trials, and the measurement.

    Args:
        out: Where trials are kept; see `tonnage.measure.trial.session`.
        settings: What to do.
        command: How it can be repeated.
        labels: What else is known of where it is done, like its region.
        on_progress: Called now and then.

    Raises:
        UsageError: ``out`` holds trials of other settings; or namespaces cannot be had, which is found
            before anything is written.
        RunError: An endpoint failed or was killed; rounds that were done are in ``out``.
        KeyboardInterrupt: Ctrl-C; likewise. No process and no namespace is left.
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
            f"{warm_up(settings.seconds):g} s are not counted); the slowest endpoint's rate of "
            f"each way: {repetition.stopping_rule(settings.repetition_plan)}",
            page_cache="untouched: no file was read or written",
        ) as trials,
        ExitStack() as stack,
    ):
        places: list[EndpointHost] = []
        while not are_rounds_precise(
            complete_rounds(trials.trials, settings), settings.repetition_plan
        ):
            places = places or stack.enter_context(_places(settings))
            number = 1 + max((each.step.round for each in trials.trials if each.step), default=-1)
            for found in _round(number, places, settings, on_progress):
                yield trials.add(found)
        wanted_share = settings.until_confidence or WANTED_SHARE
        yield trials.finish(
            shuffle_summaries(complete_rounds(trials.trials, settings), wanted_share)
        )


def complete_rounds(trials: Sequence[Trial], settings: NetSettings) -> list[list[Trial]]:
    """The trials of each round that was kept whole."""
    return whole_rounds(trials, trials_per_round(settings.endpoints, settings.one_way))


def are_rounds_precise(done: Sequence[Sequence[Trial]], repeated: RepetitionPlan) -> bool:
    """Whether rounds are enough: as many as may be, or each way's slowest endpoint is known."""
    return len(done) >= repeated.most or all(
        repetition.are_precise(slowest_rates(done, way), repeated.until_confidence)
        for way in DIRECTIONS
    )


def slowest_rates(done: Sequence[Sequence[Trial]], way: str) -> list[float]:
    """What the slowest endpoint had in each round."""
    return [min(of_round) for of_round in _rates(done, way)]


def shuffle_summaries(
    done: Sequence[Sequence[Trial]], wanted_share: float = WANTED_SHARE
) -> list[Summary]:
    """Of each way what the slowest endpoint had, and all together: the median over the rounds.

    Args:
        done: The trials of each round.
        wanted_share: How precise they are to be; see `tonnage.measure.trial.trial`.
    """
    figures = []
    for way in DIRECTIONS:
        together = [sum(of_round) for of_round in _rates(done, way)]
        figures += [
            summarise(f"{way}, {SLOWEST}", slowest_rates(done, way), wanted_share),
            summarise(f"{way}, {ALL}", together, wanted_share),
        ]
    return figures


def _rates(done: Sequence[Sequence[Trial]], way: str) -> list[list[float]]:
    return [[each.bytes_per_second for each in in_direction(together, way)] for together in done]


def _places(settings: NetSettings) -> AbstractContextManager[list[EndpointHost]]:
    if settings.namespaces:
        return namespaces(settings.endpoints, settings.rate_bits_per_second)
    return nullcontext([EndpointHost(LOOPBACK)] * settings.endpoints)


def _round(
    number: int,
    places: list[EndpointHost],
    settings: NetSettings,
    on_progress: core.OnProgress | None,
) -> Iterator[Trial]:
    """One round: the trials of each endpoint."""
    sends_to = one_to_all if settings.one_way else all_to_all
    together = RoundSpec(
        number=number,
        sends_to=sends_to(settings.endpoints),
        connections=settings.connections,
        block_bytes=settings.block_bytes,
        seconds=settings.seconds,
    )
    began_at = utc_now()
    before = _children_seconds()
    with _addresses(places, settings) as addresses, activity.ActivityMonitor("lo") as watch:
        configs = core_configs(addresses, together, MEETING_SECONDS)
        answers = run_endpoints(
            places,
            configs,
            timeout_seconds=MEETING_SECONDS + settings.seconds + ENDING_SECONDS,
            on_progress=on_progress,
        )
    happened = watch.activity
    if happened:
        foreign = happened.foreign_cpu_seconds - (_children_seconds() - before)
        happened = structs.replace(happened, foreign_cpu_seconds=max(foreign, 0.0))
    for endpoint, answer in enumerate(answers):
        for found in endpoint_round.endpoint_trials(endpoint, together, answer, began_at):
            yield structs.replace(found, beside=happened)


@contextmanager
def _addresses(places: Sequence[EndpointHost], settings: NetSettings) -> Iterator[list[str]]:
    """An address for each endpoint; on loopback with a port that is held for it."""
    if settings.namespaces:
        yield [f"{place.host}:{PORT}" for place in places]
        return
    with ExitStack() as stack:
        yield [str(stack.enter_context(core.ReservedPort(place.host))) for place in places]


def _children_seconds() -> float:
    """Core seconds of the processes that this one has waited for."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
