"""Rounds of a network measurement: patterns, directions, complete rounds."""

from collections.abc import Sequence

from tonnage.base.records.measurement import Measurement, Trial

NET = "net"  # The kind of network measurements, within one machine or between machines
DIRECTIONS = SEND, RECEIVE = "send", "receive"
SLOWEST, ALL = "slowest endpoint", "all endpoints"  # A shuffle waits for its slowest endpoint
PAIR, BOTH_WAYS, ALONE, ALL_TO_ALL = "pair", "both ways", "alone", "all to all"
UNEVENLY = "unevenly, all at once"
"""Patterns; after ``all to all`` comes the number of nodes. Unevenly: as much as each takes."""

NODES, LATE, ATTEMPT = "nodes", "began_late_seconds", "attempt"
"""Details of a trial that several nodes began at once; the attempt is the same for all."""


def between_machines(measurement: Measurement) -> bool:
    """Whether endpoints were machines of a cluster, not processes of one machine."""
    return "endpoints" not in measurement.settings


def depends_on_partner(pattern: str | None) -> bool:
    """Whether a machine's rate also depends on its partners' links."""
    return pattern in (PAIR, BOTH_WAYS) or (pattern or "").startswith(ALL_TO_ALL)


def trials_per_round(endpoints: int, one_way: bool) -> int:
    """One for each endpoint and direction; one way, only the first sends."""
    return endpoints if one_way else 2 * endpoints


def whole_rounds(trials: Sequence[Trial], size: int) -> list[list[Trial]]:
    """The trials of each complete round."""
    rounds: dict[int, list[Trial]] = {}
    for each in trials:
        if each.step:
            rounds.setdefault(each.step.round, []).append(each)
    return [together for together in rounds.values() if len(together) == size]


def in_direction(together: Sequence[Trial], way: str) -> list[Trial]:
    return [each for each in together if each.step and each.step.operation == way]
