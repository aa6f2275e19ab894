"""A machine's agent in a reduction: does steps, and is given chunks while one is under way.

Who computes moves nothing, and does not hang (`tonnage.run.reduce.compute_flag`): that the agent answers
meanwhile, from another thread, is enough.
"""

from __future__ import annotations

from collections.abc import Sequence

from tonnage.cluster.step_worker import Heartbeat, StepWorker
from tonnage.run.reduce.cluster.worker import ReduceWorker
from tonnage.run.reduce.local_round import NumberedChunk


class ReduceStepWorker(StepWorker):
    """Does the steps of a reduction."""

    def tell(self, known: int, seconds: float) -> Heartbeat:
        """How far it is (`Sorter.tell`); it moves as long as somebody computes."""
        self._moved = max(self._moved, self._part.compute_flag.last_active)
        return super().tell(known, seconds)

    def more(self, step: int, start: int, chunks: Sequence[NumberedChunk], last: bool) -> None:
        """Takes chunks for a step, if that is under way (`ReduceSite.more`)."""
        if step == self._number:
            self._part.more(start, chunks, last)

    def give_back(self, step: int, chunks: int) -> None:
        """Gives so many chunks of a step back, if that is under way (`ReduceSite.give_back`)."""
        if step == self._number:
            self._part.give_back(chunks)

    def join(self, attempt: int, other: bytes) -> None:
        """Takes another one's object, to be merged."""
        self._part.join(attempt, other)

    def held(self, attempt: int) -> bytes:
        """Its object, merged with those that it was given before."""
        return self._part.held(attempt)

    @property
    def _part(self) -> ReduceWorker:
        assert isinstance(self._site, ReduceWorker)
        return self._site
