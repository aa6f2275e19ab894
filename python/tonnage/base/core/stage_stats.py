"""Turn the core's report of a run into records: stages, phases, timelines."""

from typing import Any

from tonnage.base.records import Phase, Stage


def phase_record(reported: dict[str, Any]) -> Phase:
    """The record of a reported phase, without its timeline."""
    stages = [
        Stage(**{name: values[name] for name in Stage.__struct_fields__})
        for values in reported["stages"]
    ]
    fields = {name: reported[name] for name in Phase.__struct_fields__}
    return Phase(**fields | {"stages": stages})


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
