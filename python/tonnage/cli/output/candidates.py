"""The candidates of a plan: a table or, where that is too wide for the terminal, two lines each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from tonnage.base import formatting
from tonnage.base.records.plan import Candidate, CostLine, Range

if TYPE_CHECKING:
    from rich.table import Table

MEETS, NO_SLOWER = "meets deadline", "no slower"
"""The column with the probability of meeting the deadline, or of being no slower than today."""
COLUMNS, INDENT = 80, " " * 7
UNLIMITED = 1_000
"""The width of what is not a terminal: nothing is wrapped."""
CENTS_UP_TO = 1_000
"""The dollars from which a line has no cents."""
MILLIONTH, CENT = 1e-6, 0.00995
"""From the one, and up to what rounds to the other, dollars have two significant digits."""


def print_candidates(
    numbered: Sequence[tuple[int, Candidate]], demands_known: bool, in_time: str = MEETS
) -> None:
    """Prints candidates with their intervals, or lower bounds if not every demand is known.

    ``in_time`` is what the column with the probability of meeting the deadline is called.
    """
    print_table_or_lines(
        _table(numbered, demands_known, in_time), candidate_lines(numbered, demands_known)
    )


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


def candidate_lines(
    numbered: Sequence[tuple[int, Candidate]], demands_known: bool = True
) -> Iterator[str]:
    """What to rent on one line, the rest on the next, or the next two: 80 characters at most."""
    by_catalog = _share_a_provider(numbered)
    for number, each in numbered:
        parts = [
            seconds_range(each.seconds, demands_known),
            _short_usd_range(each.cost_usd, demands_known),
            each.evidence,
        ]
        if demands_known and each.deadline_probability is not None:
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


def seconds_range(seconds: Range, demands_known: bool = True) -> str:
    return _range_text(seconds, formatting.duration, demands_known)


def usd_range(cost: Range, demands_known: bool = True) -> str:
    return _range_text(cost, usd, demands_known)


def _range_text(of: Range, figure: Callable[[float], str], demands_known: bool) -> str:
    """The median and the interval; its low end alone if more than was counted takes time."""
    if not demands_known:
        return f"at least {figure(of.low)}"
    return f"{figure(of.median)} [{figure(of.low)}..{figure(of.high)}]"


def cost_lines(costs: Sequence[CostLine]) -> str:
    """What a cost is the sum of."""
    parts = formatting.listing(f"{each.item} {usd(each.usd)}" for each in costs)
    return parts or "nothing is billed"


def usd(amount: float) -> str:
    """Dollars and cents; below a cent, two significant digits."""
    if MILLIONTH <= abs(amount) < CENT:
        return f"${'-' * (amount < 0)}{formatting.significant(abs(amount), 2)}"
    return f"${amount:,.2f}"


def _short_usd_range(cost: Range, demands_known: bool) -> str:
    figure = usd if cost.high < CENTS_UP_TO else _whole_usd
    return _range_text(cost, figure, demands_known)


def _whole_usd(amount: float) -> str:
    return f"${amount:,.0f}"


def _table(numbered: Sequence[tuple[int, Candidate]], demands_known: bool, in_time: str) -> Table:
    columns = ["", "offer", "layout", "nodes", "bottleneck", "time", "cost", "evidence"]
    rows = [
        [
            str(number),
            each.offer + (" (placed)" if each.placement else ""),
            each.layout,
            str(each.nodes),
            max(each.phases, key=lambda phase: phase.seconds).bottleneck,
            seconds_range(each.seconds, demands_known),
            usd_range(each.cost_usd, demands_known),
            each.evidence,
        ]
        for number, each in numbered
    ]
    if demands_known and any(each.deadline_probability is not None for _, each in numbered):
        columns.append(in_time)
        for row, (_, each) in zip(rows, numbered, strict=True):
            row.append(formatting.percent(each.deadline_probability or 0.0))
    if _share_a_provider(numbered):
        columns.append("catalog")
        for row, (_, each) in zip(rows, numbered, strict=True):
            row.append(each.catalog)
    return aligned_table(columns, ("", "nodes", in_time), rows)


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
