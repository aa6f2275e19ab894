"""``tonnage run reduce``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from tonnage.base import core
from tonnage.cli.options.chunks import ChunkOptions, auto_or
from tonnage.cli.options.cluster import (
    TIMEOUT_SECONDS,
    JobOptions,
    refuse_node_in_urls,
    refuse_without_ray,
)
from tonnage.cli.options.files import new_directory
from tonnage.cli.options.inputs import contains, load_all, measurement_files
from tonnage.cli.options.object_store import (
    EndpointUrl,
    Inputs,
    Locations,
    locations,
    refuse_endpoint,
)
from tonnage.cli.options.option_groups import default
from tonnage.cli.options.plan_file import SelectedPlan, selected_plan
from tonnage.cli.options.types import Argument, Count, Json, Memory, Option, whole_number
from tonnage.cli.options.validate import refuse_unknown
from tonnage.cli.output import print_result
from tonnage.cli.output.reduction import reduction_lines
from tonnage.cli.run.cluster import print_plan_notes, resumable
from tonnage.cli.run.reductions import (
    ReductionOptions,
    make_reduction,
    most_rounds,
    refuse_unknown_reduction,
)
from tonnage.model.run_comparison.reduction import compare_reduction
from tonnage.run.storage.object_store import refuse_overlapping_inputs

if TYPE_CHECKING:
    from tonnage.api.cluster import Cluster

ASSIGNMENTS = ("selective", "sequential")


@dataclass(frozen=True, kw_only=True)
class RetrievalOptions:
    requests: Annotated[str, Option("N|auto", "Concurrent requests to object storage.")] = "auto"
    capacities: Annotated[
        list[Path] | None,
        Option(
            "DIR...",
            "Measurements of the store (tonnage measure object). --requests auto then starts with "
            "the number of requests that these measurements found sufficient.",
        ),
    ] = None
    workers: Annotated[int | None, Count("Worker threads. Default: one per core.", 1, 1024)] = None
    memory: Memory = default("256MiB")
    assignment: Annotated[
        str,
        Option(
            "HOW",
            "Order of chunks: selective (the next chunk comes from the file that the fewest "
            "workers are reading), or sequential.",
        ),
    ] = "selective"

    @property
    def at_once(self) -> int | None:
        return auto_or("--requests", self.requests, whole_number(1, 1024))


def run_reduce(
    *,
    job: Annotated[
        str,
        Argument(
            "JOB",
            "kmeans, pca, regression, pagerank, histogram, or MODULE:NAME for your own "
            "tonnage.Reduction.",
        ),
    ],
    inputs: Inputs,
    parameters: ReductionOptions,
    columns: Annotated[str | None, Option("A,B,...", "Columns to use. Default: all.")] = None,
    chunks: ChunkOptions,
    retrieval: RetrievalOptions,
    options: JobOptions,
    endpoint: EndpointUrl = None,
    as_json: Json = False,
) -> None:
    """Reduce rows to a small result, without a shuffle.

    Workers fetch chunks of rows and reduce each one locally. At the end of each pass over the data,
    the workers' results are merged. The result is printed; --json prints the run's record with it,
    which is also the run.json of a cluster's --job-dir.

    Examples:
        tonnage run reduce kmeans s3://bucket/points/ --dtype 8f8 --k 16
        tonnage run reduce histogram table.parquet --columns price
    """
    refuse_unknown_reduction(job)
    given = parameters.given_options(job)
    refuse_unknown("--assignment", [retrieval.assignment], ASSIGNMENTS)
    refuse_endpoint(endpoint)
    read = locations(inputs)
    refuse_overlapping_inputs(read.urls)
    options.refuse_without_cluster()
    selected = selected_plan("reduce", options)
    cluster = _cluster(options, read, selected) if options.cluster is not None else None
    from tonnage.api.reduce import reduce

    names = columns.split(",") if columns else None
    at_once, chunk_bytes = retrieval.at_once, chunks.chunk_bytes
    measured = _measured_requests(retrieval, chunk_bytes, read.urls)
    reduction = make_reduction(job, given, names)
    context = resumable(Path(cluster.job_dir)) if cluster else nullcontext()
    with context, core.Progress("reducing") as progress:
        done = reduce(
            reduction,
            [*map(str, read.paths), *read.urls],
            memory=retrieval.memory,
            workers=retrieval.workers,
            threads=at_once,
            measured=measured,
            assignment=retrieval.assignment,
            endpoint=endpoint,
            cluster=cluster,
            named=(job, given | ({"columns": names} if names else {})),
            on_progress=lambda number, *moved: progress.update_round(
                number, most_rounds(job, given), *moved
            ),
            chunk_bytes=chunk_bytes,
            format=chunks.input_format,
            dtype=chunks.dtype,
        )
    record = done.record
    if selected and cluster and record.rounds_here:
        from tonnage.run.reduce.cluster.job_dir import RECORD

        record = compare_reduction(record, selected.plan, selected.candidate)
        record.write(Path(cluster.job_dir) / RECORD)
    results = [f"Results: {cluster.job_dir}"] if cluster else []
    print_result(record, [*reduction_lines(record), *results], as_json)


def _measured_requests(
    retrieval: RetrievalOptions, chunk_bytes: int | None, urls: Sequence[str]
) -> int | None:
    """How many concurrent requests the store needs, by its measurements; ``None`` without any."""
    if not retrieval.capacities:
        return None
    if not urls:
        raise core.UsageError(
            "--capacities applies only to s3:// input, but there is none; remove --capacities"
        )
    if retrieval.at_once is not None:
        raise core.UsageError(
            "--capacities works only with --requests auto; remove --capacities or --requests"
        )
    from tonnage.measure.object import threads_needed
    from tonnage.run.reduce.tuning import RANGE_BYTES

    measurements = load_all(measurement_files(retrieval.capacities))
    needed = threads_needed(measurements, min(chunk_bytes or RANGE_BYTES, RANGE_BYTES))
    if needed is None:
        raise core.UsageError(
            f"--capacities {contains(retrieval.capacities)} no finished measurement of object "
            "reads; use results of tonnage measure object"
        )
    return needed


def _cluster(options: JobOptions, read: Locations, selected: SelectedPlan | None) -> Cluster:
    """The cluster that the options describe; of a plan, its nodes have to be as planned."""
    refuse_without_ray()
    from tonnage.api.cluster import Cluster
    from tonnage.run.two_pass.job_spec import check_node_paths

    check_node_paths("input", map(str, read.paths))
    refuse_node_in_urls(read.urls)
    job_dir = options.job_dir or new_directory("tonnage-reduce")

    def check(nodes: Sequence[tuple[str, Mapping[str, str]]]) -> None:
        if selected and not any(job_dir.glob("*")):  # A resumed job keeps its nodes.
            print_plan_notes(selected, nodes)

    assert options.cluster is not None
    return Cluster(
        job_dir=job_dir,
        address=options.cluster,
        nodes=selected.nodes if selected else options.nodes,
        timeout_seconds=options.timeout or TIMEOUT_SECONDS,
        on_nodes=check,
    )
