"""The candidates of a plan: a table or, where that is too wide for the terminal, two lines each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from tonnage.base import formatting
from tonnage.base.records.plan import Candidate, CostLine, Range

if TYPE_CHECKING:
    from rich.table import Table

MEETS = "meets deadline"
"""The column with the probability of meeting the deadline."""
COLUMNS, INDENT = 80, " " * 7
UNLIMITED = 1_000
"""The width of what is not a terminal: nothing is wrapped."""
CENTS_UP_TO = 1_000
"""The dollars from which a line has no cents."""


def print_candidates(numbered: Sequence[tuple[int, Candidate]]) -> None:
    print_table_or_lines(_table(numbered), candidate_lines(numbered))


def print_table_or_lines(table: Table, lines: Iterable[str]) -> None:
    """Prints the table, or the lines on a terminal that is too narrow for it."""
    from rich.console import Console
    from rich.markup import escape

    console = Console(width=None if Console().is_terminal else UNLIMITED)
    if Console(width=UNLIMITED).measure(table).maximum <= console.width:
        console.print(table)
        return
    for line in lines:
        console.print(escape(line), highlight=False, soft_wrap=True)


def _share_a_provider(numbered: Sequence[tuple[int, Candidate]]) -> bool:
    """Whether some are of two catalogs, say regions, of one provider."""
    catalogs = {(each.provider, each.catalog) for _, each in numbered}
    return len(catalogs) > len({provider for provider, _ in catalogs})


def candidate_lines(numbered: Sequence[tuple[int, Candidate]]) -> Iterator[str]:
    """What to rent on one line, the rest on the next, or the next two: 80 characters at most."""
    by_catalog = _share_a_provider(numbered)
    for number, each in numbered:
        parts = [seconds_range(each.seconds), _short_usd_range(each.cost_usd), each.evidence]
        if each.deadline_probability is not None:
            parts.append(formatting.percent(each.deadline_probability))
        if by_catalog:
            parts.append(each.catalog)
        yield from numbered_lines(number, candidate_text(each), parts)


def numbered_lines(number: int, first: str, parts: Sequence[str]) -> Iterator[str]:
    """A line with a number, and lines of parts that are never cut."""
    yield f"{number:>5}  {first}"
    line = INDENT
    for part in parts:
        if len(line) + len(part) > COLUMNS:
            yield line.rstrip()
            line = INDENT
        line += f"{part}  "
    yield line.rstrip()


def candidate_text(candidate: Candidate) -> str:
    placed = ", placed" if candidate.placement else ""
    return f"{candidate.nodes} x {candidate.offer} ({candidate.layout}{placed})"


def seconds_range(seconds: Range) -> str:
    middle, low, high = map(formatting.duration, (seconds.median, seconds.low, seconds.high))
    return f"{middle} [{low}..{high}]"


def usd_range(cost: Range) -> str:
    return f"{usd(cost.median)} [{usd(cost.low)}..{usd(cost.high)}]"


def cost_lines(costs: Sequence[CostLine]) -> str:
    """What a cost is the sum of."""
    parts = formatting.listing(f"{each.item} {usd(each.usd)}" for each in costs)
    return parts or "nothing is billed"


def usd(amount: float) -> str:
    return f"${amount:,.2f}"


def _short_usd_range(cost: Range) -> str:
    if cost.high < CENTS_UP_TO:
        return usd_range(cost)
    return f"${cost.median:,.0f} [${cost.low:,.0f}..${cost.high:,.0f}]"


def _table(numbered: Sequence[tuple[int, Candidate]]) -> Table:
    columns = ["", "offer", "layout", "nodes", "bottleneck", "time", "cost", "evidence"]
    rows = [
        [
            str(number),
            each.offer + (" (placed)" if each.placement else ""),
            each.layout,
            str(each.nodes),
            max(each.phases, key=lambda phase: phase.seconds).bottleneck,
            seconds_range(each.seconds),
            usd_range(each.cost_usd),
            each.evidence,
        ]
        for number, each in numbered
    ]
    if any(each.deadline_probability is not None for _, each in numbered):
        columns.append(MEETS)
        for row, (_, each) in zip(rows, numbered, strict=True):
            row.append(formatting.percent(each.deadline_probability or 0.0))
    if _share_a_provider(numbered):
        columns.append("catalog")
        for row, (_, each) in zip(rows, numbered, strict=True):
            row.append(each.catalog)
    return aligned_table(columns, ("", "nodes", MEETS), rows)


def aligned_table(
    columns: Sequence[str], right: Sequence[str], rows: Sequence[Sequence[str]]
) -> Table:
    from rich.markup import escape
    from rich.table import Table

    table = Table(box=None, header_style="bold")
    for name in columns:
        table.add_column(name, justify="right" if name in right else "left")
    for row in rows:
        table.add_row(*map(escape, row))
    return table
