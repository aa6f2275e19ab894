"""The MapReduce of the matrix: half of the records pass, each with most of its bytes."""

import pyarrow as pa
import pyarrow.compute as pc

from tonnage import MapReduce


def half(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Keep records whose key begins with a byte below 128; keys are uniformly random."""
    record = batch.column("record").cast(pa.binary())
    kept = record.filter(pc.less(pc.binary_slice(record, 0, 1), pa.scalar(b"\x80")))
    return pa.record_batch(
        {"key": pc.binary_slice(kept, 0, 10), "rest": pc.binary_slice(kept, 10, 76)}
    )


JOB = MapReduce(map=half)
