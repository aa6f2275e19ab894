"""`reduce`: a generalized reduction, run on this machine or on a cluster."""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tonnage.api.argument_checks import count, instance, one_of, paths, size, text
from tonnage.api.cluster import Cluster, refuse_without_ray
from tonnage.base import core
from tonnage.base.records import ReductionRecord
from tonnage.run.reduce.chunk_pool import ASSIGNMENTS, SELECTIVE
from tonnage.run.reduce.local import OnRound, reduce_locally
from tonnage.run.reduce.reduction import Reduction
from tonnage.run.reduce.sampling import FromSample
from tonnage.run.reduce.spec import ReduceSpec
from tonnage.run.storage.object_store import ObjectStoreOptions


@dataclass(frozen=True)
class ReduceResult:
    """The result of a reduction: what the last round finished with, and the run's record."""

    result: Any
    record: ReductionRecord


def reduce(
    reduction: Reduction[Any] | FromSample,
    inputs: str | Path | Sequence[str | Path],
    *,
    memory: str | int = "256MiB",
    workers: int | None = None,
    chunk_bytes: int | None = None,
    threads: int | None = None,
    measured: int | None = None,
    format: str | None = None,
    dtype: str | None = None,
    assignment: str = SELECTIVE,
    endpoint: str | None = None,
    cluster: Cluster | None = None,
    named: tuple[str, Mapping[str, Any]] | None = None,
    on_progress: OnRound = lambda *_: None,
) -> ReduceResult:
    """Reduce all rows of files and objects.

    Args:
        reduction: What to do with the rows, or what makes it from a sample of them.
        inputs: Files, directories, objects or folders of objects (``s3://BUCKET/KEY``).
        memory: For chunks, and for objects as far as their reduction counts them
            (`Reduction.allow`): like ``256MiB``, or a number of bytes.
        workers: Threads that reduce; by default one for each core.
        chunk_bytes: Approximate size of a chunk; by default the index's, else what suits the
            input's size and the number of workers.
        threads: Concurrent requests; by default tuned while the job runs.
        measured: Where tuning starts: the number of requests that sufficed when the store was
            measured.
        format: ``rows``, ``npy``, ``parquet``, ``arrow``, ``csv`` or ``json``; by default by the
            files' names.
        dtype: Type of a row of the format ``rows``, like ``8f8``.
        assignment: ``selective`` or ``sequential``.
        endpoint: The store's address; by default as the environment says.
        cluster: Where to run the job instead of this machine. Paths are then paths on each node;
            ``{node}`` in a path is the node's name. Memory and workers are for each node.
        named: Name and settings for the record; by default the reduction's class.
        on_progress: Called with a round's number, from 1 on, its bytes reduced and its total.

    Raises:
        UsageError: Arguments or inputs cannot be used.
        RunError: Input could not be retrieved, or changed while it was read.
        KeyboardInterrupt: Ctrl-C.
    """
    if cluster is not None:
        instance(cluster, Cluster, "cluster", "a tonnage.Cluster")
    spec = ReduceSpec(
        reduction=reduction,
        named=named or (type(reduction).__name__, {}),
        inputs=paths(inputs, "inputs"),
        memory_bytes=size(memory, "memory"),
        workers=count(workers, "workers"),
        chunk_bytes=count(chunk_bytes, "chunk_bytes"),
        format=text(format, "format"),
        dtype=text(dtype, "dtype"),
        assignment=one_of(assignment, ASSIGNMENTS, "assignment"),
        object_store=ObjectStoreOptions(
            endpoint=text(endpoint, "endpoint"), requests=count(threads, "threads")
        ),
        measured=count(measured, "measured"),
        command=list(sys.argv),
    )
    if cluster is None:
        return ReduceResult(*reduce_locally(spec, on_progress))
    return _reduce_on_cluster(cluster, spec, on_progress)


def _reduce_on_cluster(cluster: Cluster, spec: ReduceSpec, on_progress: OnRound) -> ReduceResult:
    of_mapreduce = cluster.weights, cluster.durability, cluster.connections
    if any(each is not None for each in of_mapreduce):
        raise core.UsageError(
            "connections, weights and durability apply only to MapReduce, since a reduction "
            "leaves no output on the nodes",
            setting="cluster",
        )
    refuse_without_ray()
    from tonnage.cluster.ray_adapter import connect
    from tonnage.run.reduce.cluster.driver import reduce_on_cluster
    from tonnage.run.reduce.cluster.job_spec import ReduceJob

    job = ReduceJob(**vars(spec), patience_seconds=cluster.timeout_seconds, nodes=cluster.nodes)
    with connect(cluster.address) as ray:
        cluster.on_nodes([(each.name, each.labels) for each in ray.machines])
        return ReduceResult(*reduce_on_cluster(ray, Path(cluster.job_dir), job, on_progress))
