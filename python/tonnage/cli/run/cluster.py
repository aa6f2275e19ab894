"""``tonnage run sort --cluster``: paths are each machine's own; what befell each of them is told.

What any job on a fleet needs of its command is here too: `run_asked`, and the record in words.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import structs

from tonnage.base import core, formatting
from tonnage.base.records import ClusterMeasurement, RunRecord
from tonnage.cli.measure.cluster import refuse_without_ray
from tonnage.cli.options.cluster import CONNECTIONS, PATIENCE_SECONDS
from tonnage.cli.options.files import command_line, new_directory
from tonnage.cli.options.inputs import read_fleets
from tonnage.cli.options.object_store import asked_of_stores, divided, refuse_of_nodes
from tonnage.cli.options.plan_file import Followed, follow, refuse_other_fleet
from tonnage.cli.output import run_comparison
from tonnage.model.node_capacity import cluster_capacity as carried
from tonnage.model.node_capacity import work_shares
from tonnage.model.run_comparison.two_pass import compare
from tonnage.model.study_findings import disk_warnings
from tonnage.run.storage.object_store import refuse_output_in_input, refuse_overlapping_inputs

if TYPE_CHECKING:
    from tonnage.run.sort.local import Layout
    from tonnage.run.storage.object_store import ObjectStoreOptions
    from tonnage.run.two_pass.job_spec import TwoPassJob


def sort_on_fleet(
    address: str,
    inputs: Sequence[str],
    output: Sequence[str],
    scratch: Sequence[Path],
    volumes: ObjectStoreOptions,
    layout: Layout,
    memory_bytes: int,
    as_json: bool,
    out: Path | None,
    connections: int | None,
    patience_seconds: float | None,
    instances: int | None,
    capacities: Sequence[Path],
    durability: str | None,
    plan: Path | None,
    candidate: int | None,
) -> None:
    """Sorts, and shows how it went.

    Raises:
        UsageError: Ray is not there, or arguments, a machine, or the input cannot be used.
        RunError: It cannot be done any more, or what came out is not what went in.
        KeyboardInterrupt: Ctrl-C; the same command goes on.
    """
    from tonnage.run.two_pass.job_spec import check_node_paths, durability_of

    (paths, urls), (directories, folders) = divided(inputs), divided(output)
    for flag, places in (("input", paths), ("--output", directories), ("--scratch", scratch)):
        check_node_paths(flag, map(str, places))
    refuse_of_nodes([*urls, *folders])
    refuse_overlapping_inputs(urls)
    refuse_output_in_input(folders, urls)
    if folders and len(output) > 1:
        raise core.UsageError("--output: give directories, or one url")
    followed = follow("sort", plan, candidate, instances, durability)
    measured = measured_at(capacities)
    refuse_without_ray()
    from tonnage.run.sort.cluster import SortJob

    asked = SortJob(
        inputs=[str(place) for place in (*paths, *urls)],
        output=[str(place) for place in (*directories, *folders)],
        scratch=[str(path) for path in scratch],
        layout=layout,
        memory_bytes=memory_bytes,
        connections=connections or CONNECTIONS,
        patience_seconds=patience_seconds or PATIENCE_SECONDS,
        command=command_line(),
        instances=followed.nodes if followed else instances,
        weights=weights(measured),
        durability=durability_of(durability_of(followed, durability, folders), folders),
        volumes=volumes,
    )
    out = out or new_directory("tonnage-sort")
    record = run_asked(asked, address, out, "sorting", measured, followed)
    if as_json:
        show(record)
        return
    print("\n".join(in_words(record)))
    print(f"Kept in {out}; the output's files: {out / 'sorted.json'}")


def run_asked(
    asked: TwoPassJob,
    address: str,
    out: Path,
    doing: str,
    measured: Sequence[ClusterMeasurement],
    followed: Followed | None,
) -> RunRecord:
    """Has a fleet do what is asked, as planned if there is a plan; keeps what is beside it, too.

    Args:
        asked: The job.
        address: Of the cluster.
        out: Where what befell is kept.
        doing: What progress calls it.
        measured: What the machines were measured to carry.
        followed: What was planned.

    Raises:
        UsageError: The cluster, its machines or the input cannot be used; nothing is begun.
        RunError: It cannot be done any more, or what came out is not what went in.
        KeyboardInterrupt: Ctrl-C; the same command goes on.
    """
    from tonnage.cluster.ray_adapter import connect
    from tonnage.run.two_pass.driver import run_two_pass
    from tonnage.run.two_pass.job_dir import PLAN, RUN

    done = (out / RUN).exists()
    with going_on(out), connect(address) as cluster:
        if followed and not (out / PLAN).exists():  # Else it goes on, with whom there is.
            machines = [(each.name, each.labels) for each in cluster.machines]
            doubt = refuse_other_fleet(followed, machines)
            elsewhere = None
            if (asked.output_url is not None) != followed.on_objects:
                where = asked.output_url or "directories"
                elsewhere = f"the output goes to {where}, which was not planned"
            for said in filter(None, (f"as planned: {followed.said}", doubt, elsewhere)):
                print(formatting.sentence(said), file=sys.stderr)
        with core.Progress(doing) as progress:
            record = run_two_pass(cluster, out, asked, progress.update)
    if done:
        said = "an earlier command had done all of it, and this tells what that one did"
        print(f"tonnage: {out}: {said}", file=sys.stderr)
    if record.compared is None or measured or followed:
        record = beside(record, measured, followed)
        record.write(out / RUN)
    return record


def show(record: RunRecord) -> None:
    """Prints a record as JSON; of nodes that were lost a person is told all the same."""
    for said in lost(record):
        print(f"tonnage: {said}", file=sys.stderr)
    print(json.dumps(record.to_json()))


@contextmanager
def going_on(out: Path) -> Iterator[None]:
    """Says that the same command goes on, if it ends early and would."""
    from tonnage.run.two_pass.job_dir import FatalJobError

    said = f"the same command goes on, with --job-dir {out}"
    try:
        yield
    except KeyboardInterrupt as why:
        if any(out.glob("*")):
            stays = "rounds that were whole stay, what was under way may be done again"
            why.args = (f"interrupted: {stays}; {said}",)
        raise
    except core.RunError as why:
        # What would fail on any machine has left nothing that could go on.
        if not isinstance(why, FatalJobError) and any(out.glob("*")):
            print(f"tonnage: {said}", file=sys.stderr)
        raise


def measured_at(paths: Sequence[Path]) -> list[ClusterMeasurement]:
    """What fleets measured there.

    Raises:
        UsageError: Nothing that a job depends on.
    """
    found = read_fleets([*paths])
    if paths and not any(carried(found, _nodes(found)).nodes.values()):
        raise core.UsageError(
            f"--capacities {formatting.listing(map(str, paths))}: no machine's disks, network or "
            "object store were measured there: give what tonnage measure disk, net or object "
            "--cluster kept"
        )
    return found


def weights(measured: Sequence[ClusterMeasurement]) -> dict[str, float] | None:
    """Each node's share, by its disks; ``None`` if none were measured."""
    return work_shares(carried(measured, _nodes(measured)).nodes) or None


