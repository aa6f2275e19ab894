"""The sort benchmark's records in the order of their keys, by functions.

    tonnage gensort 1000000 records
    tonnage run mapreduce examples/sort.py:JOB records --input-format records:100 \\
        --output sorted --scratch /tmp

`tonnage run sort` does the same far faster, since it knows what a record is.
"""

import pyarrow as pa
import pyarrow.compute as pc

from tonnage import MapReduce


def keyed(batch: pa.RecordBatch) -> pa.RecordBatch:
    record = batch.column("record").cast(pa.binary())
    return pa.record_batch({"key": pc.binary_slice(record, 0, 10), "record": record})


JOB = MapReduce(map=keyed, ordered=True)  # and no reduce: rows are left as they are
