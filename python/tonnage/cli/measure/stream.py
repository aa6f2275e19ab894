"""``tonnage measure stream``."""

from pathlib import Path
from typing import Annotated

import typer

from tonnage.base import core, formatting
from tonnage.cli.measure.options import (
    Directory,
    MeasureOptions,
    RepetitionOptions,
    refuse_directories,
    settings_in,
    work_in,
)
from tonnage.cli.measure.suite import Suite, run_suite
from tonnage.cli.options.option_groups import default
from tonnage.cli.options.types import Count, Option, Size, Switch, parse_size
from tonnage.cli.options.validate import refuse_memory, refuse_unknown, refuse_without

TRANSFER_UNIT_BYTES = 4096
"""Direct I/O moves multiples of this."""


def parse_transfer(text: str) -> int:
    size = parse_size(text)
    if not size or size % TRANSFER_UNIT_BYTES:
        raise typer.BadParameter(
            f"{text!r} is not a multiple of {TRANSFER_UNIT_BYTES} bytes; use a size like 1MiB"
        )
    return size


def measure_stream(
    *,
    directory: Directory = Path(),
    operation: Annotated[
        list[str] | None, Option("OPERATION...", "write, read. Default: both.")
    ] = None,
    processes: Annotated[
        int,
        Count(
            "Number of concurrent writers or readers: blocking threads, in place of IOR's "
            "processes.",
            1,
            4096,
        ),
    ] = default("1"),
    block: Annotated[int, Size("Bytes per process in a segment (IOR -b).")] = default("1GiB"),
    transfer: Annotated[int, Size("Bytes per system call (IOR -t).", parse_transfer)] = default(
        "1MiB"
    ),
    segments: Annotated[
        int,
        Count(
            "Segments per file, each containing one block from every process (IOR -s).", 1, 1 << 32
        ),
    ] = default("1"),
    shared: Annotated[
        bool, Switch("--shared", "Use one file for all processes instead of one per process.")
    ] = False,
    shared_dir: Annotated[
        bool,
        Switch(
            "--shared-dir",
            "With --cluster: --dir is one directory on a file system that all nodes mount. All "
            "nodes start each trial together, and each reads what another node wrote; with "
            "--shared, all nodes use one file.",
        ),
    ] = False,
    buffered: Annotated[
        bool,
        Switch(
            "--buffered",
            "Use the page cache (dropped before reads) instead of bypassing it.",
        ),
    ] = False,
    flush: Annotated[
        bool,
        Switch(
            "--flush/--no-flush",
            "Whether the time to flush written data to the device is included.",
        ),
    ] = True,
    repetition: RepetitionOptions,
    options: MeasureOptions,
) -> None:
    """Measure sequential reads and writes of files with IOR's parameters: block, transfer,
    segment.

    Test files are removed at the end; any mounted file system works.

    Examples:
        tonnage measure stream --dir /mnt/nvme0 --processes 4 --block 512MiB
        tonnage measure stream --cluster auto --dir /mnt/shared --shared-dir --shared
    """
    from tonnage.measure.stream.suite import measure_stream as measure
    from tonnage.measure.stream.trial import OPERATIONS, StreamSettings

    refuse_unknown("--operation", operation or [], OPERATIONS)
    refuse_directories(options, [directory])
    if options.cluster is None:
        refuse_without("--cluster", {"--shared-dir": shared_dir})
    if shared_dir and repetition.until_confidence:
        raise core.UsageError(
            "--shared-dir: all nodes run the same trials; use --repetitions instead of "
            "--until-confidence"
        )
    settings = StreamSettings(
        operations=tuple(operation or OPERATIONS),
        workers=processes,
        block_bytes=block,
        transfer_bytes=transfer,
        segments=segments,
        shared=shared,
        direct=not buffered,
        flush=flush,
        repetitions=repetition.most,
        until_confidence=repetition.until_confidence,
        shared_dir=shared_dir,
    )
    if options.cluster is None:
        refuse_memory(
            f"--transfer {formatting.memory(transfer)} for all --processes needs "
            f"{formatting.memory(settings.memory_bytes)},",
            settings.memory_bytes,
            "lower --transfer or --processes",
        )
    suite = Suite(
        kind="stream",
        work=work_in(directory, measure, settings),
        settings=settings_in(directory, settings),
        in_step=shared_dir,
        total_bytes=settings.bytes * len(settings.operations) * settings.repetitions,
    )
    run_suite(suite, options)
