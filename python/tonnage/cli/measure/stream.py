"""``tonnage measure stream``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tonnage.base import core, formatting
from tonnage.cli.measure.options import (
    MOST_ROUNDS,
    ROUNDS,
    ROUNDS_HELP,
    Directory,
    FleetAddress,
    Instances,
    Labels,
    OneAtATime,
    Out,
    Patience,
    UntilConfidence,
    carry_out,
    in_directory,
    refuse_directories,
    where,
)
from tonnage.cli.options.types import Json, parse_size, whole_number
from tonnage.cli.options.validate import refuse_memory, refuse_unknown

TRANSFER_UNIT_BYTES = 4096
"""What direct I/O moves is a multiple of this."""


def parse_transfer(text: str) -> int:
    """A size that one system call may move past the page cache."""
    size = parse_size(text)
    if not size or size % TRANSFER_UNIT_BYTES:
        raise typer.BadParameter(f"{text!r}: give a multiple of {TRANSFER_UNIT_BYTES}, like 1MiB")
    return size


def measure_stream(
    directory: Directory = Path(),
    operation: Annotated[
        list[str] | None,
        typer.Option("--operation", metavar="OPERATION...", help="Of write, read. Default: both."),
    ] = None,
    processes: Annotated[
        int,
        typer.Option(
            "--processes",
            parser=whole_number(1, 4096),
            metavar="N",
            help="How many write or read at once: threads, each of which blocks as IOR's processes "
            "do.",
        ),
    ] = "1",  # type: ignore[assignment]
    block: Annotated[
        int,
        typer.Option(
            "--block", parser=parse_size, metavar="SIZE", help="Of a segment, what each one does."
        ),
    ] = "1GiB",  # type: ignore[assignment]
    transfer: Annotated[
        int,
        typer.Option(
            "--transfer", parser=parse_transfer, metavar="SIZE", help="What one system call moves."
        ),
    ] = "1MiB",  # type: ignore[assignment]
    segments: Annotated[
        int,
        typer.Option(
            "--segments",
            parser=whole_number(1, 1 << 32),
            metavar="N",
            help="How often all blocks follow each other in a file.",
        ),
    ] = "1",  # type: ignore[assignment]
    shared: Annotated[
        bool, typer.Option("--shared", help="One file for all, instead of one for each.")
    ] = False,
    shared_dir: Annotated[
        bool,
        typer.Option(
            "--shared-dir",
            help="With --cluster: --dir is one directory, on a file system that all machines have "
            "mounted. All begin each trial at one moment, and read what another one wrote; with "
            "--shared, one file is that of all machines.",
        ),
    ] = False,
    buffered: Annotated[
        bool,
        typer.Option(
            "--buffered",
            help="Through the page cache, which is dropped before it is read, instead of past it.",
        ),
    ] = False,
    flush: Annotated[
        bool,
        typer.Option(
            "--flush/--no-flush", help="Whether the time of writing ends when all is durable."
        ),
    ] = True,
    repetitions: Annotated[
        int | None,
        typer.Option(
            "--repetitions",
            parser=whole_number(1, 10_000),
            metavar="N",
            help=ROUNDS_HELP,
        ),
    ] = None,
    until_confidence: UntilConfidence = None,
    fleet: FleetAddress = None,
    instances: Instances = None,
    one_at_a_time: OneAtATime = False,
    patience: Patience = "60s",  # type: ignore[assignment]
    label: Labels = None,
    out: Out = None,
    as_json: Json = False,
) -> None:
    """Measure files written and read in order, as IOR does: blocks, transfers, segments.

    Files are made for it and removed; the file system may be any that is mounted.
    """
    from tonnage.measure.stream import OPERATIONS, Settings
    from tonnage.measure.stream import measure_stream as measure

    refuse_unknown("--operation", operation or [], OPERATIONS)
    at = where(fleet, instances, one_at_a_time, patience, label)
    refuse_directories(at, [directory])
    if shared_dir and at.fleet is None:
        raise core.UsageError("--shared-dir is for a fleet: give --cluster too")
    if shared_dir and until_confidence:
        raise core.UsageError(
            "--shared-dir has all machines do the same trials: give --repetitions instead of "
            "--until-confidence"
        )
    settings = Settings(
        operations=tuple(operation or OPERATIONS),
        workers=processes,
        block_bytes=block,
        transfer_bytes=transfer,
        segments=segments,
        shared=shared,
        direct=not buffered,
        flush=flush,
        repetitions=repetitions or (MOST_ROUNDS if until_confidence else ROUNDS),
        until_confidence=until_confidence,
        shared_dir=shared_dir,
    )
    if at.fleet is None:
        refuse_memory(
            f"--transfer {formatting.memory(transfer)} for each of --processes needs "
            f"{formatting.memory(settings.memory_bytes)},",
            settings.memory_bytes,
            "give less, or fewer of them",
        )
    carry_out(
        "stream",
        *in_directory(directory, measure, settings),
        at,
        out,
        as_json,
        in_step=shared_dir,
        total_bytes=settings.bytes * len(settings.operations) * settings.repetitions,
    )
