"""Percent and time left on standard error, for anything that takes longer than a moment."""

from __future__ import annotations

import sys
import time
from typing import Any

SHOW_AFTER_SECONDS = 1.0
"""Progress is shown on anything that takes longer than this."""
PLAIN_EVERY_SECONDS = 5.0
"""How often a line is written where standard error is no terminal."""


class Progress:
    """A bar on a terminal, else a line now and then.

    Used as a context manager around one job, which moves a known number of bytes, or runs for a
    known time, or does one after the other::

        with Progress("sorting", total_bytes) as progress:
            run("sort", config, progress)

    Of a job that does a number of things, how many there are is told with each call.

    Args:
        label: What is being done.
        total_bytes: How much is to be moved at the speed that shows.
        total_seconds: For how long it goes on when these bytes are moved, at most.
    """

    def __init__(self, label: str, total_bytes: int = 0, total_seconds: float = 0.0) -> None:
        self._label, self._step = label, ""
        self._whole, self._seconds = total_bytes, total_seconds
        self._began = 0.0
        self._bytes_until = 0.0  # the last moment at which some were missing
        self._next_line = SHOW_AFTER_SECONDS
        self._first: int | None = None
        self._number, self._round_began = 0, 0.0
        self._before: int | None = None
        """Bytes of the rounds before, of which nobody knows how many there will be."""
        self._bar: Any = None
        self._task: Any = None

    def __enter__(self) -> Progress:
        self._began = time.monotonic()
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def __call__(self, done: int, things: int | None = None) -> None:
        """Shows that ``done`` bytes are done, or so many of a number of ``things``."""
        self._whole = self._whole if things is None else things
        passed = time.monotonic() - self._began
        left = self._left(done, passed)
        if passed < self._next_line:
            return
        share = 0.0 if left is None else passed / (passed + left)
        of_round = "" if self._before is None else " of this round"
        if self._before is not None and self._whole > self._before:
            share = (done - self._before) / (self._whole - self._before)
        if things is not None:
            rate = f"{done} of {things},"
        elif self._seconds:
            # What moves differs from trial to trial: a mean over them is no rate of anything.
            rate = "at most"
        else:
            rate = f"{done / passed / 1e6:.0f} MB/s,"
        said = (
            f"{share:.0%}, {rate} {left:.0f} s left{of_round}"
            if left is not None
            else "time left unknown"
        )
        if sys.stderr.isatty():
            self._show_bar(share, said)
        else:
            self._next_line = passed + PLAIN_EVERY_SECONDS
            print(f"{self._name}: {said}", file=sys.stderr)

    def update(self, done: int, total: int) -> None:
        """Shows that ``done`` bytes are done, of a number that is known by now."""
        self._whole = total
        self(done)

    def update_round(self, number: int, most: int | None, done: int, total: int) -> None:
        """Shows that ``done`` of ``total`` bytes of a round are done.

        Args:
            number: Of the round, from 1 on; the first that is told may be another one.
            most: How many rounds there are at most: then time left is that of all of them, else it
                is of this one.
            done: Bytes.
            total: Bytes of each round.
        """
        now = time.monotonic()
        if self._first is None:
            self._first, self._began = number, now
        before = (number - self._first) * total
        if number != self._number:
            self._number, self._round_began = number, now
        named = f"round {number}" + ("" if most is None else f" of {most} at most")
        self._step = "" if most == 1 else named
        if most is None:
            self._whole, self._before = before + total, before
        else:
            self._whole = (most - self._first + 1) * total
        self(before + done)

    def _left(self, done: int, passed: float) -> float | None:
        """Seconds left: for what is missing as fast as so far, then the set time; if known."""
        if self._before is not None and done < self._whole:
            passed, here = time.monotonic() - self._round_began, done - self._before
            return passed * (self._whole - done) / here if here else None
        if done >= self._whole:
            return max(self._seconds - (passed - self._bytes_until), 0.0)
        self._bytes_until = passed
        return passed * (self._whole - done) / done + self._seconds if done else None

    @property
    def _name(self) -> str:
        return f"{self._label}, {self._step}" if self._step else self._label

    def _show_bar(self, share: float, said: str) -> None:
        if self._bar is None:
            # Imported when first shown: most commands end before they have anything to show.
            from rich.console import Console
            from rich.progress import BarColumn, TextColumn
            from rich.progress import Progress as Bar

            self._bar = Bar(
                TextColumn("{task.description}"),
                BarColumn(),
                TextColumn("{task.fields[said]}"),
                console=Console(stderr=True),
                transient=True,
                # What goes to a file is not for the terminal.
                redirect_stdout=sys.stdout.isatty(),
            )
            self._bar.start()
            self._task = self._bar.add_task(self._name, total=1.0, said=said)
        self._bar.update(self._task, description=self._name, completed=share, said=said)
