"""What the network between machines carries: as pairs, each alone, all to all as they get more.

Follows Themis' NetBench: a shuffle ends with its slowest node, so of each number of nodes that is
the figure, and it is told as a share of the slowest pair among the same nodes in the same round.
Figures are medians over rounds; a node's of a round is the less of what it sent and received.
"""

from __future__ import annotations

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
"""Times what a pair carries one way: carrying more both ways at once is full duplex."""


TrialsByNode = Mapping[str, Mapping[str, Trial]]
"""By node and way, what was done at once."""


def analyse_shuffle(measured: ClusterMeasurement) -> ClusterMeasurement:
    """The measurement with what its network carries; what who was lost did before counts."""
    done = _together(measured)
    pairs: dict[tuple[str, str], list[float]] = {}
    for (_, pattern, nodes, _), together in done.items():
        if pattern == PAIR and RECEIVE in together.get(nodes[1], {}):
            pairs.setdefault((nodes[0], nodes[1]), []).append(_rate(together, nodes[1], RECEIVE))
    middles = {pair: statistics.median(rates) for pair, rates in pairs.items()}
    alone = [each for key, each in done.items() if key[1] == ALONE]
    unevenly = [each for key, each in done.items() if key[1] == UNEVENLY]
    share = _both_ways(done)
    return structs.replace(
        measured,
        baseline_bytes_per_second=statistics.median_low(middles.values()) if middles else None,
        pairs=[(first, second, rate) for (first, second), rate in sorted(middles.items())],
        both_ways_share=share,
        full_duplex=None if share is None else share > FULL_DUPLEX,
        links=_rates_of_nodes(alone or unevenly),
        sizes=list(_sizes(done)),
        rounds=_rounds(done),
    )


Key = tuple[int, str, tuple[str, ...], int]
"""Round, what was done, by whom, connections a pair."""


def _together(measured: ClusterMeasurement) -> dict[Key, dict[str, dict[str, Trial]]]:
    found: dict[Key, dict[str, dict[str, dict[str, Trial]]]] = {}
    for row in measured.nodes:
        for trial in row.measurement.trials if row.measurement else []:
            details = trial.reading.details if trial.reading else {}
            if not trial.step or "pattern" not in details:
                continue
            nodes, connections = tuple(details["node_names"]), details["connections_per_pair"]
            key = trial.step.round, details["pattern"], nodes, connections
            of_node = found.setdefault(key, {}).setdefault(details["attempt"], {})
            of_node.setdefault(row.node, {})[trial.step.operation] = trial
    return {key: _fullest(list(attempts.values())) for key, attempts in found.items()}


def _fullest(attempts: Sequence[TrialsByNode]) -> dict[str, dict[str, Trial]]:
    """Of each way the attempt of which most is there: parts of several are never put together."""
    found: dict[str, dict[str, Trial]] = {}
    seen: set[str] = set()
    for attempt in sorted(attempts, key=lambda each: -sum(map(len, each.values()))):
        ways = {way for of_node in attempt.values() for way in of_node} - seen
        for node, of_node in attempt.items():
            for way in ways & of_node.keys():
                found.setdefault(node, {})[way] = of_node[way]
        seen |= ways
    return found


def _sizes(done: Mapping[Key, TrialsByNode]) -> Iterator[AllToAllResult]:
    groups: dict[tuple[int, int], list[tuple[int, TrialsByNode]]] = {}
    for (number, pattern, nodes, connections), together in done.items():
        # One of which a node was lost is no shuffle of so many.
        if pattern.startswith(ALL_TO_ALL) and all(len(together.get(e, {})) == 2 for e in nodes):
            groups.setdefault((len(nodes), connections), []).append((number, together))
    for (count, connections), rounds in sorted(groups.items()):
        slowest = [_slowest(together) for _, together in rounds]
        # Of a round: with other nodes in another one, what lies between two was nobody's.
        rate, node = sorted(slowest)[(len(slowest) - 1) // 2]
        shares = [
            rate / least
            for (number, together), (rate, _) in zip(rounds, slowest, strict=True)
            if (least := _slowest_pair(done, number, set(together)))
        ]
        per_node = _rates_of_nodes([together for _, together in rounds])
        received = [sum(_rate(e, node, RECEIVE) for node in e) for _, e in rounds]
        yield AllToAllResult(
            nodes=count,
            connections=connections,
            slowest_node=node,
            slowest_bytes_per_second=rate,
            sum_bytes_per_second=statistics.median(received),
            per_node=per_node,
            fraction_of_baseline=statistics.median(shares) if shares else None,
        )


def _slowest(together: TrialsByNode) -> tuple[float, str]:
    """The least that a node sent or received, and which."""
    return min(
        (trial.bytes_per_second, node) for node, ways in together.items() for trial in ways.values()
    )


def _slowest_pair(done: Mapping[Key, TrialsByNode], number: int, among: set[str]) -> float | None:
    rates = [
        _rate(together, nodes[1], RECEIVE)
        for (round_, pattern, nodes, _), together in done.items()
        if pattern == PAIR
        and round_ == number
        and among.issuperset(nodes)
        and RECEIVE in together.get(nodes[1], {})
    ]
    return min(rates, default=None)


def _both_ways(done: Mapping[Key, TrialsByNode]) -> float | None:
    shares = []
    for (number, pattern, nodes, _), together in done.items():
        alone = done.get((number, PAIR, nodes, 1), {}).get(nodes[-1], {}).get(RECEIVE)
        if pattern == BOTH_WAYS and alone and all(RECEIVE in together.get(e, {}) for e in nodes):
            both = sum(_rate(together, node, RECEIVE) for node in nodes)
            shares.append(both / alone.bytes_per_second)
    return statistics.median(shares) if shares else None


def _rates_of_nodes(rounds: Sequence[TrialsByNode]) -> list[NodeRates]:
    found: dict[str, dict[str, list[float]]] = {}
    for together in rounds:
        for node, ways in together.items():
            for way, trial in ways.items():
                found.setdefault(node, {}).setdefault(way, []).append(trial.bytes_per_second)
    medians = {
        node: {way: statistics.median(rates) for way, rates in ways.items()}
        for node, ways in sorted(found.items())
    }
    return [NodeRates(node, ways.get(SEND), ways.get(RECEIVE)) for node, ways in medians.items()]


def _rounds(done: Mapping[Key, TrialsByNode]) -> dict[str, int]:
    numbers: dict[str, set[int]] = {}
    for number, pattern, _, _ in done:
        numbers.setdefault(pattern, set()).add(number)
    return {pattern: len(of_pattern) for pattern, of_pattern in numbers.items()}


def _rate(together: TrialsByNode, node: str, way: str) -> float:
    return together[node][way].bytes_per_second
