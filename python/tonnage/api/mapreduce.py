"""`MapReduce`: a job of a user's own functions, run on this machine or on a cluster."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from tonnage.api.argument_checks import count, instance, paths, size
from tonnage.api.cluster import Cluster, refuse_without_ray
from tonnage.base import core
from tonnage.base.records import RunRecord
from tonnage.run.mapreduce import Functions, Input, run_map_reduce
from tonnage.run.storage.object_store import ObjectStoreOptions, is_url

if TYPE_CHECKING:
    from tonnage.run.mapreduce.cluster import MapReduceJob

Source = Path | str | Input


class MapReduce(Functions):
    """A job of functions over Arrow record batches; `Functions` says what they get and return."""

    def run(
        self,
        inputs: Source | Sequence[Source],
        output: Path | str,
        scratch: Path | str | Sequence[Path | str],
        memory: str | int = "1GiB",
        workers: int | None = None,
        input_format: str = "auto",
        format: str = "parquet",
        on_progress: Callable[[int, int], None] | None = None,
        cluster: Cluster | None = None,
        object_store: ObjectStoreOptions | None = None,
    ) -> RunRecord:
        """Run the job: read ``inputs``, write parts and a manifest to ``output``.

        Args:
            inputs: Files, directories, objects or folders of objects (``s3://BUCKET/KEY``). An
                `Input` has a map, format or schema of its own.
            output: A new or empty directory; with ``cluster`` it may be ``s3://BUCKET/PREFIX``.
            scratch: Directories for temporary data, one on each device.
            memory: For buffers and gathered rows, like ``1GiB`` or a number of bytes.
            workers: Threads; by default one for each core.
            input_format: Format of inputs that are given as paths; see `Input`.
            format: Of the output: ``parquet``, ``arrow``, ``csv`` or ``json``.
            on_progress: Called with the bytes done and the total.
            cluster: Where to run the job instead of this machine. Paths are then absolute paths
                on each node. ``{node}`` in a path is the node's name; output and scratch must not
                be shared. Memory and workers are for each node.
            object_store: How to reach object storage; by default as the environment says.

        Raises:
            UsageError: Arguments or inputs cannot be used.
            RunError: A function (its exception is the cause) or a device failed. No output is left.
            KeyboardInterrupt: Ctrl-C. No output is left.
        """
        sources = [inputs] if isinstance(inputs, (Path, str, Input)) else inputs
        scratch_dirs = paths(scratch, "scratch")
        instance(output, (str, Path), "output", "a path")
        memory_bytes, workers = size(memory, "memory"), count(workers, "workers")
        store = object_store or ObjectStoreOptions()
        as_inputs = [_as_input(source, input_format) for source in sources]
        if cluster is not None:
            instance(cluster, Cluster, "cluster", "a tonnage.Cluster")
            job = cluster_job(
                self,
                cluster,
                as_inputs,
                str(output),
                scratch_dirs,
                store,
                memory_bytes,
                workers,
                format,
            )
            from tonnage.cluster.ray_adapter import connect
            from tonnage.run.two_pass.driver import run_two_pass

            with connect(cluster.address) as ray:
                return run_two_pass(
                    ray, Path(cluster.job_dir), job, on_progress or (lambda *_: None)
                )
        if is_url(str(output)):
            raise core.UsageError(
                f"{output}: only a cluster writes to object storage; use a directory, or pass "
                "cluster= (one node is enough)",
                setting="output",
            )
        return run_map_reduce(
            self,
            as_inputs,
            Path(output),
            [Path(each) for each in scratch_dirs],
            memory_bytes,
            workers=workers,
            format=format,
            object_store=store,
            on_progress=on_progress or (lambda *_: None),
        )


def cluster_job(
    functions: Functions,
    cluster: Cluster,
    inputs: Sequence[Input],
    output: str,
    scratch: Sequence[str],
    object_store: ObjectStoreOptions,
    memory_bytes: int,
    workers: int | None,
    format: str,
) -> MapReduceJob:
    """The job as a cluster's driver takes it.

    Raises:
        UsageError: Ray is not installed, or no node could run the job.
    """
    refuse_without_ray()
    from tonnage.run.mapreduce.cluster import map_reduce_job
    from tonnage.run.two_pass.job_spec import check_node_paths

    for name, places in (("input", [str(each.path) for each in inputs]), ("output", [output])):
        check_node_paths(name, (path for path in places if not is_url(path)))
    check_node_paths("scratch", scratch)
    return map_reduce_job(
        functions,
        inputs,
        format=format,
        workers=workers,
        output=[output],
        scratch=scratch,
        object_store=object_store,
        memory_bytes=memory_bytes,
        connections=cluster.connections,
        patience_seconds=cluster.timeout_seconds,
        command=list(sys.argv),
        nodes=cluster.nodes,
        weights=cluster.weights,
        durability=cluster.durability,
    )


def _as_input(source: Source, format: str) -> Input:
    instance(source, (str, Path, Input), "inputs", "a path or an Input")
    if isinstance(source, Input):
        return source if source.format != "auto" else replace(source, format=format)
    return Input(source, format=format)
