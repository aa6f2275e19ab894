"""Where and how it was done: warnings, environment, devices, settings, versions, commands."""

from __future__ import annotations

from typing import Any

from tonnage.artifacts import Device, Environment, Phase, Study
from tonnage.report import words
from tonnage.report.markup import Child, Html, block, facts, join, section, table, tag

# Above this many runnable threads a core, others had a good part of the machine.
HIGH_LOAD = 0.5


def warnings(study: Study) -> list[str]:
    """What makes the figures say less than they seem to."""
    environments = {"the study": study.environment}
    for measurement in study.measurements:
        environments.setdefault(f"measurement {measurement.id}", measurement.environment)
    if study.run:
        environments["the job"] = study.run.environment
    found = []
    if any(environment.debug_build for environment in environments.values()):
        found.append("This is a debug build: its speeds say nothing about Tonnage's.")
    for what, environment in environments.items():
        if what != "the study" and environment == study.environment:
            continue  # Captured once for all.
        if environment.load_average > HIGH_LOAD * environment.cores:
            load = words.significant(environment.load_average, 2)
            found.append(
                f"The load average was {load} on {environment.cores} cores when {what} began:"
                " something else was running."
            )
    return found + _disk_warnings(_phases(study))


def circumstances(study: Study) -> Html:
    """The section."""
    found = warnings(study)
    said = [tag("li", warning) for warning in found]
    parts: list[Child] = [
        tag("h3", "Warnings", id="warnings"),
        tag("ul", *said, class_="warnings") if said else tag("p", "None."),
        tag("h3", "Machine"),
        _machine(study.environment),
        _devices(study.environment.devices),
        tag("h3", "Settings"),
        _settings("Settings of the study", study.settings),
    ]
    if study.run:
        parts.append(_settings("Settings of the job", study.run.settings))
    parts += [tag("h3", "Versions"), facts(study.environment.versions.items())]
    parts += [tag("h3", "Commands"), _command("The study", study.command)]
    if study.run:
        parts.append(_command("The job", study.run.command))
    return section("circumstances", "Machine, settings, versions", *parts)


def _phases(study: Study) -> list[Phase]:
    trials = [trial.phase for measurement in study.measurements for trial in measurement.trials]
    return trials + (study.run.phases if study.run else [])


def _disk_warnings(phases: list[Phase]) -> list[str]:
    buffered: dict[str, None] = {}
    unregistered: dict[str, None] = {}
    for phase in phases:
        for mode in phase.disk_modes:
            why = f": {mode['why']}" if mode.get("why") else ""
            if not mode.get("direct"):
                buffered[f"Files went through the page cache{why}."] = None
            elif not mode.get("registered"):
                unregistered[f"Buffers were not registered with the kernel{why}."] = None
    return [*buffered, *unregistered]


def _machine(environment: Environment) -> Html:
    limit = environment.memory_limit_bytes
    return facts(
        [
            ("Host", environment.host),
            ("CPU", f"{environment.cores} cores, {environment.cpu_model}"),
            ("Memory", words.memory(environment.memory_bytes)),
            ("Memory limit", words.memory(limit) if limit else "none"),
            ("Virtualisation", environment.virtualisation),
            ("System", environment.operating_system),
            ("Kernel", environment.kernel),
            ("Load at start", words.significant(environment.load_average, 2)),
            ("Build", "debug" if environment.debug_build else "release"),
        ]
    )


def _devices(devices: list[Device]) -> Html:
    columns = ["Device", "Model", "Size", "Rotational", "File system", "Scheduler", "Directories"]
    rotational = {True: "yes", False: "no", None: "unknown"}
    rows: list[list[Child]] = [
        [
            device.name,
            device.model or "unknown",
            words.size(device.size_bytes) if device.size_bytes is not None else "unknown",
            rotational[device.rotational],
            tag("span", f"{device.file_system} ({device.mount_options})", class_="setting"),
            device.scheduler or "none",
            join(
                (tag("code", directory) for directory in dict.fromkeys(device.directories)),
                Html("<br>"),
            ),
        ]
        for device in devices
    ]
    return table("What holds the directories", columns, rows, numeric=("Size",))


def _settings(caption: str, settings: dict[str, Any]) -> Html:
    rows: list[list[Child]] = [
        [tag("code", name), tag("span", words.setting(name, value), class_="setting")]
        for name, value in _flat(settings)
    ]
    return table(caption, ["Setting", "Value"], rows)


def _flat(settings: dict[str, Any], prefix: str = "") -> list[tuple[str, Any]]:
    """Settings within settings as ``outer.inner``."""
    pairs: list[tuple[str, Any]] = []
    for name, value in settings.items():
        if isinstance(value, dict) and value:
            pairs += _flat(value, f"{prefix}{name}.")
        else:
            pairs.append((f"{prefix}{name}", value))
    return pairs


def _command(name: str, command: list[str]) -> Html:
    return join([tag("h4", name), block(words.command(command), f"{name}'s command")])
