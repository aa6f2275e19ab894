"""Turn the core's report of a run into records: stages, phases, timelines."""

from __future__ import annotations

from typing import Any

from tonnage.base.records import Phase, Stage


def phase_record(reported: dict[str, Any]) -> Phase:
    """The record of a reported phase, without its timeline."""
    return Phase(
        name=reported["name"],
        graph=reported["graph"],
        began_seconds=reported["began_seconds"],
        seconds=reported["seconds"],
        bottleneck=reported["bottleneck"],
        memory_bytes=reported["memory_bytes"],
        disk_modes=reported["disk_modes"],
        stages=[stage_record(values) for values in reported["stages"]],
    )


def stage_record(values: dict[str, Any]) -> Stage:
    return Stage(
        name=values["name"],
        kind=values["kind"],
        workers=values["workers"],
        bytes=values["bytes"],
        records=values["records"],
        busy_seconds=values["busy_seconds"],
        starved_seconds=values["starved_seconds"],
        blocked_seconds=values["blocked_seconds"],
        cpu_seconds=values["cpu_seconds"],
        memory_bytes=values["memory_bytes"],
        config=values["config"],
    )


def timeline_table(phases: list[dict[str, Any]]) -> dict[str, list[Any]]:
    """The samples of all phases as columns: one row per stage and sample."""
    counters = (
        "bytes",
        "records",
        "busy_seconds",
        "starved_seconds",
        "blocked_seconds",
        "cpu_seconds",
        "depth",
    )
    columns: dict[str, list[Any]] = {name: [] for name in ("phase", "stage", "seconds", *counters)}
    for reported in phases:
        names = [stage["name"] for stage in reported["stages"]]
        for sample in reported["timeline"]:
            for name, values in zip(names, sample["stages"], strict=True):
                columns["phase"].append(reported["name"])
                columns["stage"].append(name)
                columns["seconds"].append(reported["began_seconds"] + sample["seconds"])
                for counter in counters:
                    columns[counter].append(values[counter])
    return columns


def without_samples(outcome: dict[str, Any]) -> dict[str, Any]:
    """An outcome without its samples over time, which are most of its size."""
    phases = [{**phase, "timeline": []} for phase in outcome["phases"]]
    return outcome | {"phases": phases}
