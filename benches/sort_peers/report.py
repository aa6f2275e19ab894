"""Rows from samples, claims from rows, and both as text."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from roster import FLOOR, TONNAGE, Peer
from validate import Verdict

from measure import Sample

MIB = 1 << 20


@dataclass(frozen=True)
class Run:
    """One sample of one peer, and the validation of its output."""

    peer: str
    command: list[str]
    load_before: float
    sample: Sample
    verdict: Verdict

    @property
    def counts(self) -> bool:
        """Whether its time can be compared: it succeeded, with a valid output."""
        return self.sample.exit_code == 0 and self.verdict.valid


@dataclass(frozen=True)
class Row:
    peer: Peer
    version: str | None
    runs: list[Run]

    @property
    def good(self) -> bool:
        return bool(self.runs) and all(run.counts for run in self.runs)

    @property
    def median_seconds(self) -> float | None:
        return median(run.sample.wall_seconds for run in self.runs) if self.good else None


@dataclass(frozen=True)
class Claim:
    text: str
    measured: float | None
    holds: bool | None


def rows(peers: Sequence[Peer], versions: Mapping[str, str | None], runs: list[Run]) -> list[Row]:
    return [
        Row(peer, versions[peer.name], [run for run in runs if run.peer == peer.name])
        for peer in peers
    ]


def claims(table: Sequence[Row], limited: bool) -> list[Claim]:
    """Return Tonnage's claims, inside the cgroup or without it; None means "not measured"."""
    seconds = {row.peer.name: row.median_seconds for row in table}
    own, floor = seconds.get(TONNAGE), seconds.get(FLOOR)
    others = {name: s for name, s in seconds.items() if s and name not in (TONNAGE, FLOOR)}
    best = min(others, key=others.__getitem__, default=None)
    times = 3.0 if limited else 2.0
    faster = others[best] / own if best and own else None
    stated = [
        Claim(
            f"at least {times:g}x faster than the best peer ({best or 'none finished'})",
            faster,
            None if faster is None else faster >= times,
        )
    ]
    if limited:
        over = own / floor if own and floor else None
        holds = None if over is None else over <= 1.25
        stated.append(Claim("within 1.25x of the floor", over, holds))
    return stated


HEADINGS = (
    "peer", "version", "wall s", "with sync s", "CPU s", "peak MiB", "valid", "/ tonnage", "note",
)  # fmt: skip


def render(table: Sequence[Row], stated: Sequence[Claim]) -> str:
    """Return Markdown: a table, then a line for each claim."""
    own = next((row.median_seconds for row in table if row.peer.name == TONNAGE), None)
    lines = [HEADINGS, *(_cells(row, own) for row in table)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    text = ["| " + " | ".join(map(str.ljust, line, widths)) + " |" for line in lines]
    text.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
    for claim in stated:
        says = {True: "HOLDS", False: "FAILS", None: "NOT MEASURED"}[claim.holds]
        measured = "" if claim.measured is None else f" (measured {claim.measured:.2f}x)"
        text.append(f"\n{says}: {claim.text}{measured}")
    return "\n".join(text)


def _cells(row: Row, own: float | None) -> tuple[str, ...]:
    name, version = row.peer.name, row.version or "-"
    if not row.runs:
        return name, version, "-", "-", "-", "-", "-", "-", "not installed: make setup"
    samples = [run.sample for run in row.runs]
    peaks = [s.peak_cgroup_bytes or s.peak_rss_bytes for s in samples]
    seconds = row.median_seconds
    return (
        name,
        version,
        _spread([s.wall_seconds for s in samples]),
        _spread([s.wall_with_sync_seconds for s in samples]),
        f"{median(s.cpu_seconds for s in samples):.1f}",
        f"{max(peaks) / MIB:.0f}",
        "yes" if row.good else "; ".join(dict.fromkeys(map(_failure, row.runs))),
        f"{seconds / own:.2f}" if seconds and own else "-",
        row.peer.note,
    )


def _spread(values: Sequence[float]) -> str:
    if len(values) == 1:
        return f"{values[0]:.1f}"
    return f"{median(values):.1f} [{min(values):.1f}..{max(values):.1f}]"


def _failure(run: Run) -> str:
    """Return how a run failed."""
    sample = run.sample
    if run.counts:
        return "some runs yes"
    kills = f", {sample.oom_kills} OOM kills" if sample.oom_kills else ""
    if sample.timed_out:
        return f"NO: stopped after {sample.wall_seconds:.0f} s{kills}"
    if sample.exit_code != 0:
        return f"NO: exit {sample.exit_code}{kills}"
    return f"NO: {run.verdict.reason}{kills}"
