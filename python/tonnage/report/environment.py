"""Render warnings, machine, devices, settings, versions and commands."""

from typing import Any

from tonnage.base import formatting
from tonnage.base.records import Device, Environment, Study
from tonnage.report.html_elements import (
    Child,
    Html,
    code_block,
    fact_list,
    join,
    section,
    table,
    tag,
)


def environment_section(study: Study) -> Html:
    said = [tag("li", warning) for warning in study.warnings]
    parts: list[Child] = [
        tag("h3", "Warnings", id="warnings"),
        tag("ul", *said, class_="warnings") if said else tag("p", "None."),
        tag("h3", "Machine"),
        machine_facts(study.environment),
        _devices(study.environment.devices),
        tag("h3", "Settings"),
        settings_table("Settings of the study", study.settings),
    ]
    if study.run:
        caption = "Settings of the job; plan contains the planned maximum"
        parts.append(settings_table(caption, study.run.settings))
    parts += [tag("h3", "Versions"), fact_list(study.environment.versions.items())]
    parts += [tag("h3", "Commands"), command_block("The study", study.command)]
    if study.run and study.run.command != study.command:
        parts.append(command_block("The job", study.run.command))
    return section("circumstances", "Machine, settings, versions", *parts)


def machine_facts(environment: Environment) -> Html:
    limit = environment.memory_limit_bytes
    return fact_list(
        [
            ("Host", environment.host),
            ("CPU", f"{environment.cores} cores, {environment.cpu_model}"),
            ("Memory", formatting.memory(environment.memory_bytes)),
            ("Memory limit", formatting.memory(limit) if limit else "none"),
            ("Virtualisation", environment.virtualisation),
            ("System", environment.operating_system),
            ("Kernel", environment.kernel),
            ("Load at start", formatting.significant(environment.load_average, 2)),
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
            formatting.size(device.size_bytes) if device.size_bytes is not None else "unknown",
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
    return table("Devices of the directories", columns, rows, numeric=("Size",))


def settings_table(caption: str, values: dict[str, Any]) -> Html:
    rows: list[list[Child]] = [
        [tag("code", name), tag("span", formatting.setting(name, value), class_="setting")]
        for name, value in _flat(values)
    ]
    return table(caption, ["Setting", "Value"], rows)


def _flat(settings: dict[str, Any], prefix: str = "") -> list[tuple[str, Any]]:
    """Flatten nested settings to ``outer.inner``."""
    pairs: list[tuple[str, Any]] = []
    for name, value in settings.items():
        if isinstance(value, dict) and value:
            pairs += _flat(value, f"{prefix}{name}.")
        else:
            pairs.append((f"{prefix}{name}", value))
    return pairs


def command_block(name: str, line: list[str]) -> Html:
    """Render a command to copy."""
    return join([tag("h4", name), code_block(formatting.command(line), f"{name}'s command")])
