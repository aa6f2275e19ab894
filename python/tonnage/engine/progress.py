"""Rate, percent and time left on standard error, for anything that takes longer than a moment."""

from __future__ import annotations

import sys
from typing import Any

SHOW_AFTER_SECONDS = 1.0
"""Progress is shown on anything that takes longer than this."""
PLAIN_EVERY_SECONDS = 5.0
"""How often a line is written where standard error is no terminal."""


class Progress:
    """A bar on a terminal, else a line now and then.

    Used as a context manager around one job::

        with Progress("sorting", total_bytes) as progress:
            run("sort", config, progress)
    """

    def __init__(self, label: str, total_bytes: int) -> None:
        self._label = label
        self._total = max(total_bytes, 1)
        self._bar: Any = None
        self._task: Any = None
        self._next_line = SHOW_AFTER_SECONDS

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def __call__(self, done: int, seconds: float) -> None:
        """Shows that ``done`` bytes are done after ``seconds``."""
        if seconds < self._next_line:
            return
        if sys.stderr.isatty():
            self._show_bar(done)
        else:
            self._next_line = seconds + PLAIN_EVERY_SECONDS
            share = min(done / self._total, 1.0)
            left = f"{seconds / share - seconds:.0f} s left" if share else "time left unknown"
            rate = done / seconds / 1e6
            print(f"{self._label}: {share:.0%}, {rate:.0f} MB/s, {left}", file=sys.stderr)

    def _show_bar(self, done: int) -> None:
        if self._bar is None:
            # Imported when first shown: most commands end before they have anything to show.
            from rich.console import Console
            from rich.progress import (
                BarColumn,
                TaskProgressColumn,
                TextColumn,
                TimeRemainingColumn,
                TransferSpeedColumn,
            )
            from rich.progress import Progress as Bar

            self._bar = Bar(
                TextColumn("{task.description}"),
                BarColumn(),
                TaskProgressColumn(),
                TransferSpeedColumn(),
                TimeRemainingColumn(),
                console=Console(stderr=True),
                transient=True,
            )
            self._bar.start()
            self._task = self._bar.add_task(self._label, total=self._total)
        self._bar.update(self._task, completed=min(done, self._total))
