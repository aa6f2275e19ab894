"""What to reduce and how: the same for one machine and for a cluster."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tonnage.run.reduce.chunk_pool import SELECTIVE
from tonnage.run.reduce.reduction import Reduction
from tonnage.run.reduce.sampling import FromSample
from tonnage.run.storage.object_store import ObjectStoreOptions


@dataclass(frozen=True, kw_only=True)
class ReduceSpec:
    """A reduction, its input and its settings.

    Attributes:
        reduction: What to do with the rows, or what makes it from a sample of them.
        named: Its name and settings, for the record.
        inputs: Paths and urls; on a cluster ``{node}`` in a path is the node's name.
        memory_bytes: For chunks, on each node.
        workers: Threads that reduce, on each node; by default one for each core.
        chunk_bytes: Approximate size of a chunk; by default the index's, else by the input's size.
        format: Of the files; by default by their names.
        dtype: Of a row, if rows have a fixed width.
        measured: How many concurrent requests sufficed when the store was measured.
    """

    reduction: Reduction[Any] | FromSample
    named: tuple[str, Mapping[str, Any]]
    inputs: Sequence[str]
    memory_bytes: int
    workers: int | None = None
    chunk_bytes: int | None = None
    format: str | None = None
    dtype: str | None = None
    assignment: str = SELECTIVE
    object_store: ObjectStoreOptions = field(default_factory=ObjectStoreOptions)
    measured: int | None = None
    command: list[str]
