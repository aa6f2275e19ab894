"""A simulated job on the terminal: its steps, the cost of losses, and what breaks first."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from tonnage.base import formatting

if TYPE_CHECKING:
    from tonnage.simulate.scalability_limits import ClusterLimits, Limit
    from tonnage.simulate.scenario import PlannedSeconds, ScenarioResult
    from tonnage.simulate.two_pass import SimulatedJob


def simulation_lines(result: ScenarioResult) -> list[str]:
    sort = result.undisturbed
    over = formatting.percent(sort.seconds / result.bound_seconds - 1)
    keys = "partitions by hash, of equal size"
    if sort.keys_per_partition is not None:
        keys = f"{formatting.significant(sort.keys_per_partition)} sampled keys per partition"
    lines = [
        f"{sort.nodes} nodes, {formatting.size(sort.bytes_in)}: "
        f"{formatting.seconds(sort.seconds)}, {over} above the lower bound "
        f"({formatting.seconds(result.bound_seconds)}, set by the slowest node)",
        *_planned_lines(result.planned, sort),
        f"{formatting.count(sort.splits)} splits, {formatting.count(sort.partitions)} partitions, "
        f"blocks of {formatting.memory(sort.block_bytes)}, {keys}",
        *_steps(sort),
    ]
    if sort.repartitioned_bytes:
        again = formatting.size(sort.repartitioned_bytes)
        lines.append(
            f"{again} are in partitions that do not fit in memory, and are partitioned a second "
            "time"
        )
    if result.warning:
        lines.append(formatting.sentence(result.warning))
    if result.disturbed:
        lines += _loss_lines(result, result.disturbed)
    driver = (result.disturbed or sort).driver_cpu_seconds
    lines += [
        f"On this machine, the driver's scheduling took {formatting.seconds(driver)} of CPU time; "
        f"the simulation took {formatting.seconds(result.took_seconds)}.",
        "",
        f"Limits of {result.here.nodes} nodes",
        *_limits(result.here),
        "",
        "Limits reached, by cluster size",
        *(_cluster_row(each) for each in result.rows),
    ]
    if result.first_limit:
        nodes, names = result.first_limit
        lines.append(
            f"First limit reached in this table: {formatting.listing(names)}, at "
            f"{formatting.count(nodes)} nodes."
        )
    else:
        lines.append("No limit is reached at any of these cluster sizes.")
    return lines


def _planned_lines(planned: PlannedSeconds | None, job: SimulatedJob) -> Iterator[str]:
    if planned is None:
        yield "From when all nodes run; their start is not included."
        return
    phases = formatting.listing(
        [f"{name} {formatting.seconds(seconds)}" for name, seconds in planned.passes]
    )
    yield (
        f"Planned: {formatting.seconds(planned.run)} ({phases}); simulated "
        f"{_difference(job.seconds / planned.run - 1)}"
    )
    if planned.start:
        yield (
            f"With the start of the machines, {formatting.seconds(planned.start)} as planned: "
            f"{formatting.seconds(planned.start + job.seconds)}; planned "
            f"{formatting.seconds(planned.start + planned.run)}"
        )


def _steps(sort: SimulatedJob) -> Iterator[str]:
    for step in sort.steps:
        lost = f"; {formatting.listing(step.lost)} lost" if step.lost else ""
        what = f"{formatting.count(step.partitions)} partitions"
        if step.splits:
            what = f"{formatting.count(step.splits)} splits into {what}"
        yield f"  {formatting.phase(step.name)}: {formatting.seconds(step.seconds)}, {what}{lost}"


def _loss_lines(result: ScenarioResult, sort: SimulatedJob) -> list[str]:
    undisturbed = result.undisturbed
    died = [formatting.seconds(at) for at in sorted(result.deaths.values())]
    more = sort.carried_bytes - undisturbed.carried_bytes
    return [
        f"With {formatting.several(len(died), 'node')} lost after {formatting.listing(died)}: "
        f"{formatting.seconds(sort.seconds)}, "
        f"{formatting.seconds(sort.seconds - undisturbed.seconds)} more; "
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
        bound = f"{value} (must be {which} {_amount(each, each.bound)})"
        yield f"{bound}: NOT MET, {each.means}" if each.hit else bound


def _cluster_row(row: ClusterLimits) -> str:
    hit = "memory" if row.refused else formatting.listing(row.hit) if row.hit else "none"
    return (
        f"  {formatting.count(row.nodes)} nodes, {formatting.size(row.data_bytes)}, "
        f"at least {formatting.seconds(row.bound_seconds)}: {hit}"
    )


def _amount(limit: Limit, value: float) -> str:
    if limit.unit == "bytes":
        return formatting.memory(value)
    if limit.unit == "seconds":
        return formatting.seconds(value)
    if limit.unit == "share":
        return formatting.percent(value)
    return f"{formatting.significant(value)} {limit.unit}"


def _difference(share: float) -> str:
    sign = "+" if share > 0 else ""
    return f"{sign}{formatting.percent(share)}"
