"""``tonnage measure disk``."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tonnage.base.records import Measurement
from tonnage.cli.measure.options import (
    MOST_ROUNDS,
    ROUNDS,
    FleetAddress,
    Instances,
    Labels,
    Measure,
    More,
    OneAtATime,
    Out,
    Patience,
    Rounds,
    TrialSeconds,
    TrialSize,
    UntilConfidence,
    carry_out,
    placed,
    refuse_directories,
    where,
)
from tonnage.cli.options.types import Json, Memory
from tonnage.cli.options.validate import refuse_repeated, refuse_unknown
from tonnage.model.study_findings import disk_warnings, short_trial_warnings

if TYPE_CHECKING:
    from tonnage.measure.disk import DiskSettings


def measure_disk(
    directory: Annotated[
        list[Path] | None,
        typer.Option(
            "--dir",
            metavar="DIR...",
            help="A directory on each device to measure: of several the first half is read and the "
            "rest written, one does both. Default: here.",
        ),
    ] = None,
    mode: Annotated[
        list[str] | None,
        typer.Option("--mode", metavar="MODE...", help="Of rw, ro, wo and headroom. Default: all."),
    ] = None,
    size: TrialSize = "2GB",  # type: ignore[assignment]
    seconds: TrialSeconds = "5",  # type: ignore[assignment]
    rounds: Rounds = None,
    until_confidence: UntilConfidence = None,
    memory: Memory = "1GiB",  # type: ignore[assignment]
    fleet: FleetAddress = None,
    instances: Instances = None,
    one_at_a_time: OneAtATime = False,
    patience: Patience = "60s",  # type: ignore[assignment]
    label: Labels = None,
    out: Out = None,
    as_json: Json = False,
) -> None:
    """Measure disks with the sort's own reading and writing stages, the page cache bypassed.

    A trial takes no more data after --seconds, or --size of it. It is over when what it has in
    memory is written, and before each round --size is laid out to be read: that comes on top.
    """
    from tonnage.measure.disk import MODES, DiskSettings, split_read_write

    refuse_unknown("--mode", mode or [], MODES)
    directories = directory or [Path()]
    at = where(fleet, instances, one_at_a_time, patience, label)
    refuse_directories(at, directories)
    refuse_repeated("--dir", directories)
    read, write = split_read_write(tuple(directories))
    settings = DiskSettings(
        read=read,
        write=write,
        modes=tuple(mode or MODES),
        rounds=rounds or (MOST_ROUNDS if until_confidence else ROUNDS),
        seconds=seconds,
        size_bytes=size,
        memory_bytes=memory,
        until_confidence=until_confidence,
    )
    carry_out(
        "disk",
        work_on(settings),
        settings.recorded,
        at,
        out,
        as_json,
        total_bytes=size,
        total_seconds=settings.rounds * len(settings.modes) * seconds,
        more=disks_more,
    )


def work_on(settings: DiskSettings) -> Callable[[str | None], Measure]:
    """What measures these directories' disks, each node its own."""
    from tonnage.measure.disk import measure_disk

    def work(node: str | None) -> Measure:
        own = settings if node is None else settings.for_node(node)
        read, write = ([placed(each, node) for each in half] for half in (own.read, own.write))
        own = dataclasses.replace(own, read=tuple(read), write=tuple(write))
        return functools.partial(measure_disk, settings=own)

    return work


def disks_more(measurement: Measurement) -> More:
    """What is told of disks' trials besides."""
    warnings = disk_warnings(trial.phase for trial in measurement.trials)
    warnings += short_trial_warnings(measurement.trials)
    return {"warnings": warnings}, warnings
