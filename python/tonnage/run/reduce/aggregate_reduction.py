"""A reduction whose object consists of aggregates, which know how to begin and to merge."""

from types import SimpleNamespace
from typing import Any

from tonnage.api.aggregates import Aggregate
from tonnage.run.reduce.reduction import Reduction


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
