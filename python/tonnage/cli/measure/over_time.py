"""``tonnage measure over-time``."""

from pathlib import Path
from typing import Annotated

from tonnage.base import core
from tonnage.cli.measure.options import (
    ENGINES,
    Directory,
    EngineName,
    FileSize,
    MeasureOptions,
    Operations,
    Seed,
    refuse_directories,
    refuse_queue_depth,
    settings_in,
    work_in,
)
from tonnage.cli.measure.suite import Suite, run_suite
from tonnage.cli.options.option_groups import default
from tonnage.cli.options.types import Count, Time, duration
from tonnage.cli.options.validate import refuse_unknown


def measure_over_time(
    *,
    directory: Directory = Path(),
    operation: Operations = None,
    queue_depth: Annotated[int, Count("Operations in flight.", 1, 4096)] = default("8"),
    every: Annotated[
        float, Time("Interval from the start of one set of trials to the next.")
    ] = default("10min"),
    lasting: Annotated[float, Time("Total duration.", flag="--for")] = default("24h"),
    seconds: Annotated[
        float, Time("Duration of each operation's trial.", duration(0.2, 1_000_000))
    ] = default("5"),
    file_size: FileSize = default("4GB"),
    engine_name: EngineName = "ring",
    seed: Seed = default("1"),
    options: MeasureOptions,
) -> None:
    """Repeat the same trials at fixed intervals, over hours or days; the machine is idle between
    them.

    With the same --output, the measurement resumes after a kill or a reboot; intervals missed
    during that time have no data.

    Examples:
        tonnage measure over-time --operation read4m --every 10min --for 24h
    """
    from tonnage.measure.over_time import OverTimeSettings
    from tonnage.measure.over_time import measure_over_time as measure
    from tonnage.measure.random_io.trial import OPERATIONS

    refuse_unknown("--operation", operation or [], OPERATIONS)
    refuse_unknown("--engine", [engine_name], ENGINES)
    refuse_directories(options, [directory])
    names = tuple(operation or OPERATIONS)
    if len(names) * seconds >= every:
        raise core.UsageError(
            f"--every {every:g}s is too short for {len(names)} trials of {seconds:g}s; raise "
            "--every, lower --seconds, or select fewer operations with --operation"
        )
    settings = OverTimeSettings(
        operations=names,
        outstanding=queue_depth,
        every_seconds=every,
        for_seconds=lasting,
        seconds=seconds,
        file_bytes=file_size,
        blocking=engine_name == "sync",
        seed=seed,
    )
    if options.cluster is None:
        refuse_queue_depth(settings.memory_bytes)
    suite = Suite(
        kind="over-time",
        work=work_in(directory, measure, settings),
        settings=settings_in(directory, settings),
        total_bytes=file_size,
        total_seconds=settings.slots * every,
        pause_seconds=every,
    )
    run_suite(suite, options)
