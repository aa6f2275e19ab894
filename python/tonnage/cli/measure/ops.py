"""``tonnage measure ops``."""

from pathlib import Path
from typing import Annotated

from tonnage.cli.measure.options import (
    ENGINES,
    MAX_REPETITIONS,
    REPETITIONS,
    Directory,
    EngineName,
    FileSize,
    MeasureOptions,
    Operations,
    RepetitionOptions,
    Seed,
    refuse_directories,
    refuse_queue_depth,
    settings_in,
    work_in,
)
from tonnage.cli.measure.suite import Suite, run_suite
from tonnage.cli.options.option_groups import default
from tonnage.cli.options.types import Option, Time, duration, whole_number
from tonnage.cli.options.validate import refuse_unknown

SUBMISSIONS = ("single", "batched")
SECONDS = {"explore": 5.0, "steady": 120.0}


def measure_ops(
    *,
    directory: Directory = Path(),
    operation: Operations = None,
    suite: Annotated[
        str,
        Option(
            "SUITE",
            "explore: short trials at several queue depths; steady: the same, then long trials at "
            "the smallest queue depth whose rate is within 5 % of the best.",
        ),
    ] = "explore",
    queue_depth: Annotated[
        list[int] | None,
        Option(
            "N...",
            "Operations in flight. Default: several, depending on the operation.",
            whole_number(1, 4096),
        ),
    ] = None,
    seconds: Annotated[
        float | None,
        Time(
            "Duration of a trial. Default: 5s for explore, 120s for steady.",
            duration(0.2, 1_000_000),
        ),
    ] = None,
    file_size: FileSize = default("4GB"),
    engine_name: EngineName = "ring",
    submission: Annotated[
        str,
        Option(
            "HOW",
            "single: submit each operation by itself; batched: resubmit all completed operations "
            "in one system call (less CPU time, slightly higher latency).",
        ),
    ] = "single",
    seed: Seed = default("1"),
    repetition: RepetitionOptions,
    options: MeasureOptions,
) -> None:
    """Measure random I/O on a file: rate, CPU time and latency distribution.

    Writes go only to a test file that the command creates.

    Examples:
        tonnage measure ops --dir /mnt/nvme0 --operation read4k --until-confidence 2%
        tonnage measure ops --suite steady --queue-depth 1 8 32 --output ops
    """
    from tonnage.measure.random_io.suite import (
        SUITES,
        RandomIoSettings,
        max_duration_seconds,
        measure_random_io,
    )
    from tonnage.measure.random_io.trial import OPERATIONS

    refuse_unknown("--suite", [suite], SUITES)
    refuse_unknown("--operation", operation or [], OPERATIONS)
    refuse_unknown("--engine", [engine_name], ENGINES)
    refuse_unknown("--submission", [submission], SUBMISSIONS)
    refuse_directories(options, [directory])
    usual = 1 if suite == "steady" else REPETITIONS
    if repetition.until_confidence:
        usual = MAX_REPETITIONS
    settings = RandomIoSettings(
        suite=suite,
        operations=tuple(operation or OPERATIONS),
        outstanding=tuple(queue_depth) if queue_depth else None,
        rounds=repetition.repetitions or usual,
        until_confidence=repetition.until_confidence,
        explore_seconds=min(SECONDS["explore"], seconds or SECONDS["explore"]),
        seconds=seconds or SECONDS[suite],
        file_bytes=file_size,
        blocking=engine_name == "sync",
        batched=submission == "batched",
        seed=seed,
    )
    if options.cluster is None:
        refuse_queue_depth(settings.memory_bytes)
    whole = Suite(
        kind="ops",
        work=work_in(directory, measure_random_io, settings),
        settings=settings_in(directory, settings),
        total_bytes=file_size,
        total_seconds=max_duration_seconds(settings),
    )
    run_suite(whole, options)
