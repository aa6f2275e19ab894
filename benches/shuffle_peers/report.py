"""Rows from runs, missed claims from rows, and both as text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from roster import TONNAGE

from measure import Run
from tonnage.base.stats.quantiles import quantile_estimate

MIB = 1 << 20
HEADINGS = (
    "system", "version", "wall s", "with sync s", "CPU s", "peak MiB", "valid", "/ tonnage",
)  # fmt: skip


@dataclass(frozen=True)
class Row:
    """All runs of a system."""

    name: str
    version: str | None
    runs: list[Run]

    @property
    def good(self) -> bool:
        """Whether each run succeeded with all records in order."""
        return bool(self.runs) and all(run.counts for run in self.runs)

    @property
    def wall_seconds(self) -> float | None:
        """The median; None if not all runs are good."""
        return median(run.sample.wall_seconds for run in self.runs) if self.good else None

    @property
    def cpu_seconds(self) -> float | None:
        """The median; None if not all runs are good."""
        return median(run.sample.cpu_seconds for run in self.runs) if self.good else None


def rows(versions: Mapping[str, str | None], runs: Sequence[Run]) -> list[Row]:
    """Return a row for each system."""
    return [
        Row(name, version, [run for run in runs if run.system == name])
        for name, version in versions.items()
    ]


def missed(table: Sequence[Row]) -> list[str]:
    """Return where Tonnage is not faster than another system, or does not use fewer CPU seconds.

    Runs without Tonnage have no claim.
    """
    own = next((row for row in table if row.name == TONNAGE), None)
    if own is None:
        return []
    if own.wall_seconds is None or own.cpu_seconds is None:
        return [f"{TONNAGE} has no time to compare"]
    found = []
    for row in table:
        if row is own or row.wall_seconds is None or row.cpu_seconds is None:
            continue
        if row.wall_seconds <= own.wall_seconds:
            found.append(
                f"{row.name} takes {row.wall_seconds / own.wall_seconds:.2f} of Tonnage's time"
            )
        if row.cpu_seconds <= own.cpu_seconds:
            found.append(
                f"{row.name} uses {row.cpu_seconds / own.cpu_seconds:.2f} of Tonnage's CPU"
            )
    return found


def render(table: Sequence[Row]) -> str:
    """Return Markdown: a table, then the last output of each failed run."""
    own = next((row.wall_seconds for row in table if row.name == TONNAGE), None)
    lines = [HEADINGS, *(_cells(row, own) for row in table)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    text = ["| " + " | ".join(map(str.ljust, line, widths)) + " |" for line in lines]
    text.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
    for row in table:
        for output in dict.fromkeys(run.sample.last_output for run in row.runs if not run.counts):
            if output:
                text.append(f"\n{row.name}, last output:\n" + _indented(output))
    return "\n".join(text)


def _cells(row: Row, own: float | None) -> tuple[str, ...]:
    version = row.version or "-"
    started = [run.sample for run in row.runs if run.sample.exit_code is not None]
    if not started:
        why = "; ".join(dict.fromkeys(map(_failure, row.runs))) or "no run"
        return row.name, version, "-", "-", "-", "-", why, "-"
    seconds = row.wall_seconds
    return (
        row.name,
        version,
        _spread([sample.wall_seconds for sample in started]),
        _spread([sample.wall_with_sync_seconds for sample in started]),
        _spread([sample.cpu_seconds for sample in started]),
        f"{max(max(sample.peak_bytes.values()) for sample in started) / MIB:.0f}",
        "yes" if row.good else "; ".join(dict.fromkeys(map(_failure, row.runs))),
        f"{seconds / own:.2f}" if seconds and own else "-",
    )


def _spread(values: Sequence[float]) -> str:
    """Return the median with its 95 % interval, or with the range if there are too few values."""
    if len(values) == 1:
        return f"{values[0]:.1f}"
    interval = quantile_estimate(values, 0.5).interval
    if interval:
        return f"{median(values):.1f} ({interval.low_value:.1f} .. {interval.high_value:.1f})"
    return f"{median(values):.1f} [{min(values):.1f}..{max(values):.1f}]"


def _failure(run: Run) -> str:
    sample = run.sample
    if run.counts:
        return "some runs yes"
    kills = f", {sample.oom_kills} OOM kills" if sample.oom_kills else ""
    if sample.exit_code is None:
        return f"NO: its cluster did not start{kills}"
    if sample.timed_out:
        return f"NO: stopped after {sample.wall_seconds:.0f} s{kills}"
    if sample.exit_code:
        return f"NO: exit {sample.exit_code}{kills}"
    return f"NO: {run.verdict.reason}{kills}"


def _indented(text: str) -> str:
    return "\n".join(f"    {line}" for line in text.splitlines())
