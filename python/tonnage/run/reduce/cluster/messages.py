"""What the driver of a reduction asks of its workers, and what they answer: its steps.

Indexes, reductions and their objects are bytes: an index as it is on file, the others pickled.
"""

from types import NoneType

from tonnage.base.records import Phase
from tonnage.cluster.protocol import Message, Step
from tonnage.run.reduce.local_round import NumberedChunk
from tonnage.run.two_pass.messages import RequestTotals
from tonnage.run.two_pass.splits import FileId


class FindChunks(Message, frozen=True):
    """Find the chunks of the node's input, and of these urls."""

    urls: list[str]
    nodes: int


class ChunksFound(Message, frozen=True):
    index: bytes | None
    files: list[FileId]
    absent: list[str]
    workers: int


class SampleRows(Message, frozen=True):
    index: bytes
    rows: int


class RowsSampled(Message, frozen=True):
    """Rows, pickled."""

    rows: bytes


class Learn(Message, frozen=True):
    """Take what is the same in all rounds."""

    reduction: bytes
    index: bytes
    chunk_bytes: int
    checkpoint_bytes: int
    """The longest object that is sent before the end of a step."""


class Reduce(Message, frozen=True):
    """Reduce chunks of a round: these, and those that arrive later (`MoreChunks`)."""

    round: int
    known: bytes
    chunks: list[NumberedChunk]
    last: bool


class ThreadReport(Message, frozen=True):
    """What a thread did (`local_round.WorkerStats`)."""

    chunks: int
    bytes: int
    rows: int
    retrieval_seconds: float
    processing_seconds: float
    synchronisation_seconds: float


class ReduceResult(Message, frozen=True):
    chunks: list[int]
    workers: list[ThreadReport]
    requests: RequestTotals
    phases: list[Phase]
    threads: int
    why: str


class Merge(Message, frozen=True):
    """Merge the node's own objects, or their merged object, with those received since."""

    attempt: int


class Merged(Message, frozen=True):
    """The length of the merged object."""

    bytes: int


class ChunksArrived(Message, frozen=True, tag=True):
    """How many chunks have arrived at the node, and whether it knows that no more come."""

    count: int
    last: bool


class ChunkRetrieved(Message, frozen=True, tag=True):
    """A chunk was retrieved; ``ahead`` chunks should wait at the node."""

    number: int
    ahead: int


class ChunksReturned(Message, frozen=True, tag=True):
    numbers: list[int]


class Checkpoint(Message, frozen=True, tag=True):
    """A thread's object so far, with the chunks reduced since its last checkpoint."""

    worker: int
    content: bytes
    chunks: list[int]


class MoreChunks(Message, frozen=True, tag=True):
    """Take chunks, which follow ``start`` others."""

    start: int
    chunks: list[NumberedChunk]
    last: bool


class ReturnChunks(Message, frozen=True, tag=True):
    """Return up to this many chunks that are not retrieved yet."""

    count: int


News = ChunksArrived | ChunkRetrieved | ChunksReturned | Checkpoint
Notice = MoreChunks | ReturnChunks

INDEX = Step("index", FindChunks, ChunksFound)
SAMPLE = Step("sample", SampleRows, RowsSampled)
LEARN = Step("learn", Learn, NoneType)
REDUCE = Step("reduce", Reduce, ReduceResult, news=News, notice=Notice)
MERGE = Step("merge", Merge, Merged)
