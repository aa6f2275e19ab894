"""What every job on a cluster has in common: its capacities, its plan, its run and its record."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import structs

from tonnage.base import core, formatting
from tonnage.base.records import ClusterMeasurement, RunRecord
from tonnage.cli.options.cluster import JobOptions
from tonnage.cli.options.files import new_directory
from tonnage.cli.options.inputs import load_clusters
from tonnage.cli.options.plan_file import SelectedPlan, refuse_other_cluster
from tonnage.model.node_capacity import cluster_capacity, work_shares
from tonnage.model.run_comparison.two_pass import compare

if TYPE_CHECKING:
    from tonnage.run.two_pass.job_spec import TwoPassJob


@dataclass(frozen=True)
class ClusterRun:
    """Where a job runs, and what its record is compared with."""

    address: str
    job_dir: Path
    measured: Sequence[ClusterMeasurement]
    selected: SelectedPlan | None


def cluster_run(
    kind: str,
    options: JobOptions,
    measured: Sequence[ClusterMeasurement],
    selected: SelectedPlan | None,
) -> ClusterRun:
    assert options.cluster is not None
    job_dir = options.job_dir or new_directory(f"tonnage-{kind}")
    return ClusterRun(options.cluster, job_dir, measured, selected)


def run_on_cluster(job: TwoPassJob, run: ClusterRun, doing: str) -> RunRecord:
    """Runs a job of two passes, and compares it with its limits and its plan."""
    from tonnage.cluster.ray_adapter import connect
    from tonnage.run.two_pass.driver import run_two_pass
    from tonnage.run.two_pass.job_dir import PLAN, RUN

    was_done = (run.job_dir / RUN).exists()
    with resumable(run.job_dir), connect(run.address) as cluster:
        if run.selected and not (run.job_dir / PLAN).exists():  # A resumed job keeps its nodes.
            nodes = [(each.name, each.labels) for each in cluster.machines]
            for note in _plan_notes(job, run.selected, nodes):
                print(formatting.sentence(note), file=sys.stderr)
        with core.Progress(doing) as progress:
            record = run_two_pass(cluster, run.job_dir, job, progress.update)
    if was_done:
        note = "the job was already done, and this is its record"
        print(f"tonnage: {run.job_dir}: {note}", file=sys.stderr)
    if record.compared is None or run.measured or run.selected:
        record = compared(record, run.measured, run.selected)
        record.write(run.job_dir / RUN)
    return record


def _plan_notes(
    job: TwoPassJob, selected: SelectedPlan, nodes: Sequence[tuple[str, Mapping[str, str]]]
) -> Iterator[str]:
    yield f"as planned: {selected.summary}"
    if unchecked := refuse_other_cluster(selected, nodes):
        yield unchecked
    if (job.output_url is not None) != selected.on_objects:
        yield f"the output goes to {job.output_url or 'directories'}, which was not planned"


@contextmanager
def resumable(job_dir: Path) -> Iterator[None]:
    """Says how to resume the job, if it ends early and can be resumed."""
    from tonnage.run.two_pass.job_dir import FatalJobError

    how = f"the same command with --job-dir {job_dir} resumes it"
    try:
        yield
    except KeyboardInterrupt as signalled:
        if any(job_dir.glob("*")):
            kept = "finished rounds are kept, the current one may be repeated"
            signalled.args = (f"interrupted: {kept}; {how}",)
        raise
    except core.RunError as error:
        # A fatal error would occur again.
        if not isinstance(error, FatalJobError) and any(job_dir.glob("*")):
            print(f"tonnage: {how}", file=sys.stderr)
        raise


def load_capacities(paths: Sequence[Path]) -> list[ClusterMeasurement]:
    """The measurements of ``--capacities``."""
    found = load_clusters([*paths])
    if paths and not any(cluster_capacity(found, _nodes(found)).nodes.values()):
        raise core.UsageError(
            f"--capacities {formatting.listing(map(str, paths))}: no node's disks, network or object "
            "store were measured there: give results of tonnage measure disk, net or object "
            "--cluster"
        )
    return found


def weights(measured: Sequence[ClusterMeasurement]) -> dict[str, float] | None:
    """Each node's share of the data, by its disks; ``None`` if none were measured."""
    return work_shares(cluster_capacity(measured, _nodes(measured)).nodes) or None


def _nodes(measured: Sequence[ClusterMeasurement]) -> set[str]:
    return {row.node for each in measured for row in each.nodes}


def compared(
    record: RunRecord,
    measured: Sequence[ClusterMeasurement],
    selected: SelectedPlan | None = None,
) -> RunRecord:
    took_part = [node.node for node in record.nodes]
    return structs.replace(
        record,
        compared=compare(
            record,
            cluster_capacity(measured, took_part) if measured else None,
            selected.plan if selected else None,
            selected.candidate if selected else None,
        ),
    )
