"""Turn the samples into records: an `Observation`, and a `Job` if its input size is known."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tonnage.base.records import Environment, Job, Observation, ObservedPhase
from tonnage.base.system.procfs import link_bytes_per_second
from tonnage.measure.observe.bottleneck import MachineCapacity
from tonnage.measure.observe.monitor import MonitorResult
from tonnage.measure.observe.phases import NOTHING, split_into_phases
from tonnage.measure.observe.to_job import find_input_size, to_job
from tonnage.measure.trial.trial import new_id

DIRTY = 1_000_000
"""Fewer bytes waiting for writeback need no note."""
FOREIGN = 0.2
"""A smaller share of the cores used by others needs no note."""


@dataclass(frozen=True)
class ObservationResult:
    """``job`` is None if the input size is not known."""

    observation: Observation
    job: Job | None


def write_observation(
    result: MonitorResult,
    out: Path,
    *,
    command: list[str],
    pids: list[int],
    data: int | None,
    interval_seconds: float,
    environment: Environment,
) -> ObservationResult:
    """Find the phases; write ``observation.json``, and ``job.json`` if the input is known."""
    series = result.series
    phases = split_into_phases(
        series, result.devices, MachineCapacity(environment.cores, link_bytes_per_second())
    )
    size, input_from = find_input_size(phases, data)
    dirty = [int(series["host_dirty_bytes"][place]) for place in (0, -1)]
    observation = Observation(
        id=new_id("observation"),
        began_at=result.began_at,
        command=command,
        pids=pids,
        exit_code=result.exit_code,
        environment=environment,
        interval_seconds=interval_seconds,
        samples=len(series["seconds"]),
        longest_gap_seconds=float(np.diff(series["seconds"]).max()),
        seconds=series["seconds"][-1],
        own_cpu_seconds=result.own_cpu_seconds,
        cpu_from=result.cpu_from,
        operations_of=result.operations_of,
        network_of=result.network_of,
        control_group=result.control_group,
        device_bytes=result.device_bytes,
        dirty_bytes_before=dirty[0],
        dirty_bytes_after=dirty[1],
        input_bytes=size,
        input_from=input_from,
        phases=phases,
        notes=[
            *result.notes,
            *_foreign_load(series, environment.cores),
            *uncertain_phases(phases),
            *_dirty_pages(*dirty),
        ],
    )
    observation.write(out / "observation.json")
    job = to_job(result.name, observation)
    if job:
        job.write(out / "job.json")
    return ObservationResult(observation, job)


def _foreign_load(series: dict[str, list[float]], cores: int) -> list[str]:
    kinds = ("host_busy_seconds", "host_steal_seconds")
    used = sum(series[kind][-1] - series[kind][0] for kind in kinds) - series["cpu_seconds"][-1]
    share = used / series["seconds"][-1] / cores
    if share < FOREIGN:
        return []
    return [
        f"other processes used {100 * share:.0f} % of the cores; the demands are valid, but the "
        "times are longer than on an idle machine"
    ]


def uncertain_phases(phases: list[ObservedPhase]) -> list[str]:
    """Note a first or last phase that counts as work only because of its CPU time."""
    moved = [phase.read_bytes + phase.written_bytes for phase in phases]
    least = NOTHING * sum(moved)
    return [
        f"{phases[place].name} moves almost no data, but uses half of the CPU time, so it is "
        "assumed to grow with the input; if it does not, observe a larger input"
        for place in sorted({0, len(phases) - 1})
        if phases[place].grows and moved[place] <= least and any(moved)
    ]


def _dirty_pages(before: int, after: int) -> list[str]:
    if after - before < DIRTY:
        return []
    return [
        f"at the end, {(after - before) / 1e6:.0f} MB more than at the start were waiting for "
        "writeback; they count in the phase that wrote them, but are not on the devices yet"
    ]
