"""Who takes part in a job on a cluster, and what is refused before it begins."""

import os
from collections.abc import Collection, Mapping, Sequence

from tonnage.base import core, formatting
from tonnage.cluster.ray_adapter import Cluster, Machine
from tonnage.run.two_pass.messages import NodeInventory


def machines(
    cluster: Cluster, nodes: int | None, began_with: Collection[str] | None = None
) -> list[Machine]:
    """The machines that take part; `UsageError` if there are too few.

    ``began_with`` are the nodes of a job that is resumed: they come first, and fewer are enough.
    """
    chosen = cluster.machines
    if began_with is not None:
        chosen = sorted(chosen, key=lambda machine: (machine.name not in began_with, machine.name))
    else:
        if nodes is not None and len(chosen) < nodes:
            raise core.UsageError(
                f"{nodes} nodes requested, but the cluster has {len(chosen)}; add nodes or "
                "request fewer",
                setting="nodes",
            )
    return chosen[:nodes]


def weights(nodes: Sequence[str], measured: Mapping[str, float] | None) -> dict[str, float]:
    """The share of partitions that each node is to own; `UsageError` if one was not measured."""
    if measured is None:
        return dict.fromkeys(nodes, 1.0)
    if missing := [node for node in nodes if node not in measured]:
        raise core.UsageError(
            f"the capacities have no measurement of node {missing[0]}; measure all nodes, or "
            "omit capacities",
            setting="capacities",
        )
    return {node: measured[node] for node in nodes}


def refuse_absent(inputs: Sequence[str], absent: Mapping[str, Collection[str]]) -> None:
    """Refuses an input that no node has; ``absent`` are those that each lacks, by their paths."""
    for path in inputs:
        lacking = [node for node in absent if path.replace("{node}", node) in absent[node]]
        if len(lacking) == len(absent):
            raise core.UsageError(f"input {path} does not exist on any node; check the path")


def refuse_parts(nodes: Mapping[str, NodeInventory]) -> None:
    names = {os.path.basename(file.path) for each in nodes.values() for file in each.files}
    for node, inventory in sorted(nodes.items()):
        for part in inventory.parts:
            if part not in names:
                raise core.UsageError(
                    f"the input on {node} is an incomplete output: {part} is missing; specify "
                    "all directories that the output was written to"
                )


def refuse_full(
    nodes: Mapping[str, NodeInventory], weights: Mapping[str, float], total_bytes: int, outputs: int
) -> None:
    """Refuses a node with too little space for its share of scratch and of so many outputs."""
    total_weight = sum(weights.values())
    for node, inventory in sorted(nodes.items()):
        share = total_bytes * weights[node] / total_weight
        output = sum(device.output for device in inventory.devices) or 1
        scratch = sum(device.scratch for device in inventory.devices) or 1
        for device in inventory.devices:
            needs = int(share * (outputs * device.output / output + device.scratch / scratch))
            if device.free_bytes < needs:
                raise core.UsageError(
                    f"{node} has only {formatting.size(device.free_bytes)} free on a device of the "
                    "directories for output or scratch, but its share of the job needs "
                    f"{formatting.size(needs)} there; free some space, or add nodes"
                )
