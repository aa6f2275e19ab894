"""``tonnage run mapreduce``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from tonnage.base import core
from tonnage.base.records.durability import DURABILITIES
from tonnage.cli.options.cluster import ShuffleOptions, refuse_node_in_urls
from tonnage.cli.options.object_store import (
    Inputs,
    Locations,
    StoreOptions,
    bytes_to_read,
    locations,
)
from tonnage.cli.options.option_groups import default
from tonnage.cli.options.types import Argument, Count, Json, Memory, Option, Scratch
from tonnage.cli.options.user_code import load_object
from tonnage.cli.options.validate import refuse_job_paths, refuse_unknown
from tonnage.cli.output.run_record import mapreduce_lines, print_record_json
from tonnage.cli.run.cluster import cluster_run, run_on_cluster
from tonnage.run.storage.object_store import refuse_output_in_input, refuse_overlapping_inputs

if TYPE_CHECKING:
    from tonnage.api.mapreduce import MapReduce
    from tonnage.base.records import RunRecord
    from tonnage.run.mapreduce import Input

MAX_WORKERS = 1024


@dataclass(frozen=True, kw_only=True)
class MapReduceOptions:
    scratch: Scratch
    memory: Memory = default("1GiB")
    workers: Annotated[
        int | None, Count("Worker threads. Default: one per core.", 1, MAX_WORKERS)
    ] = None
    input_format: Annotated[
        str,
        Option(
            "FORMAT",
            "lines, csv, json, parquet, arrow, records:N (N bytes each), or auto (inferred from "
            "the file name).",
        ),
    ] = "auto"
    encoding: Annotated[
        str | None, Option("NAME", "Encoding of text, like latin-1. Default: UTF-8.")
    ] = None
    output_format: Annotated[str, Option("FORMAT", "parquet, arrow, csv or json.")] = "parquet"

    def inputs(self, places: list[str]) -> list[Input]:
        from tonnage.run.mapreduce import Input

        return [Input(each, format=self.input_format, encoding=self.encoding) for each in places]


def run_mapreduce(
    *,
    job: Annotated[
        str,
        Argument(
            "MODULE:NAME",
            "A tonnage.MapReduce object in a module or a Python file, like words.py:JOB.",
        ),
    ],
    inputs: Inputs,
    output: Annotated[
        str,
        Option(
            "DIR",
            "Empty or new output directory; or, with --cluster, an unused s3://BUCKET/PREFIX.",
        ),
    ],
    settings: MapReduceOptions,
    options: ShuffleOptions,
    store: StoreOptions,
    as_json: Json = False,
) -> None:
    """Run your map and reduce functions over Arrow record batches, with a shuffle in between.

    With --cluster, the job runs on many nodes; if one is lost, the others redo its work.

    The output consists of files part-00000, part-00001, ... and a manifest, _tonnage.json. Inputs
    are not changed. The code in MODULE runs with your own permissions.

    Examples:
        tonnage run mapreduce words.py:JOB text --output counts --scratch tmp
        tonnage run mapreduce words.py:JOB s3://bucket/in --output s3://bucket/out \\
            --scratch /mnt/tmp --cluster auto
    """
    read, written = locations(inputs), locations([output])
    refuse_node_in_urls([*read.urls, *written.urls])
    refuse_overlapping_inputs(read.urls)
    refuse_output_in_input(written.urls, read.urls)
    options.refuse_without_cluster()
    if options.cluster is not None:
        record = _run_on_cluster(job, inputs, output, settings, options, store)
    else:
        record = _run_here(job, read, written, settings, store)
    if as_json:
        print_record_json(record)
    else:
        print("\n".join(mapreduce_lines(record)))


def _run_on_cluster(
    job: str,
    inputs: list[str],
    output: str,
    settings: MapReduceOptions,
    options: ShuffleOptions,
    store: StoreOptions,
) -> RunRecord:
    from tonnage.api.cluster import Cluster
    from tonnage.api.mapreduce import cluster_job

    refuse_unknown("--durability", [options.durability], DURABILITIES)
    run = cluster_run("mapreduce", options, locations([output]).urls)
    cluster = Cluster(
        job_dir=run.job_dir,
        address=run.address,
        nodes=run.nodes,
        timeout_seconds=run.timeout_seconds,
        connections=run.connections,
        weights=run.weights,
        durability=run.durability,
    )
    two_pass = cluster_job(
        load_job(job),
        cluster,
        settings.inputs(inputs),
        output,
        [str(path) for path in settings.scratch],
        store.store,
        settings.memory,
        settings.workers,
        settings.output_format,
    )
    return run_on_cluster(two_pass, run, "mapreduce")


def _run_here(
    job: str,
    read: Locations,
    written: Locations,
    settings: MapReduceOptions,
    store: StoreOptions,
) -> RunRecord:
    if written.urls:
        raise core.UsageError(
            f"--output {written.urls[0]}: a URL needs --cluster (one node is enough); add "
            "--cluster, or use a directory"
        )
    refuse_job_paths(read.paths, written.paths, settings.scratch)
    loaded = load_job(job)
    with core.Progress("mapreduce", bytes_to_read(read, store.store)) as progress:
        return loaded.run(
            settings.inputs([*map(str, read.paths), *read.urls]),
            str(written.paths[0]),
            settings.scratch,
            settings.memory,
            settings.workers,
            format=settings.output_format,
            on_progress=lambda done, _: progress(done // 2),  # of two passes
            object_store=store.store,
        )


def load_job(place: str) -> MapReduce:
    from tonnage.api.mapreduce import MapReduce

    found = load_object(place, MapReduce, "tonnage.MapReduce")
    if isinstance(found, type):
        raise core.UsageError(f"{place} is a class; it must be an instance of tonnage.MapReduce")
    job: MapReduce = found
    return job
