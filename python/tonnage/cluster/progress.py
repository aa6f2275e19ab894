"""Progress of all nodes: a live table on a terminal, otherwise an occasional line.

Rates are those of the last seconds, for display only.
"""

from __future__ import annotations

import sys
import time
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from tonnage.base import formatting
from tonnage.base.core.progress import PLAIN_EVERY_SECONDS, SHOW_AFTER_SECONDS
from tonnage.cluster import time_limits


class NodeStatus(NamedTuple):
    node: str
    state: str
    """``starting``, ``ready``, ``measuring``, ``done`` or ``lost``."""
    trials: int
    done_bytes: int
    why: str | None
    waits: bool = False
    """Whether it makes no progress since it waits for others."""


Rates = Mapping[str, float | None]
"""Each node's rate in bytes a second; None while it waits for others."""


class ClusterProgress:
    """Shows the nodes' status; a context manager around one measurement, which the label names."""

    def __init__(self, label: str) -> None:
        self._label = label
        self._began = time.monotonic()
        self._next_line = SHOW_AFTER_SECONDS
        self._seen: dict[str, deque[tuple[float, int]]] = {}
        self._live: Any = None

    def __enter__(self) -> ClusterProgress:
        return self

    def __exit__(self, *_: object) -> None:
        if self._live is not None:
            self._live.stop()

    def __call__(self, rows: Sequence[NodeStatus]) -> None:
        now = time.monotonic()
        rates = {row.node: self._rate(row, now) for row in rows}
        if now - self._began < self._next_line:
            return
        if sys.stderr.isatty():
            self._next_line = now - self._began + time_limits.PROGRESS_LIVE_SECONDS
            self._show(rows, rates)
        else:
            self._next_line = now - self._began + PLAIN_EVERY_SECONDS
            print(f"{self._label}: {in_line(rows, rates)}", file=sys.stderr, flush=True)

    def _rate(self, row: NodeStatus, now: float) -> float | None:
        """Bytes a second lately; None while the node waits for others."""
        if row.state != "measuring" or row.waits:
            self._seen.pop(row.node, None)
            return None
        seen = self._seen.setdefault(row.node, deque())
        if seen and row.done_bytes < seen[-1][1]:
            seen.clear()  # A new trial.
        seen.append((now, row.done_bytes))
        while len(seen) > 2 and now - seen[1][0] >= time_limits.PROGRESS_RATE_SECONDS:
            seen.popleft()
        moved, passed = row.done_bytes - seen[0][1], now - seen[0][0]
        return moved / passed if passed else None

    def _show(self, rows: Sequence[NodeStatus], rates: Rates) -> None:
        from rich.console import Console
        from rich.live import Live

        if self._live is None:
            self._live = Live(
                console=Console(stderr=True),
                transient=True,
                auto_refresh=False,
                # Output that goes to a file is not for the terminal.
                redirect_stdout=sys.stdout.isatty(),
            )
            self._live.start()
        self._live.update(_table(rows, rates), refresh=True)


def in_line(rows: Sequence[NodeStatus], rates: Rates) -> str:
    """All nodes in a line: how many are in each state, and their rates."""
    counts: dict[str, int] = {}
    for row in rows:
        counts[row.state] = counts.get(row.state, 0) + 1
    parts = [f"{formatting.several(len(rows), 'node')}: "]
    parts[0] += formatting.listing(f"{count} {state}" for state, count in counts.items())
    moving = {node: rate for node, rate in rates.items() if rate is not None}
    if moving:
        slowest = min(moving, key=lambda node: (moving[node], node))
        parts.append(f"{formatting.rate(sum(moving.values()))} in total")
        parts.append(f"slowest {slowest} {formatting.rate(moving[slowest])}")
    parts.append(formatting.several(sum(row.trials for row in rows), "trial"))
    return "; ".join(parts)


def _table(rows: Sequence[NodeStatus], rates: Rates) -> Any:
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False)
    for heading, justify in (("node", "left"), ("", "left"), ("trials", "right"), ("", "right")):
        table.add_column(heading, justify=justify)  # type: ignore[arg-type]
    for row in rows:
        rate = rates[row.node]
        said = row.why or "" if rate is None else formatting.rate(rate)
        # A node's name is no markup.
        table.add_row(*map(Text, (row.node, row.state, str(row.trials), said)))
    return table
