"""Cut the nodes of a run into phases together: where the sum of what they do changes; pure.

Rates that count as nothing are a machine's, so the mean of the nodes is cut, not their sum. What
each node did is apportioned at the same cuts, so that nodes add up to their phase. What limited a
phase is what limited its busiest node: the one that used most of any of its resources.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from tonnage.base.records import NodeUsage, ObservedPhase
from tonnage.measure.observe.bottleneck import (
    CORE_WAITS,
    MachineCapacity,
    find_bottleneck,
    utilisation,
)
from tonnage.measure.observe.nodes.node_series import AlignedNode
from tonnage.measure.observe.phases import (
    build_phase,
    find_phase_cuts,
    mark_growth,
    peak_memory,
)
from tonnage.measure.observe.series import SERIES


def split_nodes_into_phases(nodes: Sequence[AlignedNode]) -> list[ObservedPhase]:
    """Find the phases, at least one, of nodes with the same moments, two or more."""
    cuts = find_phase_cuts(_mean(nodes))
    counts_of = [cuts.counts(node.series) for node in nodes]
    phases = []
    for place, period in enumerate(cuts.periods):
        counts = [each[place] for each in counts_of]
        usages = [
            _usage(node, *period, counted) for node, counted in zip(nodes, counts, strict=True)
        ]
        busiest = max(usages, key=lambda usage: max(usage.shares.values()))
        total = {name: sum(each[name] for each in counts) for name in counts[0]}
        phases.append(
            build_phase(
                place,
                period,
                total,
                peak_memory_bytes=max(usage.peak_memory_bytes for usage in usages),
                shares=busiest.shares,
                bottleneck=busiest.bottleneck,
                why=f"on {busiest.node}, {busiest.why}" if len(nodes) > 1 else busiest.why,
                nodes=usages,
            )
        )
    return mark_growth(phases)


def _mean(nodes: Sequence[AlignedNode]) -> dict[str, list[float]]:
    return {
        name: np.mean([node.series[name] for node in nodes], axis=0).tolist() for name in SERIES
    }


def _usage(
    aligned: AlignedNode, begin: float, end: float, counts: Mapping[str, float]
) -> NodeUsage:
    node, series = aligned.node, aligned.series
    machine = MachineCapacity(node.cores, node.link_bytes_per_second, is_whole=True)
    used = utilisation(series, aligned.devices, machine, begin, end, dict(counts))
    del used[CORE_WAITS]  # No process is followed.
    if node.busiest_core is None:
        del used["one core"]
    bottleneck, why = find_bottleneck(used, dict(counts), machine)

    def increase(name: str) -> float:
        early, late = np.interp([begin, end], series["seconds"], series[name])
        return max(float(late - early), 0.0)

    return NodeUsage(
        node=node.name,
        cpu_seconds=counts["cpu_seconds"],
        io_wait_seconds=increase("host_iowait_seconds"),
        stolen_seconds=increase("host_steal_seconds"),
        read_bytes=round(counts["read_bytes"]),
        written_bytes=round(counts["written_bytes"]),
        network_received_bytes=round(counts["network_received_bytes"]),
        network_sent_bytes=round(counts["network_sent_bytes"]),
        peak_memory_bytes=peak_memory(series, begin, end),
        shares=used,
        bottleneck=bottleneck,
        why=why,
    )
