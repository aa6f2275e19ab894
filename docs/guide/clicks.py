"""Generate clicks in object storage; reduce them (`Clicks`), or sum them by page (`PAGES`).

    python clicks.py s3://bucket/clicks

puts 800,000 random clicks into a folder. `Clicks` is a reduction, `PAGES` a MapReduce.
"""

import sys

import boto3
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tonnage import AggregateReduction, MapReduce, sums
from tonnage.api.aggregates import Distinct, Hdr, Sum, Top

OBJECTS, ROWS = 8, 100_000


class Clicks(AggregateReduction):
    clicks, seconds, slowest, users = Sum(), Hdr(0.01), Top(3), Distinct()

    def local(self, rows, into):
        into.clicks.add(rows.num_rows)
        into.seconds.add(rows["seconds"])
        into.slowest.add(rows["seconds"])
        into.users.add(rows["user"])
        return into


def by_page(rows):
    ones = pa.repeat(1, rows.num_rows)
    return pa.record_batch({"page": rows["page"], "clicks": ones, "seconds": rows["seconds"]})


SUMS = sums("clicks", "seconds", key="page")
PAGES = MapReduce(map=by_page, combine=SUMS, reduce=SUMS, key="page")


def put_clicks(folder):
    bucket, _, prefix = folder.removeprefix("s3://").partition("/")
    store, draw = boto3.client("s3"), np.random.default_rng(1)
    for number in range(OBJECTS):
        clicks = pa.table(
            {
                "user": draw.zipf(1.5, ROWS),
                "page": [f"/page/{page}" for page in draw.integers(0, 1000, ROWS)],
                "seconds": draw.lognormal(-2, 1, ROWS),
            }
        )
        content = pa.BufferOutputStream()
        pq.write_table(clicks, content)
        key = f"{prefix.strip('/')}/{number}.parquet"
        store.put_object(Bucket=bucket, Key=key, Body=content.getvalue().to_pybytes())


if __name__ == "__main__":
    put_clicks(sys.argv[1])
