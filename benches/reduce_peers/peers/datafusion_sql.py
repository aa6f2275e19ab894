"""DataFusion: the jobs in SQL, over the same rows as Parquet, which it reads from the store itself.

It does not read raw numbers, so it has other objects: uncompressed Parquet.
"""

from __future__ import annotations

import os
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from datafusion import SessionConfig, SessionContext
from datafusion.object_store import AmazonS3
from task import EDGES, Task, serve

Array = npt.NDArray[np.float64]


class Query:
    """A session that knows the rows as the table ``rows``."""

    def __init__(self, task: Task) -> None:
        self.task = task
        self.session = SessionContext(SessionConfig().with_target_partitions(task.workers))
        store = AmazonS3(
            bucket_name=task.bucket,
            endpoint=task.endpoint,
            region=os.environ["AWS_REGION"],
            access_key_id=os.environ["AWS_ACCESS_KEY_ID"],
            secret_access_key=os.environ["AWS_SECRET_ACCESS_KEY"],
            allow_http=True,
        )
        self.session.register_object_store("s3://", store, task.bucket)
        folder = task.parquet[0].rpartition("/")[0]
        self.session.register_parquet("rows", f"s3://{task.bucket}/{folder}/")

    def columns(self, text: str) -> list[Array]:
        """Run a query; return its columns."""
        batches = self.session.sql(text).collect()
        table = pa.Table.from_batches(batches)
        return [each.to_numpy() for each in table.columns]


def kmeans(query: Query) -> Array:
    task = query.task
    centres = np.fromfile(task.centres).reshape(task.k, task.columns)
    names = [f"x{each}" for each in range(task.columns)]
    apart = ", ".join(
        " + ".join(f"(x{at} - ({to!r})) * (x{at} - ({to!r}))" for at, to in enumerate(centre))
        + f" AS d{number}"
        for number, centre in enumerate(centres.tolist())
    )
    distances = [f"d{number}" for number in range(task.k)]
    nearest = " ".join(f"WHEN d{number} = least THEN {number}" for number in range(task.k))
    means = ", ".join(f"avg({name})" for name in names)
    text = f"""
        SELECT nearest, {means}, count(*), sum(least) FROM (
            SELECT {", ".join(names)}, least, CASE {nearest} END AS nearest FROM (
                SELECT *, least({", ".join(distances)}) AS least FROM (
                    SELECT {", ".join(names)}, {apart} FROM rows)))
        GROUP BY nearest"""
    number, *found, counts, inertia = query.columns(text)
    centres[number] = np.stack(found, axis=1)
    rows = np.zeros(task.k)
    rows[number] = counts
    return np.concatenate([centres.ravel(), rows, [inertia.sum()]])


def covariance(query: Query) -> Array:
    columns = range(query.task.columns)
    pairs = [(one, other) for one in columns for other in columns if one <= other]
    asked = [f"avg(x{each})" for each in columns]
    asked += [f"covar_samp(x{one}, x{other})" for one, other in pairs]
    # Columns of a result need different names.
    named = ", ".join(f"{each} AS c{place}" for place, each in enumerate(asked))
    found = np.concatenate(query.columns(f"SELECT {named} FROM rows"))
    mean, upper = found[: len(columns)], found[len(columns) :]
    whole = np.zeros((len(columns), len(columns)))
    for (one, other), value in zip(pairs, upper, strict=True):
        whole[one, other] = whole[other, one] = value
    return np.concatenate([mean, whole.ravel()])


def histogram(query: Query) -> Array:
    task, scale = query.task, query.task.bins / (query.task.high - query.task.low)
    counts = np.zeros((task.columns, task.bins))
    for column in range(task.columns):
        place = f"floor((x{column} - ({task.low})) * {scale})"
        bins, found = query.columns(
            f"SELECT greatest(0, least({task.bins - 1}, CAST({place} AS BIGINT))) AS bin, count(*) "
            "FROM rows GROUP BY bin"
        )
        counts[column, bins] = found
    return counts.ravel()


def pagerank(query: Query) -> Array:
    task, number = query.task, np.arange(query.task.nodes, dtype=np.int32)

    def by_node(text: str) -> Array:
        nodes, found = query.columns(text)
        whole = np.zeros(task.nodes)
        whole[nodes] = found
        return whole

    out = by_node("SELECT origin, count(*) FROM rows GROUP BY origin")
    ranks = np.full(task.nodes, 1 / task.nodes)
    for _ in range(task.rounds):
        shares = pa.record_batch({"node": number, "share": ranks / np.maximum(out, 1)})
        query.session.register_record_batches("shares", [[shares]])
        given = by_node(
            "SELECT target, sum(share) FROM rows JOIN shares ON origin = node GROUP BY target"
        )
        query.session.deregister_table("shares")
        given += ranks[out == 0].sum() / task.nodes
        ranks = (1 - task.damping) / task.nodes + task.damping * given
    return ranks


def begin(task: Task) -> Callable[[], Array]:
    job = {"kmeans": kmeans, "covariance": covariance, "histogram": histogram, EDGES: pagerank}
    query = Query(task)
    return lambda: job[task.job](query)


if __name__ == "__main__":
    serve(begin)
