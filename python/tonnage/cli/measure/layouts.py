"""``tonnage measure layouts``."""

import dataclasses
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from tonnage.base import core, formatting
from tonnage.base.records import Measurement
from tonnage.base.records.analysis import Comparison
from tonnage.base.records.base import to_builtins
from tonnage.cli.measure.options import ResultOptions, Seed, TrialSeconds, TrialSize
from tonnage.cli.options.files import command_line
from tonnage.cli.options.option_groups import default
from tonnage.cli.options.types import Argument, Count, Memory, Option, Size, Switch
from tonnage.cli.options.validate import refuse_files, refuse_unknown
from tonnage.cli.output.trials import results_line, summary
from tonnage.model.analysis.cpu_cost import layout_costs


def measure_layouts(
    *,
    device: Annotated[
        list[Path] | None,
        Argument(
            "[DEVICE...]",
            "Block devices, or files to use as loop devices. With no devices, only cleans up after "
            "a killed command.",
        ),
    ] = None,
    layout: Annotated[
        list[str] | None,
        Option(
            "LAYOUT...",
            "single (the first device), separate (a file system on each device), jbod or raid0 "
            "(one file system over all devices, concatenated or striped). Default: all; with one "
            "device, single.",
        ),
    ] = None,
    mode: Annotated[
        list[str] | None,
        Option("MODE...", "wo (write), ro (read), rw (read and write). Default: all."),
    ] = None,
    file_system: Annotated[
        str | None,
        Option(
            "NAME",
            "xfs or ext4 (on LVM), or btrfs (directly on the devices). Default: the first of these "
            "that supports all the layouts on this machine.",
        ),
    ] = None,
    stripe: Annotated[int | None, Size("Stripe size of a raid0 on LVM. Default: 512KiB.")] = None,
    size: TrialSize = default("2GB"),
    seconds: TrialSeconds = default("5"),
    repetitions: Annotated[
        int, Count("Number of times each layout is created and measured.", 1, 10_000)
    ] = default("3"),
    memory: Memory = default("1GiB"),
    seed: Seed = default("1"),
    destroy: Annotated[
        bool,
        Switch(
            "--destroy",
            "Also use devices that contain data; the data is lost. Devices that are in use are "
            "still refused.",
        ),
    ] = False,
    results: ResultOptions,
) -> None:
    """Create each layout in turn on the same devices, and measure it with a sort's access pattern.
    Needs root.

    All data on the devices is destroyed, and they are left empty. Layouts alternate between
    repetitions; each is measured as tonnage measure disk does it. After a kill or a reboot, the
    next tonnage measure layouts cleans up, and resumes if --output is the same.

    Examples:
        sudo tonnage measure layouts /dev/nvme1n1 /dev/nvme2n1 --output layouts
        sudo tonnage measure layouts /dev/nvme1n1 --layout single --file-system ext4
    """
    from tonnage.measure.disk import MODES, OPERATIONS
    from tonnage.measure.layouts.compare import LayoutSettings
    from tonnage.measure.layouts.compare import measure_layouts as measure
    from tonnage.measure.layouts.layout_steps import FILE_SYSTEMS, LAYOUTS

    modes = [each for each in MODES if each in OPERATIONS]
    devices = device or []
    refuse_unknown("--layout", layout or [], LAYOUTS)
    refuse_unknown("--mode", mode or [], modes)
    refuse_unknown("--file-system", [file_system] if file_system else [], FILE_SYSTEMS)
    out = results.directory("layouts")
    refuse_files("--output", [out])
    settings = LayoutSettings(
        devices=tuple(devices),
        layouts=tuple(dict.fromkeys(layout or (LAYOUTS if len(devices) > 1 else LAYOUTS[:1]))),
        modes=tuple(dict.fromkeys(mode or modes)),
        file_system=file_system,
        stripe_bytes=stripe,
        rounds=repetitions,
        seconds=seconds,
        size_bytes=size,
        memory_bytes=memory,
        seed=seed,
    )
    most_seconds = len(settings.modes) * seconds
    done = measure(
        settings,
        out,
        destroy=destroy,
        command=command_line(),
        labels=results.labels,
        on_round=lambda label: core.Progress(label, size, most_seconds),
    )
    if results.as_json:
        print(json.dumps(_as_json(done)))
    elif done:
        print("\n".join([*_lines(done), results_line(out)]))
    else:
        print("No devices were passed; any leftovers of a killed command were removed.")


def _as_json(done: Sequence[Measurement]) -> dict[str, object]:
    return {
        "measurements": [each.to_json() for each in done],
        "ratios": [to_builtins(each) for each in _compared(done)],
        "cpu_seconds_per_byte": {
            str(each.settings["layout"]): {
                mode: dataclasses.asdict(cost) for mode, cost in layout_costs(each).items()
            }
            for each in done
        },
    }


def _compared(done: Sequence[Measurement]) -> list[Comparison]:
    from tonnage.model.analysis.comparisons import (
        compare_layouts_of,  # Here: it takes a while to load.
    )

    return compare_layouts_of(done)


def _lines(done: Sequence[Measurement]) -> list[str]:
    lines = []
    for each in done:
        lines.append(f"{each.settings['layout']} ({each.settings['made_by']})")
        lines += [f"  {line}" for line in summary(each) + _costs(each)]
    return lines + [_ratio(each) for each in _compared(done)]


def _costs(measurement: Measurement) -> list[str]:
    return [
        f"{formatting.trial(mode)}: {formatting.significant(cost.own * 1000000000.0, 2)} core "
        f"seconds per GB; {formatting.significant(cost.machine * 1000000000.0, 2)} on the whole "
        "machine, including the kernel"
        for mode, cost in layout_costs(measurement).items()
    ]


def _ratio(each: Comparison) -> str:
    found = each.ratio
    interval = f"an interval needs {formatting.several(found.lacking, 'more trial')}"
    if found.low is not None and found.high is not None:
        low, high = formatting.significant(found.low), formatting.significant(found.high)
        interval = f"{low} to {high} with {formatting.percent(found.confidence or 0)} confidence"
    ratio = formatting.significant(found.value)
    return f"{each.way} / {each.than}, {each.subject}: ratio {ratio} ({interval})"
