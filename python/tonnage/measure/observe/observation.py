"""From what was watched to the records: `Observation`, and the `Job` that it is a row of."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tonnage.base.records import Environment, Job, Observation, ObservedPhase
from tonnage.measure.observe import host_counters
from tonnage.measure.observe.bottleneck import MachineCapacity
from tonnage.measure.observe.monitor import MonitorResult
from tonnage.measure.observe.phases import NOTHING, split_into_phases
from tonnage.measure.observe.to_job import find_input_size, to_job
from tonnage.measure.trial.trial import new_id

DIRTY = 1_000_000
"""Fewer bytes that are left to be written back are not worth a word."""
OTHERS = 0.2
"""Less than this share of the cores that others had is not worth one either."""


@dataclass(frozen=True)
class ObservationResult:
    """What is known of it in the end; ``job`` is None if its input is not known."""

    observation: Observation
    job: Job | None


def write_observation(
    watched: MonitorResult,
    out: Path,
    *,
    command: list[str],
    pids: list[int],
    data: int | None,
    interval_seconds: float,
    environment: Environment,
) -> ObservationResult:
    """Finds the phases and writes ``observation.json``, and ``job.json`` if there is an input.

    Args:
        watched: What came of watching.
        out: Where the records go.
        command: What was watched, if it was started.
        pids: What was watched, if it ran already.
        data: The size of its input, if it was said.
        interval_seconds: As asked for.
        environment: Where it ran.
    """
    series = watched.series
    found = split_into_phases(
        series,
        watched.devices,
        MachineCapacity(environment.cores, host_counters.link_bytes_per_second()),
    )
    size, whence = find_input_size(found, data)
    dirty = [int(series["host_dirty_bytes"][place]) for place in (0, -1)]
    observation = Observation(
        id=new_id("observation"),
        began_at=watched.began_at,
        command=command,
        pids=pids,
        exit_code=watched.exit_code,
        environment=environment,
        interval_seconds=interval_seconds,
        samples=len(series["seconds"]),
        longest_gap_seconds=float(np.diff(series["seconds"]).max()),
        seconds=series["seconds"][-1],
        own_cpu_seconds=watched.own_cpu_seconds,
        cpu_from=watched.cpu_from,
        operations_of=watched.operations_of,
        network_of=watched.network_of,
        control_group=watched.control_group,
        device_bytes=watched.device_bytes,
        dirty_bytes_before=dirty[0],
        dirty_bytes_after=dirty[1],
        input_bytes=size,
        input_from=whence,
        phases=found,
        notes=[
            *watched.notes,
            *_others(series, environment.cores),
            *_unsure(found),
            *_left(*dirty),
        ],
    )
    observation.write(out / "observation.json")
    job = to_job(watched.name, observation)
    if job:
        job.write(out / "job.json")
    return ObservationResult(observation, job)


def _others(series: dict[str, list[float]], cores: int) -> list[str]:
    kinds = ("host_busy_seconds", "host_steal_seconds")
    used = sum(series[kind][-1] - series[kind][0] for kind in kinds) - series["cpu_seconds"][-1]
    share = used / series["seconds"][-1] / cores
    if share < OTHERS:
        return []
    return [
        f"others had {100 * share:.0f} % of the cores meanwhile: its demands hold, its times are "
        "longer than they would be alone"
    ]


def _unsure(found: list[ObservedPhase]) -> list[str]:
    """Words on a beginning or an end that was taken for work, since it has most of the CPU time."""
    moved = [phase.read_bytes + phase.written_bytes for phase in found]
    least = NOTHING * sum(moved)
    return [
        f"{found[place].name} moves next to nothing and is taken to grow with the input, since it "
        "has half of the CPU time: if it does not, observe a larger input"
        for place in sorted({0, len(found) - 1})
        if found[place].grows and moved[place] <= least and any(moved)
    ]


def _left(before: int, after: int) -> list[str]:
    if after - before < DIRTY:
        return []
    return [
        f"{(after - before) / 1e6:.0f} MB more than before were still to be written back when it "
        "ended: they are counted, in the phase that made them dirty, and the devices are not done "
        "with them"
    ]
