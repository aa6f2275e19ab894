"""Show percent done and time left on standard error."""

from __future__ import annotations

import sys
import time
from typing import Any

SHOW_AFTER_SECONDS = 1.0
PLAIN_EVERY_SECONDS = 5.0
"""How often a line is written where standard error is not a terminal."""


class Progress:
    """A bar on a terminal, otherwise an occasional line, while a job runs::

        with Progress("sorting", total_bytes) as progress:
            run("sort", config, progress)

    ``total_seconds`` is how long the job continues at most after moving the bytes. A job that
    processes items passes their number with each call.
    """

    def __init__(self, label: str, total_bytes: int = 0, total_seconds: float = 0.0) -> None:
        self._label, self._step = label, ""
        self._total, self._seconds = total_bytes, total_seconds
        self._began = 0.0
        self._bytes_until = 0.0  # the last time at which some were missing
        self._next_line = SHOW_AFTER_SECONDS
        self._first: int | None = None
        self._number, self._round_began = 0, 0.0
        self._earlier: int | None = None
        """Bytes of earlier rounds, where the number of rounds is unknown."""
        self._bar: Any = None
        self._task: Any = None

    def __enter__(self) -> Progress:
        self._began = time.monotonic()
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def __call__(self, done: int, items: int | None = None) -> None:
        """Show that ``done`` bytes, or ``done`` of ``items`` items, are done."""
        self._total = self._total if items is None else items
        passed = time.monotonic() - self._began
        left = self._remaining_seconds(done, passed)
        if passed < self._next_line:
            return
        share = 0.0 if left is None else passed / (passed + left)
        of_round = "" if self._earlier is None else " of this round"
        if self._earlier is not None and self._total > self._earlier:
            share = (done - self._earlier) / (self._total - self._earlier)
        if items is not None:
            rate = f"{done} of {items},"
        elif self._seconds:
            # Trials differ: a mean over them is not a rate of anything.
            rate = "at most"
        else:
            rate = f"{done / passed / 1e6:.0f} MB/s,"
        text = (
            f"{share:.0%}, {rate} {left:.0f} s left{of_round}"
            if left is not None
            else "time left unknown"
        )
        if sys.stderr.isatty():
            self._show_bar(share, text)
        else:
            self._next_line = passed + PLAIN_EVERY_SECONDS
            print(f"{self._name}: {text}", file=sys.stderr)

    def update(self, done: int, total: int) -> None:
        self._total = total
        self(done)

    def update_round(self, number: int, most: int | None, done: int, total: int) -> None:
        """Show that ``done`` of ``total`` bytes of round ``number`` (from 1) are done.

        The time left is that of ``most`` rounds; if their number is unknown, that of this round.
        """
        now = time.monotonic()
        if self._first is None:
            self._first, self._began = number, now
        earlier = (number - self._first) * total
        if number != self._number:
            self._number, self._round_began = number, now
        name = f"round {number}" + ("" if most is None else f" of {most} at most")
        self._step = "" if most == 1 else name
        if most is None:
            self._total, self._earlier = earlier + total, earlier
        else:
            self._total = (most - self._first + 1) * total
        self(earlier + done)

    def _remaining_seconds(self, done: int, passed: float) -> float | None:
        """Seconds left at the rate so far, then the set time; None if unknown."""
        if self._earlier is not None and done < self._total:
            passed, moved = time.monotonic() - self._round_began, done - self._earlier
            return passed * (self._total - done) / moved if moved else None
        if done >= self._total:
            return max(self._seconds - (passed - self._bytes_until), 0.0)
        self._bytes_until = passed
        return passed * (self._total - done) / done + self._seconds if done else None

    @property
    def _name(self) -> str:
        return f"{self._label}, {self._step}" if self._step else self._label

    def _show_bar(self, share: float, text: str) -> None:
        if self._bar is None:
            # Imported when first shown: most commands end before they have anything to show.
            from rich.console import Console
            from rich.progress import BarColumn, TextColumn
            from rich.progress import Progress as Bar

            self._bar = Bar(
                TextColumn("{task.description}"),
                BarColumn(),
                TextColumn("{task.fields[text]}"),
                console=Console(stderr=True),
                transient=True,
                # Leave standard output alone if it goes to a file.
                redirect_stdout=sys.stdout.isatty(),
            )
            self._bar.start()
            self._task = self._bar.add_task(self._name, total=1.0, text=text)
        self._bar.update(self._task, description=self._name, completed=share, text=text)
