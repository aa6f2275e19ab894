"""A reduction as its user writes it.

::

    class Mean(Reduction):
        def begin(self, known):
            return {"sum": np.zeros(8), "rows": 0}

        def local(self, rows, into):
            into["sum"] += rows.sum(axis=0)
            into["rows"] += len(rows)
            return into

        def merge(self, one, other):
            return {name: one[name] + other[name] for name in one}

        def finish(self, whole, known):
            return whole["sum"] / whole["rows"]
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Generic, TypeVar

from tonnage.run.formats import Rows

Whole = TypeVar("Whole")
"""The reduction object: NumPy arrays in named fields, or anything that can be pickled."""


class Reduction(ABC, Generic[Whole]):
    """What is done with rows, in whatever order they come, on however many machines.

    Each worker begins with an empty object and reduces one chunk after another into it; objects are
    merged in no particular order. So what comes out must not depend on which rows were together:
    `tonnage.api.testing.check_reduction` says whether it does.
    """

    def allow(self, memory_bytes: int, workers: int) -> int:
        """Told on each machine how much memory there is; gives what chunks may have, usually all.

        Args:
            memory_bytes: ``--memory``.
            workers: Threads that reduce, each into an object of its own.
        """
        return memory_bytes

    @abstractmethod
    def begin(self, known: Any) -> Whole:
        """An empty reduction object.

        Args:
            known: What the round before has finished with; ``None`` in the first.
        """

    @abstractmethod
    def local(self, rows: Rows, into: Whole) -> Whole:
        """Reduces rows into an object; gives the object, the same or another one.

        Args:
            rows: Of a chunk: a NumPy array, (rows, columns) or of a structured type, that is not
                writable, where rows have a size; else a `pyarrow.RecordBatch`. `as_points` makes
                either an array of numbers. Their memory is wanted for the next chunk: what
                is kept of them has to be a copy.
            into: The object.
        """

    @abstractmethod
    def merge(self, one: Whole, other: Whole) -> Whole:
        """Both objects in one; either may be used for it."""

    def finish(self, whole: Whole, known: Any) -> Any:
        """What a round comes to; by default the object itself.

        Args:
            whole: Of all rows.
            known: What the round before has finished with.
        """
        return whole

    def summary(self, result: Any) -> Any:
        """What a record tells of the result; by default all."""
        return result

    def until(self, result: Any, known: Any, rounds: int) -> bool:
        """Whether that was the last round; by default the first is.

        Args:
            result: What it came to.
            known: What the one before did.
            rounds: How many there were.
        """
        return True
