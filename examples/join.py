"""Join orders with the names of their users: two inputs, each with its own map.

python examples/join.py users.csv orders.csv joined /tmp
"""

import sys

import pyarrow as pa
import pyarrow.compute as pc

from tonnage import Input, MapReduce


def users(batch: pa.RecordBatch) -> pa.RecordBatch:
    is_user = pa.repeat(True, len(batch))
    return pa.record_batch(
        {"key": batch.column("id"), "name": batch.column("name"), "is_user": is_user}
    )


def orders(batch: pa.RecordBatch) -> pa.RecordBatch:
    return pa.record_batch({"key": batch.column("user"), "cents": batch.column("cents")})


def joined(batch: pa.RecordBatch) -> pa.RecordBatch:
    # Rows have null in the columns of the other input; so may their own names and amounts be.
    table = pa.table(batch)
    left = table.filter(pc.is_valid(table["is_user"])).select(["key", "name"])
    right = table.filter(pc.is_null(table["is_user"])).select(["key", "cents"])
    return right.join(left, "key", join_type="inner").combine_chunks()


JOB = MapReduce(reduce=joined)

if __name__ == "__main__":
    users_csv, orders_csv, output, scratch = sys.argv[1:]
    JOB.run([Input(users_csv, map=users), Input(orders_csv, map=orders)], output, scratch)
