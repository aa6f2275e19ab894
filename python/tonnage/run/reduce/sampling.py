"""Some rows of an input, spread evenly: what first centres are drawn of."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from tonnage.base import core
from tonnage.run.formats import Rows
from tonnage.run.formats.format import to_batch
from tonnage.run.reduce.index import Index
from tonnage.run.reduce.reduction import Reduction
from tonnage.run.storage.object_store import ObjectStoreOptions
from tonnage.run.storage.sources import Sources
from tonnage.run.user_errors import describe_chunk, user_code

SAMPLED_CHUNKS = 16


def sample_rows(
    index: Index,
    object_store: ObjectStoreOptions,
    count: int,
    look: Callable[[int], None] = lambda _: None,
) -> Rows:
    """Some rows: of the beginnings of chunks that are spread evenly.

    Args:
        index: What there is.
        volumes: How stores are reached.
        count: About how many.
        look: Called with of how many chunks there are some.

    Raises:
        UsageError: There are none.
        RunError: They are not what they should be.
    """
    sources, chunks = Sources(object_store, 1), [each for each in index.chunks if each.bytes]
    if not chunks:
        raise core.UsageError("the inputs hold no rows")
    some = chunks[:: max(len(chunks) // SAMPLED_CHUNKS, 1)]
    each = max(count // len(some), 1)
    found: list[Any] = []
    for chunk in some:
        file, part = index.files[chunk.file], index.format.first_rows(chunk, each)
        with sources.open(file) as opened:
            opened.seek(part.offset)
            data = opened.read(part.bytes)
        with user_code("rows", describe_chunk(file, part)):
            rows = index.format.decode(data, file, part, sources)
        # Copies: a part of a chunk would keep all of it.
        if isinstance(rows, np.ndarray):
            found.append(rows[:each].copy())
        else:
            found.append(rows.take(np.arange(min(each, len(rows)))))
        look(len(found))
    if isinstance(found[0], np.ndarray):
        return np.concatenate(found)
    return to_batch(pa.Table.from_batches(found))


@dataclass(frozen=True)
class FromSample:
    """A reduction that is made of some rows of its input, as k-means is of its first centres.

    Attributes:
        rows: How many.
        make: What makes it of them.
    """

    rows: int
    make: Callable[[Rows], Reduction[Any]]
