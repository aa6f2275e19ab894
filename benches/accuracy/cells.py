"""Cells and claims: a cell is a job on machines of a type, a row is a job on all types. Pure."""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from tonnage.base import formatting
from tonnage.base.records.cluster_study import PlanAccuracy

MEDIAN_ERROR, WORST_ERROR = 0.03, 0.10
"""The claims: the largest errors of plans with rehearsals."""
UNREHEARSED_MEDIAN, UNREHEARSED_WORST = 0.10, 0.30
"""The same of plans from measurements alone."""
INSIDE = (0.85, 0.95)
"""The share of intervals that hold: fewer are too narrow, more too wide."""
OVER_CHEAPEST = 0.03
"""The largest extra cost of the chosen type over the cheapest."""
CELLS = 24
"""The claims need at least so many cells."""


@dataclass(frozen=True)
class Cell:
    """A plan compared with the run that followed it."""

    seed: int
    kind: str
    """Type of the machines."""
    job: str
    began_at: str
    cpu: str
    """CPU of the machine that hosted the lab."""
    accuracy: PlanAccuracy
    unrehearsed_seconds: float | None
    """Planned seconds, from measurements without rehearsals."""
    chosen: bool
    """Whether the plan chooses this type for the job."""


@dataclass(frozen=True)
class Claim:
    """A claim and its measured value."""

    name: str
    what: str
    found: float
    holds: bool


def claims(cells: Sequence[Cell]) -> list[Claim]:
    """Check the claims over all cells."""
    errors = [cell.accuracy.error_fraction for cell in cells]
    median, worst = statistics.median(errors), max(errors)
    inside = sum(cell.accuracy.inside for cell in cells) / len(cells)
    over = max(map(over_cheapest, rows(cells)))
    least = min(map(len, rows(cells)))
    cheapest = cheapest_types(cells)
    alone = [abs(off) for cell in cells if (off := unrehearsed_error(cell)) is not None]
    return [
        Claim("cells", f"at least {CELLS} cells", len(cells), len(cells) >= CELLS),
        Claim("least_choice", "at least two types to choose from", least, least >= 2),
        Claim(
            "median_error",
            f"median error at most {MEDIAN_ERROR:.0%}",
            median,
            median <= MEDIAN_ERROR,
        ),
        Claim("worst_error", f"worst error at most {WORST_ERROR:.0%}", worst, worst <= WORST_ERROR),
        *_unrehearsed_claims(alone),
        Claim(
            "inside",
            f"intervals hold in {INSIDE[0]:.0%} to {INSIDE[1]:.0%}",
            inside,
            INSIDE[0] <= inside <= INSIDE[1],
        ),
        Claim(
            "cheapest_types",
            "in each lab, at least two types are the cheapest for some job",
            cheapest,
            cheapest >= 2,
        ),
        Claim(
            "over_cheapest",
            f"the chosen type costs at most {OVER_CHEAPEST:.0%} more than the cheapest",
            over,
            over <= OVER_CHEAPEST,
        ),
    ]


def _unrehearsed_claims(errors: Sequence[float]) -> Iterator[Claim]:
    if not errors:
        return
    median, worst = statistics.median(errors), max(errors)
    yield Claim(
        "unrehearsed_median",
        f"median error without rehearsals at most {UNREHEARSED_MEDIAN:.0%}",
        median,
        median <= UNREHEARSED_MEDIAN,
    )
    yield Claim(
        "unrehearsed_worst",
        f"worst error without rehearsals at most {UNREHEARSED_WORST:.0%}",
        worst,
        worst <= UNREHEARSED_WORST,
    )


def rows(cells: Iterable[Cell]) -> list[list[Cell]]:
    """Group the cells by job and lab."""
    found: dict[tuple[int, str], list[Cell]] = {}
    for cell in cells:
        found.setdefault((cell.seed, cell.job), []).append(cell)
    return list(found.values())


def cheapest_types(cells: Iterable[Cell]) -> int:
    """How many types are the cheapest for some job, in the lab where these are fewest."""
    found: dict[int, set[str]] = {}
    for row in rows(cells):
        best = min(row, key=lambda cell: cell.accuracy.usd)
        found.setdefault(best.seed, set()).add(best.kind)
    return min(map(len, found.values()))


def over_cheapest(row: Sequence[Cell]) -> float:
    """Return how much more the chosen type cost than the cheapest, as a fraction."""
    (chosen,) = (cell for cell in row if cell.chosen)
    return chosen.accuracy.usd / min(cell.accuracy.usd for cell in row) - 1


def in_history(cells: Sequence[Cell], asked: Mapping[str, object]) -> str:
    """Return a line with the claims' values and the options; the same for the same cells."""
    told = {
        "began_at": max(cell.began_at for cell in cells),
        "cpu": ", ".join(sorted({cell.cpu for cell in cells})),
        **asked,
        **{claim.name: claim.found for claim in claims(cells)},
    }
    return f"{json.dumps(told)}\n"


def unrehearsed_error(cell: Cell) -> float | None:
    """Return the relative error of the plan without rehearsals."""
    if cell.unrehearsed_seconds is None:
        return None
    return cell.unrehearsed_seconds / cell.accuracy.seconds - 1


def render(cells: Sequence[Cell]) -> Iterator[str]:
    """Yield a table of all cells, then the claims."""
    names = ("seed", "machines", "job", "planned s", "actual s", "error", "inside", "largest miss")
    names = (*names, "error without rehearsals", "chosen, over the cheapest")
    yield f"| {' | '.join(names)} |"
    yield "|---" * len(names) + "|"
    for row in rows(cells):
        for cell in row:
            accuracy = cell.accuracy
            planned = accuracy.planned
            between = formatting.seconds_between(planned.low, planned.high)
            off = planned.median / accuracy.seconds - 1
            alone = unrehearsed_error(cell)
            over = f"{over_cheapest(row):.1%}" if cell.chosen else ""
            unrehearsed = "-" if alone is None else f"{alone:+.1%}"
            yield (
                f"| {cell.seed} | {cell.kind} | {cell.job} | {planned.median:.1f} ({between}) "
                f"| {accuracy.seconds:.1f} | {off:+.1%} | {'yes' if accuracy.inside else 'no'} "
                f"| {accuracy.missed or ''} | {unrehearsed} | {over} |"
            )
    yield ""
    for claim in claims(cells):
        yield f"{claim.what}: {claim.found:.3g}, {'holds' if claim.holds else 'MISSED'}"
