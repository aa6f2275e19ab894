"""Rounds that several do at once: which of them were kept whole, and by which way."""

from __future__ import annotations

from collections.abc import Sequence

from tonnage.base.records.measurement import Measurement, Trial

NET = "net"
"""The kind of what is measured of a network, on one machine and between those of a fleet."""
DIRECTIONS = SEND, RECEIVE = "send", "receive"
SLOWEST, ALL = "slowest endpoint", "all endpoints"
"""What a round comes to: a shuffle waits for its slowest endpoint; beside it what all carried."""
PAIR, BOTH_WAYS, ALONE, ALL_TO_ALL = "pair", "both ways", "alone", "all to all"
UNEVENLY = "unevenly, all at once"
"""What machines do at once: one sends to one other; two to each other; one to, or from, all others;
all to all, of which a name goes on with how many there are; the same, but as much as each takes."""

NODES, LATE, ATTEMPT = "nodes", "began_late_seconds", "attempt"
"""What a reading says of a trial that several nodes began at one moment: how many, how much later
than agreed this one did, and, as all of them call it, the attempt that it was part of."""


def between_machines(measurement: Measurement) -> bool:
    """Whether a network's endpoints were machines of a fleet, and not processes of one machine."""
    return "endpoints" not in measurement.settings


def depends_on_partner(pattern: str | None) -> bool:
    """Whether what a machine carries so depends on its partners', and not on its own link alone."""
    return pattern in (PAIR, BOTH_WAYS) or (pattern or "").startswith(ALL_TO_ALL)


def trials_per_round(endpoints: int, one_way: bool) -> int:
    """One for each endpoint and each way that it uses; one way, only the first sends."""
    return endpoints if one_way else 2 * endpoints


def whole_rounds(trials: Sequence[Trial], size: int) -> list[list[Trial]]:
    """The trials of each round that has as many of them as it should."""
    rounds: dict[int, list[Trial]] = {}
    for each in trials:
        if each.step:
            rounds.setdefault(each.step.round, []).append(each)
    return [together for together in rounds.values() if len(together) == size]


def in_direction(together: Sequence[Trial], way: str) -> list[Trial]:
    """The trials of a round that went one way."""
    return [each for each in together if each.step and each.step.operation == way]