def _nodes(measured: Sequence[ClusterMeasurement]) -> set[str]:
    return {row.node for each in measured for row in each.nodes}


def beside(
    record: RunRecord, measured: Sequence[ClusterMeasurement], followed: Followed | None = None
) -> RunRecord:
    """The record, with each phase beside its limit and its plan."""
    took_part = [node.node for node in record.nodes]
    return structs.replace(
        record,
        compared=compare(
            record,
            carried(measured, took_part) if measured else None,
            followed.plan if followed else None,
            followed.candidate if followed else None,
        ),
    )


def in_words(record: RunRecord) -> list[str]:
    """What a sort on a fleet did, line by line."""
    cpu, rate = formatting.significant(record.cpu_seconds), "no time"
    if record.seconds:
        rate = formatting.rate(record.bytes / record.seconds)
    took = f"{formatting.seconds(record.seconds)}, {rate} sorted"
    if record.commands > 1:
        took = f"{formatting.seconds(record.seconds)} for the last of {record.commands} commands"
    lines = [
        f"{record.records} records, {record.bytes} bytes, checksum {record.checksum}",
        f"{took}, {cpu} core seconds on {formatting.several(len(record.nodes), 'node')}",
        f"{formatting.size(record.network_bytes)} went from node to node, in "
        f"{formatting.several(len(record.rounds), 'round')} of pass one",
    ]
    if record.compared:
        lines += run_comparison.lines(record.compared, record.seconds)
    if record.requests:
        lines.append(asked_of_stores(record.requests))
    if record.repartitioned_bytes:
        again = formatting.size(record.repartitioned_bytes)
        lines.append(f"{again} were divided once more, since --memory is small for them: give more")
    lines += lost(record)
    phases = (phase for node in record.nodes for phase in node.phases)
    return [*lines, *disk_warnings(phases)]


def lost(record: RunRecord) -> list[str]:
    """The nodes that were lost, and why."""
    return [f"Lost: {node.node}: {node.lost}" for node in record.nodes if node.lost]
