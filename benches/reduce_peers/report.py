"""Rows from runs, claims from rows, and both as text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from roster import HADOOP, MLLIB, NUMPY, PROTOTYPE, TONNAGE, TONNAGE_NUMPY, System

from measure import Run

MIB = 1 << 20
MEMORY_MIB = 300
KMEANS = "kmeans"
HEADINGS = (
    "system", "version", "ready s", "cold s", "warm s", "CPU s", "peak MiB", "error", "/ tonnage",
    "note",
)  # fmt: skip


@dataclass(frozen=True)
class Row:
    """All runs of a system at a job."""

    system: System
    job: str
    version: str | None
    runs: list[Run]

    @property
    def good(self) -> bool:
        """Whether each run gave the expected answer."""
        return bool(self.runs) and all(run.failure is None for run in self.runs)

    @property
    def warm_seconds(self) -> list[float]:
        """Seconds of all warm iterations; none if not all runs are good."""
        return [each.seconds for run in self.runs for each in run.warm] if self.good else []

    @property
    def seconds(self) -> float | None:
        """Their median."""
        return median(self.warm_seconds) if self.warm_seconds else None

    @property
    def peak_mib(self) -> float | None:
        """Peak memory of all runs."""
        return max(run.peak_rss_bytes for run in self.runs) / MIB if self.good else None


@dataclass(frozen=True)
class Claim:
    """A claim about k-means, the measured value, and whether it holds; None: not measured."""

    text: str
    measured: float | None
    holds: bool | None


def rows(
    systems: Sequence[System], jobs: Sequence[str], versions: Mapping[str, str], runs: list[Run]
) -> list[Row]:
    """Return a row for each system and each of its jobs."""
    return [
        Row(
            system,
            job,
            versions.get(system.name),
            [run for run in runs if (run.system, run.job) == (system.name, job)],
        )
        for job in jobs
        for system in systems
        if job in system.jobs
    ]


def claims(table: Sequence[Row]) -> list[Claim]:
    """Return the claims, from the medians of warm iterations of k-means."""
    of = {row.system.name: row for row in table if row.job == KMEANS}
    seconds = {name: row.seconds for name, row in of.items() if row.seconds}
    peers = {
        name: time
        for name, time in seconds.items()
        if name not in (TONNAGE, TONNAGE_NUMPY, PROTOTYPE)
    }
    best = min(peers, key=peers.__getitem__, default=NUMPY)
    own = of[TONNAGE].peak_mib if TONNAGE in of else None
    stated = [
        _at_most("seconds, of the prototype's", _ratio(seconds, TONNAGE, PROTOTYPE), 1.1),
        _at_least(f"times as fast as the best peer, {best}", _ratio(seconds, best, TONNAGE), 2),
    ]
    for name in (MLLIB, HADOOP):
        stated.append(_at_least(f"times as fast as {name}", _ratio(seconds, name, TONNAGE), 10))
    stated.append(_at_most("MiB", own, MEMORY_MIB))
    ratio = _ratio(seconds, NUMPY, TONNAGE_NUMPY)
    stated.append(_at_least(f"times as fast as {NUMPY}, a user's own reduction", ratio, 1.5))
    return stated


def render(table: Sequence[Row], stated: Sequence[Claim]) -> str:
    """Return Markdown: a table for each job, the last output of failed runs, the claims."""
    text: list[str] = []
    for job in dict.fromkeys(row.job for row in table):
        here = [row for row in table if row.job == job]
        own = next((row.seconds for row in here if row.system.name == TONNAGE), None)
        text += [f"\n{job}\n", *_table([HEADINGS, *(_cells(row, own) for row in here)])]
    for row in table:
        for output in dict.fromkeys(run.last_output for run in row.runs if run.last_output):
            indented = "\n".join(f"    {line}" for line in output.splitlines())
            text.append(f"\n{row.system.name}, {row.job}, last output:\n{indented}")
    lines = [("k-means, warm", "measured", "")]
    for claim in stated:
        says = {True: "holds", False: "MISSED", None: "not measured"}[claim.holds]
        lines.append((claim.text, _figure(claim.measured), says))
    return "\n".join([*text, "", *_table(lines)])


def _table(lines: Sequence[tuple[str, ...]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    text = ["| " + " | ".join(map(str.ljust, line, widths)) + " |" for line in lines]
    text.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
    return text


def _cells(row: Row, own: float | None) -> tuple[str, ...]:
    name, version = row.system.name, row.version or "-"
    failures = "; ".join(dict.fromkeys(run.failure for run in row.runs if run.failure))
    note = "; ".join(filter(None, [f"NO: {failures}" if failures else "", row.system.note]))
    if not row.good:
        return name, version, "-", "-", "-", "-", "-", "-", "-", note or "not run"
    ready = [run.ready_seconds for run in row.runs if run.ready_seconds is not None]
    cold = [run.cold_seconds for run in row.runs if run.cold_seconds is not None]
    cpu = [each.cpu_seconds for run in row.runs for each in run.warm]
    worst = max(each.off for run in row.runs for each in run.iterations)
    return (
        name,
        version,
        _spread(ready),
        _spread(cold),
        _spread(row.warm_seconds),
        _spread(cpu),
        f"{row.peak_mib:.0f}",
        f"{worst:.1g}",
        _figure(row.seconds / own if row.seconds and own else None),
        note,
    )


def _spread(values: Sequence[float]) -> str:
    """Return the median and the range."""
    if not values:
        return "-"
    return f"{median(values):.2f} [{min(values):.2f}..{max(values):.2f}]"


def _figure(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def _ratio(seconds: Mapping[str, float], one: str, other: str) -> float | None:
    return seconds[one] / seconds[other] if one in seconds and other in seconds else None


def _at_most(text: str, measured: float | None, most: float) -> Claim:
    holds = None if measured is None else measured <= most
    return Claim(f"at most {most:g} {text}", measured, holds)


def _at_least(text: str, measured: float | None, least: float) -> Claim:
    holds = None if measured is None else measured >= least
    return Claim(f"at least {least:g} {text}", measured, holds)
