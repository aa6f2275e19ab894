"""``tonnage study --cluster``: the loop on a cluster, and how accurate its plan was."""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from tonnage.base import core
from tonnage.base.records.cluster_study import STEPS, ClusterStudy
from tonnage.base.records.durability import DURABILITIES
from tonnage.cli.options.cluster import ClusterAddress, refuse_without_ray
from tonnage.cli.options.files import command_line, new_directory
from tonnage.cli.options.planning import CatalogNames
from tonnage.cli.options.types import Option, Time
from tonnage.cli.options.validate import refuse_files, refuse_repeated
from tonnage.cli.output import print_result
from tonnage.cli.output.cluster_study import study_lines
from tonnage.cli.output.next_steps import from_cluster_study


@dataclass(frozen=True, kw_only=True)
class ClusterStudyOptions:
    cluster: ClusterAddress = None
    durability: Annotated[
        str | None,
        Option(
            "none|replicated",
            "With --cluster: what protects the output when a node is lost: none; replicated (a "
            "copy on another node). Default: none.",
        ),
    ] = None
    deadline: Annotated[
        float | None,
        Time(
            "With --cluster: maximum time for the sort; it runs on the cheapest nodes that meet "
            "this deadline. Default: on the fastest nodes."
        ),
    ] = None
    catalog: CatalogNames = None
    until: Annotated[
        str | None,
        Option(
            "STEP",
            f"With --cluster: stop after this step: {', '.join(STEPS)}. To continue with the next "
            "step, run the same command again without --until.",
        ),
    ] = None


def study_on_cluster(
    options: ClusterStudyOptions,
    directories: Sequence[Path],
    data_bytes: int | None,
    memory_bytes: int,
    out: Path | None,
    as_json: bool,
) -> None:
    from tonnage.run.two_pass.job_spec import check_node_paths

    if not directories:
        raise core.UsageError("--cluster needs --dir; add a directory on each device of a node")
    check_node_paths("dir", map(str, directories))
    refuse_repeated("--dir", directories)
    refuse_files("--output", [out] if out else [])
    refuse_without_ray()
    from tonnage.study.cluster import ClusterStudySettings, study_cluster

    where = out or new_directory("tonnage-study")
    assert options.cluster is not None
    settings = ClusterStudySettings(
        cluster=options.cluster,
        directories=tuple(directories),
        size_bytes=data_bytes,
        memory_bytes=memory_bytes,
        durability=options.durability or DURABILITIES[0],
        deadline_seconds=options.deadline,
        catalogs=tuple(options.catalog or ()),
        out=where,
    )
    print(f"Results: {where}", file=sys.stderr)
    how = f"to resume the study, run the same command with --output {where}"
    try:
        done = study_cluster(settings, command_line(), options.until or STEPS[-1])
    except KeyboardInterrupt as signalled:
        signalled.args = (f"interrupted; data on the nodes was removed; {how}",)
        raise
    except core.RunError as error:
        raise core.RunError(f"{error}; {how}") from error
    print_result(done, _lines(done, where, options.catalog or []), as_json)


def _lines(done: ClusterStudy, where: Path, catalogs: list[str]) -> Iterator[str]:
    from tonnage.study.cluster import CALIBRATED

    yield from study_lines(done)
    if done.report:
        yield from from_cluster_study(done, where, CALIBRATED, catalogs)
    else:
        left = ", ".join(STEPS[len(done.steps) :])
        yield (
            f"Remaining steps: {left}. To continue, run the same command with --output {where}, "
            "without --until."
        )
