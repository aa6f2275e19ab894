"""List the documents that contain each word; documents have the columns ``id`` and ``text``."""

import pyarrow as pa
import pyarrow.compute as pc

from tonnage import MapReduce


def words(documents: pa.RecordBatch) -> pa.RecordBatch:
    split = pc.utf8_split_whitespace(pc.utf8_lower(documents.column("text")))
    document = documents.column("id").take(pc.list_parent_indices(split))
    return once(pa.record_batch({"key": pc.list_flatten(split), "document": document}))


def once(batch: pa.RecordBatch) -> pa.RecordBatch:
    pairs = pa.table(batch).group_by(["key", "document"], use_threads=False)
    return pairs.aggregate([]).combine_chunks()


def postings(batch: pa.RecordBatch) -> pa.RecordBatch:
    table = pa.table(once(batch)).sort_by([("key", "ascending"), ("document", "ascending")])
    lists = table.group_by("key", use_threads=False).aggregate([("document", "list")])
    return lists.rename_columns({"key": "word", "document_list": "documents"}).combine_chunks()


JOB = MapReduce(map=words, combine=once, reduce=postings)
