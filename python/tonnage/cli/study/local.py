"""``tonnage study``."""

import itertools
from pathlib import Path
from typing import Annotated

from tonnage.base.records.cluster_study import STEPS
from tonnage.base.records.durability import DURABILITIES
from tonnage.cli.options.files import command_line, new_directory
from tonnage.cli.options.option_groups import default, flags_and_values
from tonnage.cli.options.optional_dependencies import refuse_missing_extra
from tonnage.cli.options.types import Json, Memory, Option, Size, parse_measurable
from tonnage.cli.options.validate import (
    refuse_files,
    refuse_missing,
    refuse_repeated,
    refuse_unknown,
    refuse_without,
)
from tonnage.cli.output import print_result
from tonnage.cli.study.cluster import ClusterStudyOptions, study_on_cluster

DATA_BYTES = 4_000_000_000


def study(
    *,
    data: Annotated[
        int | None,
        Size(
            "Amount of data to sort. Default: 4GB; with --cluster, 1GB per node of the most "
            "common machine type.",
            parse_measurable,
        ),
    ] = None,
    directory: Annotated[
        list[Path] | None,
        Option(
            "DIR...",
            "A directory on each device. With several directories, the first half of them hold "
            "input and output, and the others hold scratch data. Default: the current directory; "
            "required with --cluster.",
            flag="--dir",
        ),
    ] = None,
    memory: Memory = default("1GiB"),
    out: Annotated[
        Path | None,
        Option(
            "DIR",
            "Directory for the results. Default: a new tonnage-study-N in the current directory. "
            "With --cluster, an unfinished study there is resumed.",
            flag="--output",
        ),
    ] = None,
    options: ClusterStudyOptions,
    as_json: Json = False,
) -> None:
    """Measure this machine, predict a sort, run it, compare, and write a report.

    With --cluster, do the same on a cluster, using as many nodes as the plan selects.

    Examples:
        tonnage study --data 20GB --dir /mnt/nvme0 /mnt/nvme1
        tonnage study --cluster auto --dir /mnt/nvme0 --deadline 10min
    """
    refuse_missing_extra("report", "tonnage study")
    refuse_unknown("--durability", [options.durability], DURABILITIES)
    refuse_unknown("--until", [options.until], STEPS)
    if options.cluster is not None:
        study_on_cluster(options, directory or [], data, memory, out, as_json)
        return
    refuse_without("--cluster", flags_and_values(options))
    _study_here(data or DATA_BYTES, directory or [Path()], memory, out, as_json)


def _study_here(
    data: int, directories: list[Path], memory: int, out: Path | None, as_json: bool
) -> None:
    from tonnage.cli.output.next_steps import from_study
    from tonnage.study.local import LocalStudySettings
    from tonnage.study.local import run_study as run_study

    where = out or new_directory("tonnage-study")
    refuse_missing("--dir", directories)
    refuse_repeated("--dir", directories)
    refuse_files("--output", [where])
    settings = LocalStudySettings(
        size_bytes=data,
        memory_bytes=memory,
        directories=tuple(directories),
        out=where,
    )
    done = run_study(settings, command_line())
    lines = [*done.findings, *done.warnings, f"Report: {done.report}"]
    print_result(done, itertools.chain(lines, from_study(where)), as_json)
