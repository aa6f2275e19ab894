"""``tonnage measure over-time``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tonnage.base import core
from tonnage.cli.measure.options import (
    ENGINES,
    Directory,
    EngineName,
    FileSize,
    FleetAddress,
    Instances,
    Labels,
    OneAtATime,
    Operations,
    Out,
    Patience,
    Seed,
    carry_out,
    in_directory,
    refuse_directories,
    refuse_outstanding,
    where,
)
from tonnage.cli.options.types import Json, number, parse_duration, whole_number
from tonnage.cli.options.validate import refuse_unknown


def measure_over_time(
    directory: Directory = Path(),
    operation: Operations = None,
    outstanding: Annotated[
        int,
        typer.Option(
            "--queue-depth", parser=whole_number(1, 4096), metavar="N", help="Operations at once."
        ),
    ] = "8",  # type: ignore[assignment]
    every: Annotated[
        float,
        typer.Option(
            "--every", parser=parse_duration, metavar="TIME", help="From one slot to the next."
        ),
    ] = "10min",  # type: ignore[assignment]
    lasting: Annotated[
        float,
        typer.Option("--for", parser=parse_duration, metavar="TIME", help="How long in all."),
    ] = "24h",  # type: ignore[assignment]
    seconds: Annotated[
        float,
        typer.Option(
            "--seconds",
            parser=number(0.2, 1_000_000),
            metavar="SECONDS",
            help="How long each operation is tried in a slot.",
        ),
    ] = "5",  # type: ignore[assignment]
    file_size: FileSize = "4GB",  # type: ignore[assignment]
    engine_name: EngineName = "ring",
    seed: Seed = "1",  # type: ignore[assignment]
    fleet: FleetAddress = None,
    instances: Instances = None,
    one_at_a_time: OneAtATime = False,
    patience: Patience = "60s",  # type: ignore[assignment]
    label: Labels = None,
    out: Out = None,
    as_json: Json = False,
) -> None:
    """Measure the same at fixed intervals, for minutes or days; between them nothing is done.

    Given the same --output, it goes on after a kill or a reboot; what was missed stays a gap.
    """
    from tonnage.measure.over_time import OverTimeSettings
    from tonnage.measure.over_time import measure_over_time as measure
    from tonnage.measure.random_io.trial import OPERATIONS

    refuse_unknown("--operation", operation or [], OPERATIONS)
    refuse_unknown("--engine", [engine_name], ENGINES)
    at = where(fleet, instances, one_at_a_time, patience, label)
    refuse_directories(at, [directory])
    names = tuple(operation or OPERATIONS)
    if len(names) * seconds >= every:
        raise core.UsageError(
            f"--every {every:g} s is too short for {len(names)} trials of {seconds:g} s: give "
            "more, or fewer of --operation, or a lower --seconds"
        )
    settings = OverTimeSettings(
        operations=names,
        outstanding=outstanding,
        every_seconds=every,
        for_seconds=lasting,
        seconds=seconds,
        file_bytes=file_size,
        blocking=engine_name == "sync",
        seed=seed,
    )
    if at.fleet is None:
        refuse_outstanding(settings.memory_bytes)
    carry_out(
        "over-time",
        *in_directory(directory, measure, settings),
        at,
        out,
        as_json,
        total_bytes=file_size,
        total_seconds=settings.slots * every,
        pause_seconds=every,
    )
