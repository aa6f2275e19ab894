"""Measurements of a cluster on the terminal: the nodes' trials, and what they add up to."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tonnage.base import formatting
from tonnage.base.records import (
    ClusterMeasurement,
    ClusterNode,
    ClusterSummary,
    Measurement,
    Metric,
)
from tonnage.base.records.cluster_measurement import NODE_FILE
from tonnage.cli.output.trials import Details, latency_parts, no_details

if TYPE_CHECKING:
    from tonnage.measure.cluster.driver import TrialDone


def document(
    measurement: ClusterMeasurement,
    details: Callable[[Measurement], Details] = no_details,
) -> dict[str, Any]:
    """The measurement as JSON values: a row for each node."""
    values = measurement.to_json()
    values["nodes"] = [_node_values(node, details) for node in measurement.nodes]
    return values


def summary(
    measurement: ClusterMeasurement,
    out: Path,
    details: Callable[[Measurement], Details] = no_details,
) -> list[str]:
    """All nodes together, in lines; nodes without results come last."""
    lines = [_summary_line(each) for each in measurement.across]
    if measurement.skew_seconds is not None:
        error = formatting.latency(measurement.clock_error_seconds or 0.0)
        lines.append(
            f"All nodes started within {formatting.latency(measurement.skew_seconds)} of each "
            f"other (clock error: at most {error})"
        )
    if measurement.first_done_seconds is not None and measurement.last_done_seconds is not None:
        lines.append(
            f"The first node finished after {formatting.seconds(measurement.first_done_seconds)}, "
            f"the last after {formatting.seconds(measurement.last_done_seconds)}"
        )
    lines += _low_priority(measurement)
    lines += [
        f"{each.node}: {line}"
        for each in measurement.nodes
        if each.measurement
        for line in details(each.measurement)[1]
    ]
    ok = len(measurement.nodes) - len(measurement.missing)
    nodes = formatting.several(len(measurement.nodes), "node")
    lines.append(f"{measurement.id}: results from {ok} of {nodes}")
    return lines + [_missing(each, out) for each in measurement.missing]


def network_lines(measurement: ClusterMeasurement) -> Iterator[str]:
    if measurement.baseline_bytes_per_second is not None:
        types = measurement.types
        mixed = f" ({formatting.listing(types)} nodes)" if len(types) > 1 else ""
        rate = formatting.rate(measurement.baseline_bytes_per_second)
        yield f"Median pair{mixed}: {rate}{_duplex(measurement)}"
    if slowest := measurement.slowest_link:
        rate = formatting.rate(slowest.slower_direction)
        yield f"Slowest link: {slowest.node}, {rate} with all others"
    for size in measurement.sizes:
        share = size.fraction_of_baseline
        of_pair = "" if share is None else f", {formatting.percent(share)} of the slowest pair's"
        yield (
            f"All-to-all, {formatting.several(size.nodes, 'node')}, "
            f"{formatting.several(size.connections, 'connection')} per pair: slowest node "
            f"{size.slowest_node}, {formatting.rate(size.slowest_bytes_per_second)}{of_pair}; "
            f"total {formatting.rate(size.sum_bytes_per_second)}"
        )


def _duplex(measurement: ClusterMeasurement) -> str:
    if measurement.both_ways_share is None:
        return ""
    kind = "full" if measurement.full_duplex else "half"
    return (
        f"; both directions at once: {measurement.both_ways_share:.2f} times that ({kind} duplex)"
    )


def event_line(event: TrialDone | ClusterNode, trial_line: Callable[[Metric], str]) -> str:
    if isinstance(event, ClusterNode):
        if event.ok:
            return f"{event.node}: done in {formatting.seconds(event.seconds or 0.0)}"
        return f"{event.node}: {event.why}"
    trial = event.trial
    result = trial_line(trial.reading) if trial.reading else formatting.rate(trial.bytes_per_second)
    return f"{event.node}: {trial.name}: {result}"


def _missing(row: ClusterNode, out: Path) -> str:
    from tonnage.measure.cluster.store import node_directory

    details = f" (details: {out / node_directory(row.node) / NODE_FILE})" if row.error else ""
    return f"Missing: {row.node}: {row.why}{details}"


def _node_values(node: ClusterNode, details: Callable[[Measurement], Details]) -> dict[str, Any]:
    single = node.measurement
    values: Mapping[str, Any] = single.to_json() | details(single)[0] if single else {}
    row = {"node": node.node, "type": node.machine_type, **node.status}
    return row | {name: value for name, value in values.items() if name not in node.status}


def _low_priority(measurement: ClusterMeasurement) -> list[str]:
    """Nodes that measured at a low priority: Ray's processes have one and may not leave it."""
    nodes = {
        each.node: each.measurement.environment.niceness
        for each in measurement.nodes
        if each.measurement and each.measurement.environment
    }
    nice = [f"{node} (nice {value})" for node, value in nodes.items() if value and value > 0]
    if not nice:
        return []
    return [
        f"Measured at a lower CPU priority than other processes: {formatting.listing(nice)}; start "
        "Ray as root, or with RAY_worker_niceness=0"
    ]


def _summary_line(each: ClusterSummary) -> str:
    parts = [f"median node {formatting.rate(each.median_bytes_per_second)}"]
    if len(types := each.medians_of_types) > 1:
        # Of unlike machines the middle one is like none of them.
        medians = (f"{formatting.rate(rate)} ({name})" for name, rate in types.items())
        parts = [f"median nodes of each type {formatting.listing(medians)}"]
    if each.nodes > 1:
        low, high = map(formatting.rate, (each.low_bytes_per_second, each.high_bytes_per_second))
        parts.append(f"range {low} ({each.slowest_node}) to {high}")
        parts.append(f"total {formatting.rate(each.sum_bytes_per_second)}")
    if each.together_bytes_per_second is not None:
        together = formatting.rate(each.together_bytes_per_second)
        parts.insert(0, f"{together} in total, from the first start to the last end")
    latency = each.latency_seconds
    if quantiles := latency_parts(latency.p50, latency.p99, latency.max):
        parts.append(f"latency of all operations {quantiles}")
    return f"{each.name}: {'; '.join(parts)}"
