"""``tonnage run sort --fleet``: paths are the machines' own; what befell each of them is told."""

from __future__ import annotations

import json
import re
import statistics
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tonnage import engine, words
from tonnage.artifacts import NodeRun, Phase, RunRecord
from tonnage.cli.arguments import command, new_directory
from tonnage.cli.fleet import refuse_without_ray
from tonnage.cli.gathered import read_fleets
from tonnage.cli.measured import NODE
from tonnage.model.findings import disk_warnings

if TYPE_CHECKING:
    from tonnage.run.sort import Layout

RELEVANT = ("ro", "wo", "rw")
"""What a sort does with disks: of these a machine's slowest rate counts."""
CONNECTIONS = 1
PATIENCE_SECONDS = 60.0


def sort_on_fleet(
    address: str,
    inputs: Sequence[Path],
    output: Sequence[Path],
    scratch: Sequence[Path],
    layout: Layout,
    memory_bytes: int,
    as_json: bool,
    out: Path | None,
    connections: int | None,
    patience_seconds: float | None,
    instances: int | None,
    capacities: Path | None,
    durability: str | None,
) -> None:
    """Sorts, and shows how it went.

    Raises:
        Refused: Ray is not there, or arguments, a machine, or the input cannot be used.
        Failed: It cannot be done any more, or what came out is not what went in.
        KeyboardInterrupt: Ctrl-C; the same command goes on.
    """
    for flag, paths in (("input", inputs), ("--output", output), ("--scratch", scratch)):
        _refuse_nowhere(flag, paths)
    refuse_without_ray()
    from tonnage.fleet.asked import NONE
    from tonnage.fleet.cluster import attached
    from tonnage.fleet.sorting import sort_fleet
    from tonnage.fleet.sorts import SortAsked

    asked = SortAsked(
        inputs=[str(path) for path in inputs],
        output=[str(path) for path in output],
        scratch=[str(path) for path in scratch],
        layout=layout,
        memory_bytes=memory_bytes,
        connections=connections or CONNECTIONS,
        patience_seconds=patience_seconds or PATIENCE_SECONDS,
        command=command(),
        instances=instances,
        weights=None if capacities is None else weights(capacities),
        durability=durability or NONE,
    )
    out = out or new_directory("tonnage-sort")
    try:
        with attached(address) as cluster, engine.Progress("sorting") as progress:
            record = sort_fleet(cluster, out, asked, progress.of)
    except (KeyboardInterrupt, engine.Failed):
        print(f"tonnage: the same command goes on, with --out {out}", file=sys.stderr)
        raise
    if as_json:
        print(json.dumps(record.to_json()))
        return
    print("\n".join(in_words(record)))
    print(f"Kept in {out}; the output's files: {out / 'sorted.json'}")


def weights(measured: Path) -> dict[str, float]:
    """Each node's slowest median rate of those that a sort depends on.

    Raises:
        Refused: Nothing of the kind was measured there.
    """
    found: dict[str, float] = {}
    for fleet in read_fleets([measured]):
        for row in fleet.nodes:
            if not row.ok or row.measurement is None:
                continue
            rates: dict[str, list[float]] = {}
            for trial in row.measurement.trials:
                if trial.name in RELEVANT:
                    rates.setdefault(trial.name, []).append(trial.bytes_per_second)
            if rates:
                found[row.node] = min(statistics.median(each) for each in rates.values())
    if not found:
        raise engine.Refused(
            f"--capacities {measured}: no machine's disks were measured there: give what tonnage "
            "measure disk --fleet kept"
        )
    return found


def in_words(record: RunRecord) -> list[str]:
    """What a sort on a fleet did, line by line."""
    cpu, rate = words.significant(record.cpu_seconds), "no time"
    if record.seconds:
        rate = words.rate(record.bytes / record.seconds)
    lines = [
        f"{record.records} records, {record.bytes} bytes, checksum {record.checksum}",
        f"{words.seconds(record.seconds)}, {rate} sorted, {cpu} core seconds on "
        f"{words.several(len(record.nodes), 'node')}",
        f"{words.size(record.network_bytes)} went from node to node, in "
        f"{words.several(len(record.rounds), 'round')} of pass one",
    ]
    of_phases: dict[str, dict[str, list[Phase]]] = {}
    for node in record.nodes:
        for phase in node.phases:
            of_phases.setdefault(phase.name, {}).setdefault(node.node, []).append(phase)
    lines += [_slowest(name, of_nodes) for name, of_nodes in of_phases.items()]
    if record.repartitioned_bytes:
        again = words.size(record.repartitioned_bytes)
        lines.append(f"{again} were divided once more, since --memory is small for them: give more")
    lines += [_lost(node) for node in record.nodes if node.lost]
    phases = (phase for node in record.nodes for phase in node.phases)
    return [*lines, *disk_warnings(phases)]


def _slowest(name: str, of_nodes: Mapping[str, Sequence[Phase]]) -> str:
    """A phase on the node that took longest for it."""
    seconds = {node: sum(phase.seconds for phase in phases) for node, phases in of_nodes.items()}
    slowest = max(seconds, key=lambda node: (seconds[node], node))
    limits = words.listing(dict.fromkeys(phase.bottleneck for phase in of_nodes[slowest]))
    middle = words.seconds(statistics.median(seconds.values()))
    took = words.seconds(seconds[slowest])
    return f"{name}: {took} on {slowest}, the slowest (median {middle}), limited by {limits}"


def _lost(node: NodeRun) -> str:
    return f"Lost: {node.node}: {node.lost}"


def _refuse_nowhere(flag: str, paths: Sequence[Path]) -> None:
    """Refuses paths that are somewhere else on each machine, or name what there is not."""
    for path in paths:
        if not path.is_absolute():
            raise engine.Refused(
                f"{flag} {path}: with --fleet give a path from / on: it is each machine's own"
            )
        unknown = [each for each in re.findall(r"\{[^{}/]*\}", str(path)) if each != NODE]
        if unknown:
            raise engine.Refused(
                f"{flag} {path}: there is no {unknown[0]}, only {NODE}, the node's name"
            )
