"""How a simulated sort is shown: its steps, what a loss costs, and what breaks first."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from tonnage.base import formatting

if TYPE_CHECKING:
    from tonnage.simulate.scalability_limits import ClusterLimits, Limit
    from tonnage.simulate.scenario import ScenarioResult
    from tonnage.simulate.sort import SimulatedSort


def lines(told: ScenarioResult) -> list[str]:
    """All that is told, line by line."""
    sort = told.undisturbed
    over = formatting.percent(sort.seconds / told.bound_seconds - 1)
    said = [
        f"{sort.nodes} nodes, {formatting.size(sort.bytes_in)}: {formatting.seconds(sort.seconds)}, "
        f"{over} more than the slowest node's share takes at least "
        f"({formatting.seconds(told.bound_seconds)})",
        f"{formatting.count(sort.splits)} splits, {formatting.count(sort.partitions)} partitions, blocks of "
        f"{formatting.memory(sort.block_bytes)}, {formatting.significant(sort.keys_per_partition)} sampled "
        "keys a partition",
        *_steps(sort),
    ]
    if sort.repartitioned_bytes:
        again = formatting.size(sort.repartitioned_bytes)
        said.append(f"{again} in partitions that do not fit in memory: divided once more")
    if told.warning:
        said.append(formatting.sentence(told.warning))
    if told.disturbed:
        said += _lost(told, told.disturbed)
    driver = (told.disturbed or sort).driver_cpu_seconds
    said += [
        f"The driver's schedule took {formatting.seconds(driver)} of a core here; all was simulated in "
        f"{formatting.seconds(told.took_seconds)}.",
        "",
        f"Limits of {told.here.nodes} nodes",
        *_limits(told.here),
        "",
        "What breaks, fleet by fleet",
        *(_row(each) for each in told.rows),
    ]
    if told.first:
        nodes, names = told.first
        said.append(f"First, of the fleets above: {formatting.listing(names)}, with {nodes} nodes.")
    else:
        said.append("None of these fleets hits a limit.")
    return said


def _steps(sort: SimulatedSort) -> Iterator[str]:
    for step in sort.steps:
        lost = f"; {formatting.listing(step.lost)} died" if step.lost else ""
        what = f"{formatting.count(step.partitions)} partitions"
        if step.splits:
            what = f"{formatting.count(step.splits)} splits to {what}"
        yield f"  {formatting.phase(step.name)}: {formatting.seconds(step.seconds)}, {what}{lost}"


def _lost(told: ScenarioResult, sort: SimulatedSort) -> list[str]:
    undisturbed = told.undisturbed
    died = [formatting.seconds(at) for at in sorted(told.deaths.values())]
    more = sort.carried_bytes - undisturbed.carried_bytes
    return [
        f"With {formatting.several(len(died), 'node')} that died after {formatting.listing(died)}: "
        f"{formatting.seconds(sort.seconds)}, {formatting.seconds(sort.seconds - undisturbed.seconds)} more; "
        f"{formatting.size(more)} more read, sent and written",
        *_steps(sort),
    ]


def _limits(row: ClusterLimits) -> Iterator[str]:
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


def _row(row: ClusterLimits) -> str:
    hit = "memory" if row.refused else formatting.listing(row.hit) if row.hit else "nothing"
    return (
        f"  {formatting.count(row.nodes)} nodes, {formatting.size(row.data_bytes)}, "
        f"{formatting.seconds(row.bound_seconds)} at least: {hit}"
    )


def _amount(limit: Limit, value: float) -> str:
    if limit.unit == "bytes":
        return formatting.memory(value)
    if limit.unit == "seconds":
        return formatting.seconds(value)
    if limit.unit == "share":
        return formatting.percent(value)
    return f"{formatting.significant(value)} {limit.unit}"
