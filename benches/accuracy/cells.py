"""What came: a cell is a job on machines of a type, a row is a job on all types. Pure."""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from tonnage.base import formatting
from tonnage.base.records.cluster_study import PlanAccuracy

MEDIAN_ERROR, WORST_ERROR, INSIDE, OVER_CHEAPEST = 0.05, 0.12, 0.85, 0.03
"""What is claimed: errors at most, intervals that hold at least, and what the choice may cost more
than the cheapest."""
CELLS = 24
"""At least so many, or nothing is claimed."""


@dataclass(frozen=True)
class Cell:
    """How near a plan came."""

    seed: int
    kind: str
    """Of machines."""
    job: str
    began_at: str
    cpu: str
    """Of the machine that the lab stood on."""
    came: PlanAccuracy
    unrehearsed_seconds: float | None
    """What is planned of what was measured alone."""
    chosen: bool
    """Whether it is this type that is taken for the job."""


@dataclass(frozen=True)
class Claim:
    """What is claimed, and what came."""

    name: str
    what: str
    found: float
    holds: bool


def claims(cells: Sequence[Cell]) -> list[Claim]:
    """What holds of all cells together."""
    errors = [cell.came.error_fraction for cell in cells]
    median, worst = statistics.median(errors), max(errors)
    inside = sum(cell.came.inside for cell in cells) / len(cells)
    over = max(map(over_cheapest, rows(cells)))
    least = min(map(len, rows(cells)))
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
        Claim("inside", f"intervals hold in {INSIDE:.0%} at least", inside, inside >= INSIDE),
        Claim(
            "over_cheapest",
            f"what is taken costs at most {OVER_CHEAPEST:.0%} more than the cheapest",
            over,
            over <= OVER_CHEAPEST,
        ),
    ]


def rows(cells: Iterable[Cell]) -> list[list[Cell]]:
    """The cells of each job of each lab."""
    found: dict[tuple[int, str], list[Cell]] = {}
    for cell in cells:
        found.setdefault((cell.seed, cell.job), []).append(cell)
    return list(found.values())


def over_cheapest(row: Sequence[Cell]) -> float:
    """By how much the type that is taken cost more than the one that was cheapest."""
    (chosen,) = (cell for cell in row if cell.chosen)
    return chosen.came.usd / min(cell.came.usd for cell in row) - 1


def in_history(cells: Sequence[Cell], asked: Mapping[str, object]) -> str:
    """A line of what all cells come to, and of what was asked; the same for the same cells."""
    told = {
        "began_at": max(cell.began_at for cell in cells),
        "cpu": ", ".join(sorted({cell.cpu for cell in cells})),
        **asked,
        **{claim.name: claim.found for claim in claims(cells)},
    }
    return f"{json.dumps(told)}\n"


def unrehearsed_error(cell: Cell) -> float | None:
    """By how much what is planned without rehearsals is more than what came."""
    if cell.unrehearsed_seconds is None:
        return None
    return cell.unrehearsed_seconds / cell.came.seconds - 1


def in_words(cells: Sequence[Cell]) -> Iterator[str]:
    """A table of all cells, then what is claimed."""
    names = ("seed", "machines", "job", "planned s", "came s", "off", "inside", "missed most")
    names = (*names, "off without rehearsals", "taken, over the cheapest")
    yield f"| {' | '.join(names)} |"
    yield "|---" * len(names) + "|"
    for row in rows(cells):
        for cell in row:
            came = cell.came
            planned = came.planned
            between = formatting.seconds_between(planned.low, planned.high)
            off = planned.median / came.seconds - 1
            alone = unrehearsed_error(cell)
            over = f"{over_cheapest(row):.1%}" if cell.chosen else ""
            yield (
                f"| {cell.seed} | {cell.kind} | {cell.job} | {planned.median:.1f} ({between}) "
                f"| {came.seconds:.1f} | {off:+.1%} | {'yes' if came.inside else 'no'} "
                f"| {came.missed or ''} | {'-' if alone is None else f'{alone:+.1%}'} | {over} |"
            )
    yield ""
    alone = [abs(off) for cell in cells if (off := unrehearsed_error(cell)) is not None]
    if alone:
        yield (
            f"without rehearsals {len(alone)} cells are {statistics.median(alone):.1%} off, the "
            f"median, and {max(alone):.1%} at most"
        )
    for claim in claims(cells):
        yield f"{claim.what}: {claim.found:.3g}, {'holds' if claim.holds else 'MISSED'}"
