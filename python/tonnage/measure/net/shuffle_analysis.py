"""Analyse the network between nodes: pairs, single links, and all-to-all of growing sizes.

As in Themis' NetBench, a shuffle ends with its slowest node. So the result for each number of nodes
is the slowest node's rate, also as a share of the slowest pair among the same nodes in the same
round. Results are medians over rounds; a node's rate in a round is the lower of its two directions.
"""

import statistics
from collections.abc import Iterator, Mapping, Sequence

from msgspec import structs

from tonnage.base.records import ClusterMeasurement, Trial
from tonnage.base.records.cluster_measurement import AllToAllResult, NodeRates
from tonnage.base.records.network_rounds import (
    ALL_TO_ALL,
    ALONE,
    BOTH_WAYS,
    PAIR,
    RECEIVE,
    SEND,
    UNEVENLY,
)

FULL_DUPLEX = 1.5
"""A pair is full duplex if both directions at once carry this multiple of one direction."""


TrialsByNode = Mapping[str, Mapping[str, Trial]]
"""Concurrent trials by node and direction."""


def analyse_shuffle(measured: ClusterMeasurement) -> ClusterMeasurement:
    """Add the analysis to a measurement; trials of lost nodes count."""
    tests = _group_trials(measured)
    pairs: dict[tuple[str, str], list[float]] = {}
    for (_, pattern, nodes, _), trials in tests.items():
        if pattern == PAIR and RECEIVE in trials.get(nodes[1], {}):
            pairs.setdefault((nodes[0], nodes[1]), []).append(_rate(trials, nodes[1], RECEIVE))
    medians = {pair: statistics.median(rates) for pair, rates in pairs.items()}
    alone = [trials for key, trials in tests.items() if key[1] == ALONE]
    unevenly = [trials for key, trials in tests.items() if key[1] == UNEVENLY]
    share = _both_ways(tests)
    return structs.replace(
        measured,
        baseline_bytes_per_second=statistics.median_low(medians.values()) if medians else None,
        pairs=[(first, second, rate) for (first, second), rate in sorted(medians.items())],
        both_ways_share=share,
        full_duplex=None if share is None else share > FULL_DUPLEX,
        links=_rates_of_nodes(alone or unevenly),
        sizes=list(_sizes(tests)),
        rounds=_rounds(tests),
    )


Key = tuple[int, str, tuple[str, ...], int]
"""Round, pattern, nodes, connections per pair."""


def _group_trials(measured: ClusterMeasurement) -> dict[Key, dict[str, dict[str, Trial]]]:
    grouped: dict[Key, dict[str, dict[str, dict[str, Trial]]]] = {}
    for row in measured.nodes:
        for trial in row.measurement.trials if row.measurement else []:
            details = trial.reading.details if trial.reading else {}
            if not trial.step or "pattern" not in details:
                continue
            nodes, connections = tuple(details["node_names"]), details["connections_per_pair"]
            key = trial.step.round, details["pattern"], nodes, connections
            attempt = grouped.setdefault(key, {}).setdefault(details["attempt"], {})
            attempt.setdefault(row.node, {})[trial.step.operation] = trial
    return {key: _fullest(list(attempts.values())) for key, attempts in grouped.items()}


def _fullest(attempts: Sequence[TrialsByNode]) -> dict[str, dict[str, Trial]]:
    """For each direction the most complete attempt: attempts are never combined."""
    result: dict[str, dict[str, Trial]] = {}
    used: set[str] = set()
    for attempt in sorted(attempts, key=lambda each: -sum(map(len, each.values()))):
        directions = {way for by_direction in attempt.values() for way in by_direction} - used
        for node, by_direction in attempt.items():
            for way in directions & by_direction.keys():
                result.setdefault(node, {})[way] = by_direction[way]
        used |= directions
    return result


def _sizes(tests: Mapping[Key, TrialsByNode]) -> Iterator[AllToAllResult]:
    groups: dict[tuple[int, int], list[tuple[int, TrialsByNode]]] = {}
    for (number, pattern, nodes, connections), trials in tests.items():
        # Without a lost node it is not a shuffle of this size.
        if pattern.startswith(ALL_TO_ALL) and all(len(trials.get(node, {})) == 2 for node in nodes):
            groups.setdefault((len(nodes), connections), []).append((number, trials))
    for (count, connections), rounds in sorted(groups.items()):
        slowest = [_slowest(trials) for _, trials in rounds]
        # The lower median: a mean of two rounds belongs to no node.
        rate, node = sorted(slowest)[(len(slowest) - 1) // 2]
        shares = [
            rate / least
            for (number, trials), (rate, _) in zip(rounds, slowest, strict=True)
            if (least := _slowest_pair(tests, number, set(trials)))
        ]
        per_node = _rates_of_nodes([trials for _, trials in rounds])
        received = [sum(_rate(trials, node, RECEIVE) for node in trials) for _, trials in rounds]
        yield AllToAllResult(
            nodes=count,
            connections=connections,
            slowest_node=node,
            slowest_bytes_per_second=rate,
            sum_bytes_per_second=statistics.median(received),
            per_node=per_node,
            fraction_of_baseline=statistics.median(shares) if shares else None,
        )


def _slowest(trials: TrialsByNode) -> tuple[float, str]:
    return min(
        (trial.bytes_per_second, node)
        for node, directions in trials.items()
        for trial in directions.values()
    )


def _slowest_pair(tests: Mapping[Key, TrialsByNode], number: int, among: set[str]) -> float | None:
    rates = [
        _rate(trials, nodes[1], RECEIVE)
        for (round_, pattern, nodes, _), trials in tests.items()
        if pattern == PAIR
        and round_ == number
        and among.issuperset(nodes)
        and RECEIVE in trials.get(nodes[1], {})
    ]
    return min(rates, default=None)


def _both_ways(tests: Mapping[Key, TrialsByNode]) -> float | None:
    shares = []
    for (number, pattern, nodes, _), trials in tests.items():
        alone = tests.get((number, PAIR, nodes, 1), {}).get(nodes[-1], {}).get(RECEIVE)
        if (
            pattern == BOTH_WAYS
            and alone
            and all(RECEIVE in trials.get(node, {}) for node in nodes)
        ):
            both = sum(_rate(trials, node, RECEIVE) for node in nodes)
            shares.append(both / alone.bytes_per_second)
    return statistics.median(shares) if shares else None


def _rates_of_nodes(rounds: Sequence[TrialsByNode]) -> list[NodeRates]:
    rates: dict[str, dict[str, list[float]]] = {}
    for trials in rounds:
        for node, by_direction in trials.items():
            for direction, trial in by_direction.items():
                rates.setdefault(node, {}).setdefault(direction, []).append(trial.bytes_per_second)
    medians = {
        node: {way: statistics.median(values) for way, values in by_direction.items()}
        for node, by_direction in sorted(rates.items())
    }
    return [NodeRates(node, rate.get(SEND), rate.get(RECEIVE)) for node, rate in medians.items()]


def _rounds(tests: Mapping[Key, TrialsByNode]) -> dict[str, int]:
    numbers: dict[str, set[int]] = {}
    for number, pattern, _, _ in tests:
        numbers.setdefault(pattern, set()).add(number)
    return {pattern: len(rounds) for pattern, rounds in numbers.items()}


def _rate(trials: TrialsByNode, node: str, direction: str) -> float:
    return trials[node][direction].bytes_per_second
