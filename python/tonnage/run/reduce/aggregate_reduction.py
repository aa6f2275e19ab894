"""A reduction whose object is made of combinations, which know how to begin and to merge."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from tonnage.api.aggregates import Aggregate
from tonnage.run.reduce.reduction import Reduction


class AggregateReduction(Reduction[SimpleNamespace]):
    """A reduction of which only ``local`` is to be written.

    Its combinations stand in the class, or are set when it is made; each object has its own, under
    the same names, and the result their values::

        class Requests(Combined):
            rows, slowest, users = Sum(), Top(10), Distinct()

            def local(self, rows, into):
                into.rows.add(len(rows))
                into.slowest.add(rows["seconds"])
                into.users.add(rows["user"])
                return into
    """

    def begin(self, known: Any) -> SimpleNamespace:
        """Empty ones. What else a ``begin`` of one's own adds is not merged."""
        return SimpleNamespace(**{name: each.empty() for name, each in self._aggregates.items()})

    def merge(self, one: SimpleNamespace, other: SimpleNamespace) -> SimpleNamespace:
        """Each with the other's of its name."""
        for name in self._aggregates:
            getattr(one, name).merge(getattr(other, name))
        return one

    def finish(self, whole: SimpleNamespace, known: Any) -> Any:
        """Their values, by their names."""
        return {name: getattr(whole, name).value for name in self._aggregates}

    @property
    def _aggregates(self) -> dict[str, Aggregate]:
        """Those of the class, of what it inherits from, and its own."""
        held = {
            name: each for of in reversed(type(self).__mro__) for name, each in vars(of).items()
        }
        held |= vars(self)
        return {name: each for name, each in held.items() if isinstance(each, Aggregate)}
