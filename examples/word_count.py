"""Count the words in text files.

    tonnage run mapreduce examples/word_count.py:JOB books/ --input-format lines \\
        --output counts --scratch /tmp

`combine` adds up the counts that a thread has gathered before they are moved.
"""

import pyarrow as pa
import pyarrow.compute as pc

from tonnage import MapReduce, sums


def words(batch: pa.RecordBatch) -> pa.RecordBatch:
    found = pc.list_flatten(pc.utf8_split_whitespace(pc.utf8_lower(batch.column("line"))))
    found = found.filter(pc.not_equal(found, ""))
    return pa.record_batch({"key": found, "n": pa.repeat(1, len(found))})


JOB = MapReduce(map=words, combine=sums("n"), reduce=sums("n"))
