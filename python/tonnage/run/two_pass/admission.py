"""What a job on a fleet can be done with: who takes part, what is refused."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Mapping, Sequence

from tonnage.base import core
from tonnage.cluster.ray_adapter import Cluster, Machine
from tonnage.cluster.step_worker import FAILED, REFUSED, StepResult
from tonnage.run.two_pass.worker import NodeInventory


def machines(
    cluster: Cluster, instances: int | None, began: Collection[str] | None = None
) -> list[Machine]:
    """The machines that take part.

    Args:
        cluster: Whose.
        instances: How many at most; ``None`` for all.
        began: Those that a job began with which now goes on: they come first, and fewer are enough.

    Raises:
        UsageError: There are too few.
    """
    found = cluster.machines
    if began is not None:
        found = sorted(found, key=lambda machine: (machine.name not in began, machine.name))
    elif instances is not None and len(found) < instances:
        raise core.UsageError(
            f"--nodes {instances}: the fleet has {len(found)} machines: add some, or ask for fewer"
        )
    return found[:instances]


def weights(nodes: Sequence[str], given: Mapping[str, float] | None) -> dict[str, float]:
    """The share of partitions that each node is to own.

    Raises:
        UsageError: One was not measured.
    """
    if given is None:
        return dict.fromkeys(nodes, 1.0)
    if missing := [node for node in nodes if node not in given]:
        raise core.UsageError(
            f"--capacities: {missing[0]} was not measured there: measure all nodes, or leave it out"
        )
    return {node: given[node] for node in nodes}


def refuse_absent(inputs: Sequence[str], absent: Mapping[str, Collection[str]]) -> None:
    """Refuses an input that no node has; ``absent`` are those that each lacks, by their paths."""
    for path in inputs:
        lacking = [node for node in absent if path.replace("{node}", node) in absent[node]]
        if len(lacking) == len(absent):
            raise core.UsageError(f"input {path} is on no node: name what is on one of them")


def refuse_parts(looks: Mapping[str, NodeInventory]) -> None:
    """Refuses inputs that are a part of an output only."""
    names = {os.path.basename(file.path) for look in looks.values() for file in look.files}
    for node, look in sorted(looks.items()):
        for part in look.parts:
            if part not in names:
                raise core.UsageError(
                    f"the input on {node} is a part of an output only: {part} is missing; give all "
                    "directories that it was written to"
                )


def refuse_full(
    looks: Mapping[str, NodeInventory], shares: Mapping[str, float], total_bytes: int, copies: int
) -> None:
    """Refuses if a node has too little room for its share of scratch and of so many outputs."""
    whole = sum(shares.values())
    for node, look in sorted(looks.items()):
        share = total_bytes * shares[node] / whole
        output = sum(room.output for room in look.rooms) or 1
        scratch = sum(room.scratch for room in look.rooms) or 1
        for room in look.rooms:
            needs = int(share * (copies * room.output / output + room.scratch / scratch))
            if room.free_bytes < needs:
                raise core.UsageError(
                    f"{node} has {room.free_bytes} bytes free on a device for --output or "
                    f"--scratch, its share needs {needs} there: free some, or add nodes"
                )


def unreachable_peers(end: StepResult, nodes: Sequence[str]) -> list[str]:
    """The nodes with which one could not exchange data in a step that has come to an end."""
    if end.kind in (FAILED, REFUSED):
        return blamed_peers(end.reason, nodes)
    told = end.value if isinstance(end.value, Mapping) else {}
    links = [*told.get("sent", ()), *told.get("received", ())]
    return [nodes[link["peer"]] for link in links if link["lost"] is not None]


def blamed_peers(why: str, nodes: Sequence[str]) -> list[str]:
    """The nodes that an error of the network names; endpoints are in the order of nodes."""
    numbers = {int(number) for number in re.findall(r"\bendpoint (\d+) \(", why)}
    return [nodes[number] for number in sorted(numbers) if number < len(nodes)]
