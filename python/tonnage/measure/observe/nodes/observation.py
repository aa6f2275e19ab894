"""The record of a run whose nodes were observed, and its job."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from tonnage.base import formatting
from tonnage.base.records import Environment, Observation, ObservedNode
from tonnage.measure.observe.nodes.node_phases import split_nodes_into_phases
from tonnage.measure.observe.nodes.node_series import AlignedNode, NodeSeries, align
from tonnage.measure.observe.observation import ObservationResult, uncertain_phases
from tonnage.measure.observe.to_job import find_input_size, to_job
from tonnage.measure.trial.trial import new_id

if TYPE_CHECKING:
    from tonnage.measure.observe.nodes.cluster_run import ClusterRun

COMMON_SHARE = 0.9
"""A node that was sampled for less of its time with the others than this share needs a note."""


class NoCommonTime(Exception):
    """Two nodes were never sampled at the same time: which, and when, in a line."""


@dataclass(frozen=True)
class ClusterCommand:
    """A command that ran on a cluster, as far as it is known; none for files of other tools."""

    arguments: list[str]
    exit_code: int | None
    environment: Environment
    own_cpu_seconds: float


def common_time(nodes: Sequence[NodeSeries]) -> tuple[float, float]:
    """When all nodes were sampled, of their clocks; `NoCommonTime` if that is never."""
    last = max(nodes, key=lambda node: node.begin)
    first = min(nodes, key=lambda node: node.end)
    if last.begin >= first.end:
        raise NoCommonTime(
            f"the nodes have no time in common: {first.name} ends at {_clock(first.end)}, before "
            f"{last.name} begins at {_clock(last.begin)}; give files of one run, whose clocks "
            "agree (sadf has UTC, sar local time)"
        )
    return last.begin, first.end


def observe_nodes(
    nodes: Sequence[NodeSeries],
    begin: float,
    end: float,
    *,
    data: int | None,
    notes: Sequence[str],
    command: ClusterCommand | None = None,
) -> Observation:
    """Cut what the nodes did in this time into phases; ``data`` is the input's size, if known."""
    aligned = align(nodes, begin, end)
    phases = split_nodes_into_phases(aligned)
    size, input_from = find_input_size(phases, data)
    gaps = [float(np.diff(node.cpu["busy"].seconds).max()) for node in nodes]
    counts_operations = any("reads" in disk for node in nodes for disk in node.disks.values())
    return Observation(
        id=new_id("observation"),
        began_at=_moment(begin).isoformat(timespec="seconds") if command else _clock(begin),
        command=command.arguments if command else [],
        pids=[],
        exit_code=command.exit_code if command else None,
        environment=command.environment if command else None,
        interval_seconds=max(node.interval_seconds for node in nodes),
        samples=len(aligned[0].series["seconds"]),
        longest_gap_seconds=max(gaps),
        seconds=end - begin,
        own_cpu_seconds=command.own_cpu_seconds if command else None,
        cpu_from="all processes of the nodes",
        operations_of="all on the devices" if counts_operations else "not stated",
        network_of="of the whole nodes",
        control_group="none, since whole nodes were observed",
        device_bytes={},
        dirty_bytes_before=None,
        dirty_bytes_after=None,
        input_bytes=size,
        input_from=input_from,
        phases=phases,
        notes=[
            *notes,
            *(_left_out(nodes, begin, end) if not command else ()),
            *uncertain_phases(phases),
        ],
        nodes=[_node(each) for each in aligned],
    )


def write_cluster_run(
    run: ClusterRun, out: Path, command: ClusterCommand, *, data: int | None
) -> ObservationResult:
    """Write ``observation.json``, and ``job.json`` if the input's size is known."""
    observation = observe_nodes(
        run.nodes, run.begin, run.end, data=data, notes=run.notes, command=command
    )
    observation.write(out / "observation.json")
    job = to_job(Path(command.arguments[0]).name, observation)
    if job:
        job.write(out / "job.json")
    return ObservationResult(observation, job)


def _node(aligned: AlignedNode) -> ObservedNode:
    node = aligned.node
    return ObservedNode(
        name=node.name,
        cores=node.cores,
        link_bytes_per_second=node.link_bytes_per_second,
        least_memory_bytes=int(min(aligned.series["memory_bytes"])),
        samples=node.samples,
        interval_seconds=node.interval_seconds,
    )


def _left_out(nodes: Sequence[NodeSeries], begin: float, end: float) -> list[str]:
    short = [node.name for node in nodes if end - begin < COMMON_SHARE * (node.end - node.begin)]
    if not short:
        return []
    return [
        f"only the {formatting.seconds(end - begin)} count in which all nodes were sampled; "
        f"{formatting.listing(short)} had more"
    ]


def _clock(seconds: float) -> str:
    """A moment as the files' clocks show it."""
    return _moment(seconds).replace(tzinfo=None).isoformat(sep=" ", timespec="seconds")


def _moment(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)
