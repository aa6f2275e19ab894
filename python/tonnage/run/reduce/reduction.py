"""A reduction as its user writes it, in full or of aggregates, which know how to begin and merge.

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

from abc import ABC, abstractmethod
from types import SimpleNamespace
from typing import Any, Generic, TypeVar

from tonnage.api.aggregates import Aggregate
from tonnage.run.formats import Rows

ReductionObject = TypeVar("ReductionObject")
"""The reduction object: NumPy arrays in named fields, or anything else that can be pickled."""


class Reduction(ABC, Generic[ReductionObject]):
    """How to reduce rows, in any order and on any number of nodes.

    Each worker begins with an empty object and reduces chunk after chunk into it; then objects are
    merged in any order. So the result must not depend on which rows were together:
    `tonnage.testing.check_reduction` checks that.
    """

    def allow(self, memory_bytes: int, workers: int) -> int:
        """The memory that chunks may use of ``memory_bytes`` on a node; by default all.

        ``workers`` threads reduce, each into an object of its own.
        """
        return memory_bytes

    @abstractmethod
    def begin(self, known: Any) -> ReductionObject:
        """An empty reduction object; ``known`` is the previous round's result, or ``None``."""

    @abstractmethod
    def local(self, rows: Rows, into: ReductionObject) -> ReductionObject:
        """Reduce the rows of a chunk, or some of them, into an object; return that or another one.

        Args:
            rows: A `pyarrow.RecordBatch`; or, if rows have a fixed width, a read-only NumPy array,
                (rows, columns) or structured. `as_points` makes either an array of numbers. The
                next chunk reuses their memory: copy what you keep.
            into: The object.
        """

    @abstractmethod
    def merge(self, one: ReductionObject, other: ReductionObject) -> ReductionObject:
        """Merge two objects; either may be changed and returned."""

    def finish(self, whole: ReductionObject, known: Any) -> Any:
        """A round's result, from the object of all rows; by default that object."""
        return whole

    def summary(self, result: Any) -> Any:
        """The part of the result that is recorded; by default all."""
        return result

    def until(self, result: Any, known: Any, rounds: int) -> bool:
        """Whether this was the last of ``rounds`` rounds; by default the first is.

        ``known`` is the previous round's result.
        """
        return True


class AggregateReduction(Reduction[SimpleNamespace]):
    """A reduction that only needs ``local``.

    Its aggregates are attributes of the class or of the instance. Each reduction object has its own
    under the same names, and the result has their values::

        class Requests(AggregateReduction):
            rows, slowest, users = Sum(), Top(10), Distinct()

            def local(self, rows, into):
                into.rows.add(len(rows))
                into.slowest.add(rows["seconds"])
                into.users.add(rows["user"])
                return into
    """

    def begin(self, known: Any) -> SimpleNamespace:
        """Empty aggregates; other fields that an override adds are not merged."""
        return SimpleNamespace(**{name: each.empty() for name, each in self._aggregates.items()})

    def merge(self, one: SimpleNamespace, other: SimpleNamespace) -> SimpleNamespace:
        """Merge aggregates of the same name."""
        for name in self._aggregates:
            getattr(one, name).merge(getattr(other, name))
        return one

    def finish(self, whole: SimpleNamespace, known: Any) -> Any:
        """Return the values by name."""
        return {name: getattr(whole, name).value for name in self._aggregates}

    @property
    def _aggregates(self) -> dict[str, Aggregate]:
        held = {
            name: each for of in reversed(type(self).__mro__) for name, each in vars(of).items()
        }
        held |= vars(self)
        return {name: each for name, each in held.items() if isinstance(each, Aggregate)}
