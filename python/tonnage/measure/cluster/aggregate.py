"""Summarizes the nodes' trials: rates node by node, latencies of all operations in one histogram.

Nodes that did not measure everything are left out.
"""

import statistics
from collections.abc import Mapping, Sequence

from tonnage.base.records import ClusterNode, ClusterSummary, Latency, Trial
from tonnage.base.records.network_rounds import ATTEMPT, LATE, NODES
from tonnage.base.stats.histograms import Bins, merge_histograms, percentile


def aggregate_nodes(nodes: Sequence[ClusterNode]) -> list[ClusterSummary]:
    """A summary of each kind of trial over all nodes that are ``ok``, in the order of names."""
    types = {node.node: node.type for node in nodes}
    kinds: dict[str, dict[str, list[Trial]]] = {}
    for node in nodes:
        if not node.ok or node.measurement is None:
            continue
        for trial in node.measurement.trials:
            if trial.reading and "pattern" in trial.reading.details:
                continue  # Part of what several nodes did together (`shuffle_analysis`).
            kinds.setdefault(trial.name, {}).setdefault(node.node, []).append(trial)
    return [_of_kind(name, of_nodes, types) for name, of_nodes in sorted(kinds.items())]


def latency(bins: Bins, readings: Sequence[Latency]) -> Latency:
    """The latency of merged histograms (``bins``), to which ``readings`` belong."""
    counts = [(each.count or 0, each.mean) for each in readings]
    total = sum(count for count, _ in counts)
    means = [mean * count for count, mean in counts if mean is not None]
    longest = [each.max for each in readings if each.max is not None]
    bounds = [each.error_bound for each in readings if each.error_bound is not None]
    return Latency(
        count=total,
        mean=sum(means) / total if total and len(means) == len(readings) else None,
        p50=percentile(bins, 0.5),
        p90=percentile(bins, 0.9),
        p99=percentile(bins, 0.99),
        p999=percentile(bins, 0.999),
        max=max(longest, default=None),
        error_bound=max(bounds, default=None),
    )


def _of_kind(
    name: str, of_nodes: Mapping[str, Sequence[Trial]], types: Mapping[str, str]
) -> ClusterSummary:
    medians = {
        node: statistics.median(trial.bytes_per_second for trial in trials)
        for node, trials in of_nodes.items()
    }
    of_types: dict[str, list[float]] = {}
    for node, median in medians.items():
        of_types.setdefault(types[node], []).append(median)
    readings = [
        trial.reading
        for trials in of_nodes.values()
        for trial in trials
        if trial.reading and trial.reading.bins
    ]
    bins = merge_histograms(each.bins or [] for each in readings)
    in_step = _in_step(of_nodes)
    return ClusterSummary(
        name=name,
        nodes=len(medians),
        slowest_node=min(medians, key=lambda node: (medians[node], node)),
        low_bytes_per_second=min(medians.values()),
        median_bytes_per_second=statistics.median(medians.values()),
        high_bytes_per_second=max(medians.values()),
        sum_bytes_per_second=sum(medians.values()),
        medians_of_types={each: statistics.median(of_types[each]) for each in sorted(of_types)},
        together_bytes_per_second=statistics.median(in_step) if in_step else None,
        latency_seconds=latency(bins, [each.latency_seconds for each in readings])
        if bins
        else Latency(),
        bins=bins or None,
    )


def _in_step(of_nodes: Mapping[str, Sequence[Trial]]) -> list[float]:
    """The throughput of all nodes together, in each round that exactly they began at one moment.

    As in IOR: the bytes of all over the time from the first start to the last end. A round that was
    repeated since a node died does not count: nodes kept their first results, of different times.
    """
    rounds: dict[tuple[str | None, int], list[tuple[int, float, float]]] = {}
    for trials in of_nodes.values():
        for trial in trials:
            details = trial.reading.details if trial.reading else {}
            if trial.step and details.get(NODES) == len(of_nodes):
                moved = trial.phase.stages[0].bytes
                began = details[LATE]
                ended = began + moved / trial.bytes_per_second
                place = details.get(ATTEMPT), trial.step.round
                rounds.setdefault(place, []).append((moved, began, ended))
    return [
        sum(moved for moved, _, _ in each)
        / (max(ended for *_, ended in each) - min(began for _, began, _ in each))
        for each in rounds.values()
        if len(each) == len(of_nodes)
    ]
