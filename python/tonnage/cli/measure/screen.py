"""``tonnage measure screen``."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from tonnage.base import core, formatting
from tonnage.base.records.environment import MACHINE_TYPE
from tonnage.cli.measure.cluster import fail_if_missing, run_and_print
from tonnage.cli.measure.disk import disk_work
from tonnage.cli.measure.options import (
    REPETITIONS,
    ClusterOptions,
    TrialSeconds,
    TrialSize,
    refuse_directories,
)
from tonnage.cli.options.cluster import ClusterAddress, refuse_without_ray
from tonnage.cli.options.option_groups import default
from tonnage.cli.options.planning import CatalogNames, job_from, load_catalogs
from tonnage.cli.options.types import Memory, Option, Size
from tonnage.cli.options.validate import refuse_without
from tonnage.cli.output.screening import ScreenedJob, print_screening
from tonnage.cli.output.trials import results_line

if TYPE_CHECKING:
    from tonnage.cluster.ray_adapter import Cluster, Machine
    from tonnage.measure.cluster.driver import MeasurementEvents, OnStatus

MODES = ("ro", "wo")
NET_SECONDS, NET_REPETITIONS, NET_BLOCK_BYTES = 1.5, 1, 64 << 10
"""Short, and in blocks so small that slow links carry many."""


@dataclass(frozen=True, kw_only=True)
class ScreenOptions(ClusterOptions):
    cluster: ClusterAddress = "auto"


def measure_screen(
    *,
    directory: Annotated[
        list[Path] | None,
        Option(
            "DIR...",
            "A directory on each device of a node, as an absolute path; {node} in it is replaced "
            "by the node's name.",
            flag="--dir",
        ),
    ] = None,
    size: TrialSize = default("1GB"),
    seconds: TrialSeconds = default("5"),
    memory: Memory = default("256MiB"),
    job: Annotated[
        str | None,
        Option(
            "JOB",
            "Also predict this job without the slow and failed nodes: sort, mapreduce, or a "
            "job's JSON file. Needs --data.",
        ),
    ] = None,
    data: Annotated[int | None, Size("Size of the job's input.")] = None,
    catalog: CatalogNames = None,
    options: ScreenOptions,
) -> None:
    """Test each node's disks and network link for a minute, and report slow nodes with a confidence
    level.

    A node is compared with others of its machine type: this needs at least five nodes in the
    cluster, at least three of them of that type. Nodes without any results are reported too.

    Examples:
        tonnage measure screen --cluster auto --dir /mnt/nvme0
        tonnage measure screen --dir /mnt/nvme0 --job sort --data 1TB
    """
    screened_job = _job(job, data, catalog)
    directories = directory or [Path()]
    refuse_directories(options, directories)
    refuse_without_ray()
    from tonnage.measure.cluster.driver import MeasurementRequest
    from tonnage.measure.cluster.screening import DISK, screen_cluster
    from tonnage.measure.disk import DiskSettings
    from tonnage.measure.net.cluster import ClusterNetSettings

    settings = DiskSettings(
        read=tuple(directories),
        write=tuple(directories),
        modes=MODES,
        rounds=REPETITIONS,
        seconds=seconds,
        size_bytes=size,
        memory_bytes=memory,
    )
    disks = MeasurementRequest(
        kind=DISK,
        work=disk_work(settings),
        settings=settings.recorded,
        late_seconds=math.inf,  # Disks are each node's own: a late start does not matter.
        **options.request,
    )
    network = ClusterNetSettings(
        connections=(1,),
        sizes=None,
        block_bytes=NET_BLOCK_BYTES,
        seconds=NET_SECONDS,
        rounds=NET_REPETITIONS,
        seed=0,
        brief=True,
    )
    out = options.directory("screen")

    def measure(cluster: Cluster, on_status: OnStatus) -> MeasurementEvents:
        if reason := why_too_small(cluster.machines, options):
            print(
                f"Only nodes without results can be found, not slow ones: {reason}", file=sys.stderr
            )
        return screen_cluster(cluster, out, disks, network, on_status)

    of_disks, *of_network = run_and_print("screen", options, measure)
    print_screening(
        of_disks, of_network[0] if of_network else None, out, screened_job, options.as_json
    )
    if not options.as_json:
        print(results_line(out))
    fail_if_missing(of_disks, *of_network)


def why_too_small(machines: Sequence[Machine], options: ClusterOptions) -> str | None:
    """Why the cluster is too small to judge any node; ``None`` if it is not."""
    from tonnage.model.outlier_nodes import why_too_few

    labels = [{**each.labels, **options.labels} for each in machines[: options.nodes]]
    return why_too_few([each.get(MACHINE_TYPE) for each in labels])


def _job(job: str | None, data: int | None, catalog: list[str] | None) -> ScreenedJob | None:
    from tonnage.plan.recommendations.drop_nodes import resources_off_node

    if job is None:
        refuse_without("--job", {"--data": data, "--catalog": catalog})
        return None
    if not data:
        raise core.UsageError(
            "--job needs --data; add the size of the job's input, like --data 1TB"
        )
    made = job_from(job, {}, "local")
    if elsewhere := resources_off_node(made):
        raise core.UsageError(
            f"--job {job} needs {formatting.listing(elsewhere)}, but a screening tests only disks "
            "and network links; remove --job"
        )
    return ScreenedJob(made, data, load_catalogs(catalog))
