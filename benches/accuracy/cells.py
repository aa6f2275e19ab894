"""What came: a cell is a job on machines of a type, a row is a job on all types. Pure."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from tonnage import words
from tonnage.artifacts.fleet_study import Came

MEDIAN_ERROR, WORST_ERROR, INSIDE, OVER_CHEAPEST = 0.05, 0.12, 0.85, 0.03
"""What is claimed: errors at most, intervals that hold at least, and what the choice may cost more
than the cheapest, all of the same work."""
CELLS = 24
"""At least so many, or nothing is claimed."""


@dataclass(frozen=True)
class Cell:
    """How near a plan came."""

    seed: int
    kind: str
    """Of machines."""
    job: str
    came: Came


@dataclass(frozen=True)
class Claim:
    """What is claimed, and what came."""

    what: str
    found: float
    holds: bool


def claims(cells: Sequence[Cell]) -> list[Claim]:
    """What holds of all cells together."""
    errors = [cell.came.error_fraction for cell in cells]
    median, worst = statistics.median(errors), max(errors)
    inside = sum(cell.came.inside for cell in cells) / len(cells)
    over = max(over_cheapest(row) for row in rows(cells))
    return [
        Claim(f"at least {CELLS} cells", len(cells), len(cells) >= CELLS),
        Claim(f"median error at most {MEDIAN_ERROR:.0%}", median, median <= MEDIAN_ERROR),
        Claim(f"worst error at most {WORST_ERROR:.0%}", worst, worst <= WORST_ERROR),
        Claim(f"intervals hold in {INSIDE:.0%} at least", inside, inside >= INSIDE),
        Claim(
            f"what was chosen costs at most {OVER_CHEAPEST:.0%} more than the cheapest",
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
    """By how much the type that plans say is cheapest cost more than the one that was."""
    chosen = min(row, key=lambda cell: cell.came.planned_usd)
    return chosen.came.usd / min(cell.came.usd for cell in row) - 1


def in_words(cells: Sequence[Cell]) -> Iterator[str]:
    """A table of all cells, then what is claimed."""
    names = ("seed", "machines", "job", "planned s", "came s", "off", "inside", "missed most")
    yield f"| {' | '.join((*names, 'chosen, over the cheapest'))} |"
    yield "|---" * (len(names) + 1) + "|"
    for row in rows(cells):
        chosen = min(row, key=lambda cell: cell.came.planned_usd)
        for cell in row:
            came = cell.came
            planned = came.planned
            between = words.seconds_between(planned.low, planned.high)
            off = planned.median / came.seconds - 1
            over = f"{over_cheapest(row):.1%}" if cell is chosen else ""
            yield (
                f"| {cell.seed} | {cell.kind} | {cell.job} | {planned.median:.1f} ({between}) "
                f"| {came.seconds:.1f} | {off:+.1%} | {'yes' if came.inside else 'no'} "
                f"| {came.missed or ''} | {over} |"
            )
    yield ""
    for claim in claims(cells):
        yield f"{claim.what}: {claim.found:.3g}, {'holds' if claim.holds else 'MISSED'}"
