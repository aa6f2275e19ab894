"""Sample rows evenly from an input, for reductions that begin with a sample."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from tonnage.base import core, formatting
from tonnage.run.formats import Rows
from tonnage.run.formats.format import to_batch, with_values
from tonnage.run.reduce.index import Index
from tonnage.run.reduce.reduction import Reduction
from tonnage.run.storage.hive import columns_by_file
from tonnage.run.storage.object_store import ObjectStoreOptions
from tonnage.run.storage.sources import Sources
from tonnage.run.user_errors import describe_chunk, user_code

SAMPLED_CHUNKS = 16


def sample_rows(
    index: Index,
    object_store: ObjectStoreOptions,
    count: int,
    places: Sequence[str] = (),
    on_progress: Callable[[int], None] = lambda _: None,
) -> Rows:
    """About ``count`` rows, from the beginnings of evenly spread chunks.

    ``on_progress`` is called with the number of chunks that were sampled. `UsageError` if there are
    no rows. `RunError` if rows cannot be decoded.
    """
    sources, chunks = Sources(object_store, 1), [each for each in index.chunks if each.bytes]
    if not chunks:
        names = formatting.listing(each.name for each in index.files)
        raise core.UsageError(f"the inputs contain no rows: {names}")
    columns = columns_by_file(places, (file.name for file in index.files))
    some = chunks[:: max(len(chunks) // SAMPLED_CHUNKS, 1)]
    each = max(count // len(some), 1)
    samples: list[Any] = []
    for chunk in some:
        file, part = index.files[chunk.file], index.format.first_rows(chunk, each)
        with sources.open(file) as opened:
            opened.seek(part.offset)
            data = opened.read(part.bytes)
        with user_code("rows", describe_chunk(file, part)):
            rows = next(index.format.pieces(data, file, part, sources))
        rows = with_values(rows, columns[chunk.file])
        # Copies, since a view would keep the whole chunk.
        if isinstance(rows, np.ndarray):
            samples.append(rows[:each].copy())
        else:
            samples.append(rows.take(np.arange(min(each, len(rows)))))
        on_progress(len(samples))
    if isinstance(samples[0], np.ndarray):
        return np.concatenate(samples)
    return to_batch(pa.Table.from_batches(samples))


@dataclass(frozen=True)
class FromSample:
    """A reduction that ``make`` creates from ``rows`` sampled rows, like k-means' first centres."""

    rows: int
    make: Callable[[Rows], Reduction[Any]]
