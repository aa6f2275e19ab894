"""All nodes in one view: a table that lives on a terminal, else a line now and then.

Rates are what nodes moved in the last seconds, as they tell it; no result is made of them.
"""

from __future__ import annotations

import sys
import time
from collections import deque
from collections.abc import Sequence
from typing import Any

from tonnage import words
from tonnage.engine.progress import PLAIN_EVERY_SECONDS, SHOW_AFTER_SECONDS
from tonnage.fleet.measuring import Row

LIVE_EVERY_SECONDS = 0.25
OVER_SECONDS = 3.0
"""Rates are over so long."""


class View:
    """Shows rows; a context manager around one measurement.

    Args:
        label: What is being done.
    """

    def __init__(self, label: str) -> None:
        self._label = label
        self._began = time.monotonic()
        self._next_line = SHOW_AFTER_SECONDS
        self._seen: dict[str, deque[tuple[float, int]]] = {}
        self._live: Any = None

    def __enter__(self) -> View:
        return self

    def __exit__(self, *_: object) -> None:
        if self._live is not None:
            self._live.stop()

    def __call__(self, rows: Sequence[Row]) -> None:
        """Shows how far all nodes are."""
        now = time.monotonic()
        rates = {row.node: self._rate(row, now) for row in rows}
        if now - self._began < self._next_line:
            return
        if sys.stderr.isatty():
            self._next_line = now - self._began + LIVE_EVERY_SECONDS
            self._show(rows, rates)
        else:
            self._next_line = now - self._began + PLAIN_EVERY_SECONDS
            print(f"{self._label}: {in_line(rows, rates)}", file=sys.stderr, flush=True)

    def _rate(self, row: Row, now: float) -> float:
        """Bytes a second lately; of a node that does not measure, none."""
        if row.state != "measuring":
            return 0.0
        seen = self._seen.setdefault(row.node, deque())
        if seen and row.done_bytes < seen[-1][1]:
            seen.clear()  # Another trial.
        seen.append((now, row.done_bytes))
        while len(seen) > 2 and now - seen[1][0] >= OVER_SECONDS:
            seen.popleft()
        passed = now - seen[0][0]
        return (row.done_bytes - seen[0][1]) / passed if passed else 0.0

    def _show(self, rows: Sequence[Row], rates: dict[str, float]) -> None:
        from rich.console import Console
        from rich.live import Live

        if self._live is None:
            self._live = Live(
                console=Console(stderr=True),
                transient=True,
                auto_refresh=False,
                # What goes to a file is not for the terminal.
                redirect_stdout=sys.stdout.isatty(),
            )
            self._live.start()
        self._live.update(_table(rows, rates), refresh=True)


def in_line(rows: Sequence[Row], rates: dict[str, float]) -> str:
    """All nodes in a line: how many are how far, and what they move."""
    counts: dict[str, int] = {}
    for row in rows:
        counts[row.state] = counts.get(row.state, 0) + 1
    parts = [f"{words.several(len(rows), 'node')}: "]
    parts[0] += words.listing(f"{count} {state}" for state, count in counts.items())
    moving = {row.node: rates[row.node] for row in rows if row.state == "measuring"}
    if moving:
        slowest = min(moving, key=lambda node: (moving[node], node))
        parts.append(f"{words.rate(sum(moving.values()))} together")
        parts.append(f"slowest {slowest} {words.rate(moving[slowest])}")
    parts.append(words.several(sum(row.trials for row in rows), "trial"))
    return "; ".join(parts)


def _table(rows: Sequence[Row], rates: dict[str, float]) -> Any:
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False)
    for heading, justify in (("node", "left"), ("", "left"), ("trials", "right"), ("", "right")):
        table.add_column(heading, justify=justify)  # type: ignore[arg-type]
    for row in rows:
        rate = words.rate(rates[row.node]) if row.state == "measuring" else row.why or ""
        # A node's name is nobody's markup.
        table.add_row(*map(Text, (row.node, row.state, str(row.trials), rate)))
    return table
