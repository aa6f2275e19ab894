"""``tonnage measure disk``."""

from __future__ import annotations

import dataclasses
import functools
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from tonnage.cli.measure.options import (
    Measure,
    MeasureOptions,
    RepetitionOptions,
    TrialSeconds,
    TrialSize,
    Work,
    on_node,
    refuse_directories,
)
from tonnage.cli.measure.suite import Suite, run_suite
from tonnage.cli.options.option_groups import default
from tonnage.cli.options.types import Memory, Option
from tonnage.cli.options.validate import refuse_repeated, refuse_unknown
from tonnage.cli.output.trials import disk_details

if TYPE_CHECKING:
    from tonnage.measure.disk import DiskSettings


def measure_disk(
    *,
    directory: Annotated[
        list[Path] | None,
        Option(
            "DIR...",
            "A directory on each device. With several directories, the first half of them are read "
            "and the others written; a single one is used for both. Default: the current "
            "directory.",
            flag="--dir",
        ),
    ] = None,
    mode: Annotated[
        list[str] | None,
        Option(
            "MODE...",
            "rw (read and write), ro (read), wo (write), headroom (the pipeline alone, with no "
            "disk I/O). Default: all.",
        ),
    ] = None,
    size: TrialSize = default("2GB"),
    seconds: TrialSeconds = default("5"),
    memory: Memory = default("1GiB"),
    repetition: RepetitionOptions,
    options: MeasureOptions,
) -> None:
    """Measure disks with a sort's read and write stages, bypassing the page cache.

    A trial starts no more I/O after --seconds, or after --size bytes, whichever comes first, and
    ends once all buffered data has been written. Each repetition first writes --size bytes of test
    data, which takes extra time.

    Examples:
        tonnage measure disk --dir /mnt/nvme0 /mnt/nvme1 --output disks
        tonnage measure disk --cluster auto --dir /mnt/nvme0 --mode ro wo
    """
    from tonnage.measure.disk import MODES, DiskSettings, split_read_write

    refuse_unknown("--mode", mode or [], MODES)
    directories = directory or [Path()]
    refuse_directories(options, directories)
    refuse_repeated("--dir", directories)
    read, write = split_read_write(tuple(directories))
    settings = DiskSettings(
        read=read,
        write=write,
        modes=tuple(mode or MODES),
        rounds=repetition.most,
        seconds=seconds,
        size_bytes=size,
        memory_bytes=memory,
        until_confidence=repetition.until_confidence,
    )
    suite = Suite(
        kind="disk",
        work=disk_work(settings),
        settings=settings.recorded,
        total_bytes=size,
        total_seconds=settings.rounds * len(settings.modes) * seconds,
        details=disk_details,
    )
    run_suite(suite, options)


def disk_work(settings: DiskSettings) -> Work:
    from tonnage.measure.disk import measure_disk

    def work(node: str | None) -> Measure:
        of_node = settings if node is None else settings.for_node(node)
        of_node = dataclasses.replace(
            of_node,
            read=tuple(on_node(each, node) for each in of_node.read),
            write=tuple(on_node(each, node) for each in of_node.write),
        )
        return functools.partial(measure_disk, settings=of_node)

    return work
