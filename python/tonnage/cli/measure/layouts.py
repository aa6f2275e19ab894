"""``tonnage measure layouts``."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from tonnage.base import core, formatting
from tonnage.base.records import Measurement
from tonnage.base.records.analysis import Comparison
from tonnage.base.records.base import to_builtins
from tonnage.cli.measure.options import (
    Labels,
    Out,
    Seed,
    TrialSeconds,
    TrialSize,
    labelled,
    summary,
)
from tonnage.cli.options.files import command_line, new_directory
from tonnage.cli.options.types import Json, Memory, parse_size, whole_number
from tonnage.cli.options.validate import refuse_files, refuse_unknown
from tonnage.model.analysis.cpu_cost import layout_costs


def measure_layouts(
    device: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="DEVICE...",
            help="Block devices, or files that become loop devices. Nothing else is touched. "
            "Without any, only what a killed command left is undone.",
        ),
    ] = None,
    layout: Annotated[
        list[str] | None,
        typer.Option(
            "--layout",
            metavar="LAYOUT...",
            help="Of single (the first device), separate (a file system on each), jbod and raid0 "
            "(one over all). Default: all, of one device single.",
        ),
    ] = None,
    mode: Annotated[
        list[str] | None,
        typer.Option("--mode", metavar="MODE...", help="Of wo, ro and rw. Default: all."),
    ] = None,
    file_system: Annotated[
        str | None,
        typer.Option(
            "--file-system",
            metavar="NAME",
            help="xfs or ext4, joined by LVM, or btrfs, which joins devices itself. Default: the "
            "first of them with which this machine can make all layouts.",
        ),
    ] = None,
    stripe: Annotated[
        int | None,
        typer.Option(
            "--stripe",
            parser=parse_size,
            metavar="SIZE",
            help="How much of a raid0 lies together on a device, if LVM makes it. Default: 512KiB.",
        ),
    ] = None,
    size: TrialSize = "2GB",  # type: ignore[assignment]
    seconds: TrialSeconds = "5",  # type: ignore[assignment]
    rounds: Annotated[
        int,
        typer.Option(
            "--repetitions",
            parser=whole_number(1, 10_000),
            metavar="N",
            help="How often each layout is made and measured.",
        ),
    ] = "3",  # type: ignore[assignment]
    memory: Memory = "1GiB",  # type: ignore[assignment]
    seed: Seed = "1",  # type: ignore[assignment]
    destroy: Annotated[
        bool,
        typer.Option(
            "--destroy",
            help="Take devices that hold something, too, which is lost then. One that is in use is "
            "refused all the same.",
        ),
    ] = False,
    label: Labels = None,
    out: Out = None,
    as_json: Json = False,
) -> None:
    """Measure layouts of the same devices, which it makes and takes down itself. Needs root.

    What is on the devices is lost, and they are empty in the end. Each layout is measured as by
    measure disk, in turns: wo, ro and rw are how a sort goes over its disks, which is what a layout
    is chosen for. What a killed one left is undone by the next measure layouts and by no other
    command, also after a reboot; the same one, with its --output, goes on.
    """
    from tonnage.measure.disk import MODES, OPERATIONS
    from tonnage.measure.layouts import LayoutSettings
    from tonnage.measure.layouts import measure_layouts as measure
    from tonnage.measure.layouts.steps import FILE_SYSTEMS, LAYOUTS

    modes = [each for each in MODES if each in OPERATIONS]
    devices = device or []
    refuse_unknown("--layout", layout or [], LAYOUTS)
    refuse_unknown("--mode", mode or [], modes)
    refuse_unknown("--file-system", [file_system] if file_system else [], FILE_SYSTEMS)
    labels = labelled(label)
    out = out or new_directory("tonnage-layouts")
    refuse_files("--output", [out])
    settings = LayoutSettings(
        devices=tuple(devices),
        layouts=tuple(dict.fromkeys(layout or (LAYOUTS if len(devices) > 1 else LAYOUTS[:1]))),
        modes=tuple(dict.fromkeys(mode or modes)),
        file_system=file_system,
        stripe_bytes=stripe,
        rounds=rounds,
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
        labels=labels,
        on_round=lambda label: core.Progress(label, size, most_seconds),
    )
    if as_json:
        print(json.dumps(_as_json(done)))
    elif done:
        print("\n".join(_lines(done)))
        print(f"Kept in {out}; a page of it: tonnage report {out}")
    else:
        print("No device was given; what a killed command had left is undone.")


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
    """What each layout carries and costs, and how they compare."""
    lines = []
    for each in done:
        lines.append(f"{each.settings['layout']} ({each.settings['made_by']})")
        lines += [f"  {line}" for line in summary(each) + _costs(each)]
    return lines + [_ratio(each) for each in _compared(done)]


def _costs(measurement: Measurement) -> list[str]:
    return [
        f"{formatting.trial(mode)}: {formatting.significant(cost.own * 1e9, 2)} core seconds a GB, "
        f"{formatting.significant(cost.machine * 1e9, 2)} of the whole machine, kernel and all others"
        for mode, cost in layout_costs(measurement).items()
    ]


def _ratio(each: Comparison) -> str:
    found = each.ratio
    interval = (
        f"no interval yet, for which {formatting.several(found.lacking, 'trial')} more are needed"
    )
    if found.low is not None and found.high is not None:
        low, high = formatting.significant(found.low), formatting.significant(found.high)
        interval = f"{low} to {high} with {formatting.percent(found.confidence or 0)} confidence"
    ratio = formatting.significant(found.value)
    return f"{each.way} over {each.than}, {each.subject}: {ratio} ({interval})"
