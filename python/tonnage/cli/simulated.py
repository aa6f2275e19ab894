"""How a simulated sort is shown: its steps, what a loss costs, and what breaks first."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from tonnage import words

if TYPE_CHECKING:
    from tonnage.simulate.experiment import Told
    from tonnage.simulate.limits import Limit, Row
    from tonnage.simulate.sort import Simulated


def lines(told: Told) -> list[str]:
    """All that is told, line by line."""
    sort = told.undisturbed
    over = words.percent(sort.seconds / told.bound_seconds - 1)
    said = [
        f"{sort.nodes} nodes, {words.size(sort.bytes_in)}: {words.seconds(sort.seconds)}, "
        f"{over} more than the slowest node's share takes at least "
        f"({words.seconds(told.bound_seconds)})",
        f"{words.count(sort.splits)} splits, {words.count(sort.partitions)} partitions, blocks of "
        f"{words.memory(sort.block_bytes)}, {words.significant(sort.keys_per_partition)} sampled "
        "keys a partition",
        *_steps(sort),
    ]
    if sort.repartitioned_bytes:
        again = words.size(sort.repartitioned_bytes)
        said.append(f"{again} in partitions that do not fit in memory: divided once more")
    if told.warning:
        said.append(words.sentence(told.warning))
    if told.disturbed:
        said += _lost(told, told.disturbed)
    driver = (told.disturbed or sort).driver_cpu_seconds
    said += [
        f"The driver's schedule took {words.seconds(driver)} of a core here; all was simulated in "
        f"{words.seconds(told.took_seconds)}.",
        "",
        f"Limits of {told.here.nodes} nodes",
        *_limits(told.here),
        "",
        "What breaks, fleet by fleet",
        *(_row(each) for each in told.rows),
    ]
    if told.first:
        nodes, names = told.first
        said.append(f"First, of the fleets above: {words.listing(names)}, with {nodes} nodes.")
    else:
        said.append("None of these fleets hits a limit.")
    return said


def _steps(sort: Simulated) -> Iterator[str]:
    for step in sort.steps:
        lost = f"; {words.listing(step.lost)} died" if step.lost else ""
        what = f"{words.count(step.partitions)} partitions"
        if step.splits:
            what = f"{words.count(step.splits)} splits to {what}"
        yield f"  {words.phase(step.name)}: {words.seconds(step.seconds)}, {what}{lost}"


def _lost(told: Told, sort: Simulated) -> list[str]:
    undisturbed = told.undisturbed
    died = [words.seconds(at) for at in sorted(told.deaths.values())]
    more = sort.carried_bytes - undisturbed.carried_bytes
    return [
        f"With {words.several(len(died), 'node')} that died after {words.listing(died)}: "
        f"{words.seconds(sort.seconds)}, {words.seconds(sort.seconds - undisturbed.seconds)} more; "
        f"{words.size(more)} more read, sent and written",
        *_steps(sort),
    ]


def _limits(row: Row) -> Iterator[str]:
    if row.refused:
        yield f"  memory: {row.refused}"
    for each in row.limits:
        value = f"  {each.name}: {_amount(each, each.value)}"
        if each.bound is None:
            yield value
            continue
        which = "at least" if each.least else "at most"
        said = f"{value}, {which} {_amount(each, each.bound)}"
        yield f"{said}: HIT, {each.means}" if each.hit else said


def _row(row: Row) -> str:
    hit = "memory" if row.refused else words.listing(row.hit) if row.hit else "nothing"
    return (
        f"  {words.count(row.nodes)} nodes, {words.size(row.data_bytes)}, "
        f"{words.seconds(row.bound_seconds)} at least: {hit}"
    )


def _amount(limit: Limit, value: float) -> str:
    if limit.unit == "bytes":
        return words.memory(value)
    if limit.unit == "seconds":
        return words.seconds(value)
    if limit.unit == "share":
        return words.percent(value)
    return f"{words.significant(value)} {limit.unit}"
