"""PySpark's RDDs; the second argument selects the variant:

``boto3``: keys are the RDD, and boto3 fetches within tasks; ``s3a``: objects by Spark's own client.
Both make a partial result of each partition and add them up in a tree.

``pairs`` and ``pairs-no-combiner``: k-means as pairs of a centre's number and a point, shuffled,
as in MapReduce; with reduceByKey, which adds up before the shuffle, or groupByKey, which does not.
NumPy finds the nearest centres in either case.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
from jobs import BLOCK_ROWS, Array, KMeans, Partial, in_rounds, job_of
from pyspark import SparkConf, SparkContext
from store import kept
from task import Task, serve

Pair = tuple[int, list[float]]
"""A centre's number; a point, 1, the squared distance to the centre: all of which add up."""


def pairs_of(rows: Array, centres: Array) -> Iterator[Pair]:
    for begin in range(0, len(rows), BLOCK_ROWS):
        block = rows[begin : begin + BLOCK_ROWS]
        apart = block @ (-2 * centres.T) + (centres * centres).sum(axis=1)
        nearest, one = apart.argmin(axis=1), np.ones(len(block))
        inertia = apart.min(axis=1) + (block * block).sum(axis=1)
        yield from zip(
            nearest.tolist(), np.column_stack([block, one, inertia]).tolist(), strict=True
        )


def added(one: list[float], other: list[float]) -> list[float]:
    return [here + more for here, more in zip(one, other, strict=True)]


def added_up(values: Iterable[list[float]]) -> list[float]:
    return functools.reduce(added, values)


def begin(task: Task) -> Callable[[], Array]:
    how = sys.argv[2]
    properties = SparkConf().setAppName("reduce_peers").setMaster(f"local[{task.workers}]")
    properties.set("spark.local.dir", task.scratch)
    properties.set("spark.hadoop.fs.s3a.endpoint", task.endpoint)
    spark = SparkContext(conf=properties)
    job = job_of(task)
    folder = task.keys[0].rpartition("/")[0]

    def objects() -> Any:
        found = spark.binaryFiles(f"s3a://{task.bucket}/{folder}/*.bin", task.objects)
        return found.map(lambda named: task.rows(named[1]))

    def one_round(known: Any) -> Partial:
        told = spark.broadcast(known)
        if how == "s3a":
            partials = objects().map(lambda rows: job.local(rows, told.value))
        else:
            partials = spark.parallelize(task.keys, task.objects).mapPartitions(
                lambda keys: [kept(task).reduced(job, list(keys), told.value)]
            )
        whole: Partial = partials.treeReduce(job.merge, 2)
        told.destroy()
        return whole

    def by_pairs(known: Any) -> Partial:
        centres = np.fromfile(task.centres).reshape(task.k, task.columns)
        pairs = objects().flatMap(lambda rows: pairs_of(rows, centres))
        if how == "pairs":
            summed = pairs.reduceByKey(added, task.workers)
        else:
            summed = pairs.groupByKey(task.workers).mapValues(added_up)
        sums, counts, inertia = np.zeros(centres.shape), np.zeros(task.k), 0.0
        for number, (*point, count, apart) in summed.collect():
            sums[number], counts[number], inertia = point, count, inertia + apart
        return sums, counts, inertia

    if how.startswith("pairs"):
        assert isinstance(job, KMeans), "pairs are of k-means"
        return lambda: in_rounds(job, by_pairs)
    return lambda: in_rounds(job, one_round)


if __name__ == "__main__":
    serve(begin)
