"""A machine's agent in a reduction: does steps, and is given chunks while one is under way."""

from __future__ import annotations

from collections.abc import Sequence

from tonnage.fleet.reduce.site import ReduceSite
from tonnage.fleet.sorter import Ended, Sorter
from tonnage.run.reduce.round import Numbered


class Reducer(Sorter):
    """Does the steps of a reduction."""

    def more(self, step: int, start: int, chunks: Sequence[Numbered], last: bool) -> None:
        """Takes chunks for a step, if that is under way (`ReduceSite.more`)."""
        if step == self._number:
            self._part.more(start, chunks, last)

    def give_back(self, step: int, chunks: int) -> None:
        """Gives so many chunks of a step back, if that is under way (`ReduceSite.give_back`)."""
        if step == self._number:
            self._part.give_back(chunks)

    def join(self, attempt: int, other: bytes | Ended) -> None:
        """Takes another one's object."""
        self._part.join(attempt, other)

    def held(self, attempt: int) -> bytes | Ended:
        """Its object, merged with those that it was given."""
        return self._part.held(attempt)

    @property
    def _part(self) -> ReduceSite:
        assert isinstance(self._site, ReduceSite)
        return self._site
