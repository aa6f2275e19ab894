"""``tonnage measure ops``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tonnage.cli.measure.options import (
    ENGINES,
    MOST_ROUNDS,
    ROUNDS,
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
    Rounds,
    Seed,
    UntilConfidence,
    carry_out,
    in_directory,
    refuse_directories,
    refuse_outstanding,
    where,
)
from tonnage.cli.options.types import Json, number, whole_number
from tonnage.cli.options.validate import refuse_unknown

SUBMISSIONS = ("single", "batched")
SECONDS = {"explore": 5.0, "steady": 120.0}


def measure_ops(
    directory: Directory = Path(),
    operation: Operations = None,
    suite: Annotated[
        str,
        typer.Option(
            "--suite",
            metavar="SUITE",
            help="explore: short trials of each operation with so many at once; steady: that once, "
            "then long trials at the smallest number within 5 % of the best.",
        ),
    ] = "explore",
    outstanding: Annotated[
        list[int] | None,
        typer.Option(
            "--queue-depth",
            parser=whole_number(1, 4096),
            metavar="N...",
            help="Operations at once. Default: each operation's own sweep.",
        ),
    ] = None,
    rounds: Rounds = None,
    until_confidence: UntilConfidence = None,
    seconds: Annotated[
        float | None,
        typer.Option(
            "--seconds",
            parser=number(0.2, 1_000_000),
            metavar="SECONDS",
            help="Length of a trial. Default: 5 to explore, 120 for steady.",
        ),
    ] = None,
    file_size: FileSize = "4GB",  # type: ignore[assignment]
    engine_name: EngineName = "ring",
    submission: Annotated[
        str,
        typer.Option(
            "--submission",
            metavar="HOW",
            help="single: each operation is submitted alone, at once; batched: all that were found "
            "done are replaced with one system call (less CPU, somewhat later).",
        ),
    ] = "single",
    seed: Seed = "1",  # type: ignore[assignment]
    fleet: FleetAddress = None,
    instances: Instances = None,
    one_at_a_time: OneAtATime = False,
    patience: Patience = "60s",  # type: ignore[assignment]
    label: Labels = None,
    out: Out = None,
    as_json: Json = False,
) -> None:
    """Measure single operations at random places of a file: their rate, CPU and every latency.

    Writes go to a file that is made for it; nothing else is touched.
    """
    from tonnage.measure.random_io.suite import SUITES, RandomIoSettings, max_duration_seconds
    from tonnage.measure.random_io.suite import measure_random_io as measure
    from tonnage.measure.random_io.trial import OPERATIONS

    refuse_unknown("--suite", [suite], SUITES)
    refuse_unknown("--operation", operation or [], OPERATIONS)
    refuse_unknown("--engine", [engine_name], ENGINES)
    refuse_unknown("--submission", [submission], SUBMISSIONS)
    at = where(fleet, instances, one_at_a_time, patience, label)
    refuse_directories(at, [directory])
    confident = until_confidence is not None
    settings = RandomIoSettings(
        suite=suite,
        operations=tuple(operation or OPERATIONS),
        outstanding=tuple(outstanding) if outstanding else None,
        rounds=rounds or (MOST_ROUNDS if confident else 1 if suite == "steady" else ROUNDS),
        until_confidence=until_confidence,
        explore_seconds=min(SECONDS["explore"], seconds or SECONDS["explore"]),
        seconds=seconds or SECONDS[suite],
        file_bytes=file_size,
        blocking=engine_name == "sync",
        batched=submission == "batched",
        seed=seed,
    )
    if at.fleet is None:
        refuse_outstanding(settings.memory_bytes)
    carry_out(
        "ops",
        *in_directory(directory, measure, settings),
        at,
        out,
        as_json,
        total_bytes=file_size,
        total_seconds=max_duration_seconds(settings),
    )
