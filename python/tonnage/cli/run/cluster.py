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
from tonnage.cli.options.cluster import TIMEOUT_SECONDS, ShuffleOptions
from tonnage.cli.options.files import new_directory
from tonnage.cli.options.inputs import contains, load_clusters
from tonnage.cli.options.plan_file import (
    SelectedPlan,
    planned_durability,
    refuse_other_cluster,
    selected_plan,
)
from tonnage.model.node_capacity import cluster_capacity, work_shares

if TYPE_CHECKING:
    from tonnage.run.two_pass.job_spec import TwoPassJob


@dataclass(frozen=True)
class ClusterRun:
    """Where and how a job with a shuffle runs, and what its record is compared with."""

    options: ShuffleOptions
    address: str
    job_dir: Path
    measured: Sequence[ClusterMeasurement]
    selected: SelectedPlan | None
    durability: str | None

    @property
    def nodes(self) -> int | None:
        return self.selected.nodes if self.selected else self.options.nodes

    @property
    def timeout_seconds(self) -> float:
        return self.options.timeout or TIMEOUT_SECONDS

    @property
    def connections(self) -> int | None:
        return self.options.connections

    @property
    def weights(self) -> dict[str, float] | None:
        return weights(self.measured)


def cluster_run(kind: str, options: ShuffleOptions, output_urls: Sequence[str]) -> ClusterRun:
    assert options.cluster is not None
    selected = selected_plan(kind, options, options.durability)
    measured = load_capacities(options.capacities or ())
    durability = planned_durability(selected, options.durability, output_urls)
    job_dir = options.job_dir or new_directory(f"tonnage-{kind}")
    return ClusterRun(options, options.cluster, job_dir, measured, selected, durability)


def run_on_cluster(job: TwoPassJob, run: ClusterRun, doing: str) -> RunRecord:
    """Runs a job of two passes, and compares it with its limits and its plan."""
    from tonnage.cluster.ray_adapter import connect
    from tonnage.run.two_pass.driver import run_two_pass
    from tonnage.run.two_pass.job_dir import PLAN, RUN

    was_done = (run.job_dir / RUN).exists()
    with resumable(run.job_dir), connect(run.address) as cluster:
        if run.selected and not (run.job_dir / PLAN).exists():  # A resumed job keeps its nodes.
            print_plan_notes(run.selected, [(each.name, each.labels) for each in cluster.machines])
            if (job.output_url is not None) != run.selected.on_objects:
                place = job.output_url or "directories"
                print(f"The output goes to {place}, unlike in the plan.", file=sys.stderr)
        with core.Progress(doing) as progress:
            record = run_two_pass(cluster, run.job_dir, job, progress.update)
    if was_done:
        note = "the job had already finished; this is its record"
        print(f"tonnage: {run.job_dir}: {note}", file=sys.stderr)
    if record.compared is None or run.measured or run.selected:
        record = _compared(record, run)
        record.write(run.job_dir / RUN)
    return record


def print_plan_notes(
    selected: SelectedPlan, nodes: Sequence[tuple[str, Mapping[str, str]]]
) -> None:
    """Prints what is as planned, and what cannot be checked; refuses another cluster."""
    unchecked = refuse_other_cluster(selected, nodes)
    for note in filter(None, (f"as planned: {selected.summary}", unchecked)):
        print(formatting.sentence(note), file=sys.stderr)


@contextmanager
def resumable(job_dir: Path) -> Iterator[None]:
    """Says how to resume the job, if it ends early and can be resumed."""
    from tonnage.run.two_pass.job_dir import FatalJobError

    how = f"to resume the job, run the same command with --job-dir {job_dir}"
    try:
        yield
    except KeyboardInterrupt as signalled:
        if any(job_dir.glob("*")):
            kept = "finished rounds are kept, but the current round may be repeated"
            signalled.args = (f"interrupted; {kept}; {how}",)
        raise
    except core.RunError as error:
        # A fatal error would occur again.
        if not isinstance(error, FatalJobError) and any(job_dir.glob("*")):
            print(f"tonnage: {how}", file=sys.stderr)
        raise


def load_capacities(paths: Sequence[Path]) -> list[ClusterMeasurement]:
    found = load_clusters([*paths])
    if paths and not any(cluster_capacity(found, _nodes(found)).nodes.values()):
        raise core.UsageError(
            f"--capacities {contains(paths)} no finished measurement of nodes' disks, network or "
            "object store; use results of tonnage measure disk, net or object --cluster"
        )
    return found


def weights(measured: Sequence[ClusterMeasurement]) -> dict[str, float] | None:
    """Each node's share of the data, by its disks; ``None`` if none were measured."""
    return work_shares(cluster_capacity(measured, _nodes(measured)).nodes) or None


def _nodes(measured: Sequence[ClusterMeasurement]) -> set[str]:
    return {row.node for each in measured for row in each.nodes}


def _compared(record: RunRecord, run: ClusterRun) -> RunRecord:
    from tonnage.model.run_comparison.two_pass import compare

    nodes = [node.node for node in record.nodes]
    return structs.replace(
        record,
        compared=compare(
            record,
            cluster_capacity(run.measured, nodes) if run.measured else None,
            run.selected.plan if run.selected else None,
            run.selected.candidate if run.selected else None,
        ),
    )
