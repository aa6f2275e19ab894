"""A reduction on this machine: rounds of chunks that a pool has, until it is enough."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tonnage.run.reduce.chunk_pool import Pool
from tonnage.run.reduce.index import Index
from tonnage.run.reduce.local_round import Machine, Numbered, Round, Settings
from tonnage.run.reduce.reduction import Reduction
from tonnage.run.user_errors import of_user

OnRound = Callable[[int, int, int], None]
"""Called now and then with the number of a round, from 1 on, bytes reduced in it, and those there
are."""


@dataclass(frozen=True)
class Done:
    """What came of a reduction."""

    result: Any
    rounds: int
    seconds: float


class Job:
    """A reduction over chunks that are known.

    Args:
        reduction: What to do.
        index: What there is.
        settings: How.
        on_round: Called with how far it is.
    """

    def __init__(
        self,
        reduction: Reduction[Any],
        index: Index,
        settings: Settings,
        on_round: OnRound = lambda *_: None,
    ) -> None:
        self.index = index
        self.machine = Machine(reduction, index.files, index.format, settings)
        self._on_round = on_round

    def run(self) -> Done:
        """Reduces, until the reduction says that it is enough.

        Raises:
            RunError: What cannot be retrieved, or an object that was changed.
        """
        reduction, known, rounds = self.machine.reduction, None, 0
        began = time.monotonic()
        while True:
            whole = self._round(rounds + 1, known)
            with of_user("finish", f"round {rounds + 1}"):
                result = reduction.finish(whole, known)
            rounds += 1
            with of_user("until", f"round {rounds}"):
                is_over = reduction.until(result, known, rounds)
            if is_over:
                return Done(result, rounds, time.monotonic() - began)
            known = result

    def _round(self, number: int, known: Any) -> Any:
        """All chunks once."""
        machine, whole = self.machine, self.index.bytes
        before = machine.done_bytes
        pool = Pool(
            self.index.chunks,
            machine.settings.assignment,
            len(machine.workers),
            self.index.format.beginning,
        )
        one = Round(machine, known, _Pooled(pool))
        return one.run(lambda: self._on_round(number, machine.done_bytes - before, whole))


class _Pooled:
    """A pool's chunks."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    def next(self) -> Numbered | None:
        number = self._pool.next()
        return None if number is None else (number, self._pool.chunks[number])

    def came(self, number: int) -> None:
        self._pool.done(number)

    @property
    def is_over(self) -> bool:
        return not self._pool.has_more
