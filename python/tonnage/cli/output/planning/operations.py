"""A plan of operations a second: the candidates, and the arithmetic of one offer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from tonnage.base import formatting
from tonnage.base.records.operations_plan import (
    NodesLimit,
    OperationsCandidate,
    OperationsPlan,
    ProvisionedVolumes,
)
from tonnage.catalog.published.core_speeds import family_of
from tonnage.cli.output.candidates import (
    aligned_table,
    numbered_lines,
    print_table_or_lines,
    usd,
)
from tonnage.plan.candidates import first_of_each

BEST = 10
WHY_SO_MANY: dict[NodesLimit, str] = {
    "operations": "for the operations",
    "data": "for the data",
    "link": "for the operations: a node's link to its volumes carries no more",
    "price": "with fewer, more operations of the volumes would have to be bought",
    "request": "as requested",
}
LOSES_DATA = (
    "Local disks lose their data when a machine stops or fails. For a copy on another machine, "
    "double --data and, of writes, --rate."
)


def print_operations_plan(plan: OperationsPlan, every: bool) -> None:
    numbered = [*enumerate(plan.candidates, start=1)]
    shown = numbered if every else first_of_each(plan.candidates, _family, BEST)
    for note in plan.notes:
        print(formatting.sentence(note))
    columns = ["", "offer", "nodes", "storage", "operations", "room", "per hour", "per month"]
    columns += ["per dollar", "evidence"]
    rows = [
        [
            *(str(number), each.offer, str(each.nodes), each.storage, _range(each)),
            *(formatting.size(each.room_bytes), usd(each.usd_per_hour), _month(each)),
            *(_per_dollar(each), each.evidence),
        ]
        for number, each in shown
    ]
    right = ("", "nodes", "room", "per hour", "per month", "per dollar")
    lines = (line for number, each in shown for line in _lines(number, each))
    print_table_or_lines(aligned_table(columns, right, rows), lines)
    print("\n".join([*_footnotes(numbered, shown), _excluded(plan)]))


def _footnotes(
    numbered: Sequence[tuple[int, OperationsCandidate]],
    shown: Sequence[tuple[int, OperationsCandidate]],
) -> Iterator[str]:
    left = len(numbered) - len(shown)
    if any(each.low_operations_per_second is not None for _, each in shown):
        yield (
            "In brackets: documented operations, as far below as 5 % of the measured families of "
            "machine types stayed."
        )
    if any(each.loses_data for _, each in shown):
        yield LOSES_DATA
    lasting = next(((number, each) for number, each in numbered if not each.loses_data), None)
    if lasting and all(each.loses_data for _, each in shown):
        number, each = lasting
        yield (
            f"The cheapest that keeps them is number {number}: {each.nodes} x {each.offer} "
            f"({each.storage}), {usd(each.usd_per_hour)} per hour, {_month(each)} per month."
        )
    if left:
        yield f"{formatting.several(left, 'more candidate')} (see --all)."


def _excluded(plan: OperationsPlan) -> str:
    were = "was" if len(plan.excluded) == 1 else "were"
    return f"{formatting.several(len(plan.excluded), 'offer')} {were} excluded (see --json)."


def why_no_candidate(plan: OperationsPlan, offer: str | None = None) -> str:
    """Why an offer, or every offer, is excluded."""
    reasons = [each.why for each in plan.excluded if offer in (None, each.offer)]
    if offer is not None:
        return reasons[0] if reasons else "it is not among the offers with these options"
    if not reasons:
        return "no offer matches"
    why, count = Counter(reasons).most_common(1)[0]
    return f"no offer is usable. Most common reason: {why} ({formatting.several(count, 'offer')})"


def explanation_lines(
    plan: OperationsPlan, candidates: Sequence[OperationsCandidate]
) -> Iterator[str]:
    """Each number of an offer's candidates, with its source."""
    data = f", {formatting.size(plan.bytes)} of data" if plan.bytes else ""
    yield f"{_rate(plan.operations_per_second)} of {plan.operation}{data}"
    for each in candidates:
        yield ""
        yield f"{each.nodes} x {each.offer} ({each.storage})"
        yield from (f"  {line}" for line in _explained(plan, each))


def _explained(plan: OperationsPlan, each: OperationsCandidate) -> Iterator[str]:
    one = each.operations_per_second / each.nodes
    low = each.low_operations_per_second
    between = f", from {_rate(low / each.nodes)}" if low is not None else ""
    yield f"Operations: {_rate(one)} a node{between}, {each.evidence}"
    yield f"  {_rate(plan.operations_per_second)} need {_nodes(each.nodes_for_operations)}"
    if plan.bytes:
        room = formatting.size(each.room_bytes / each.nodes)
        yield f"Data: room for {room} a node, without the file system's own 2 %"
        yield f"  {formatting.size(plan.bytes)} need {_nodes(each.nodes_for_data)}"
    yield f"Nodes: {each.nodes} {WHY_SO_MANY[each.nodes_limit]}"
    volumes = each.volumes
    machines = each.usd_per_month - (volumes.usd_per_month if volumes else 0.0)
    if volumes:
        yield f"Volumes: each {_volume(volumes)}"
        yield f"  {usd(volumes.usd_per_month)} per month ({volumes.source})"
    yield f"Machines: {usd(machines)} per month"
    yield (
        f"Cost: {usd(each.usd_per_hour)} per hour, {usd(each.usd_per_month)} per month; "
        f"{_per_dollar(each)} operations per dollar"
    )
    yield from (f"Source: {source}" for source in each.sources)
    yield from (formatting.sentence(note) for note in each.notes)
    if each.loses_data:
        yield LOSES_DATA


def _volume(volumes: ProvisionedVolumes) -> str:
    parts = [f"{formatting.count(volumes.gib_each)} GiB"]
    if volumes.operations_each is not None:
        parts.append(_rate(volumes.operations_each))
    if volumes.bytes_per_second_each is not None:
        parts.append(formatting.rate(volumes.bytes_per_second_each))
    return ", ".join(parts)


def _lines(number: int, each: OperationsCandidate) -> Iterator[str]:
    parts = [_range(each), formatting.size(each.room_bytes), f"{usd(each.usd_per_hour)} per hour"]
    parts += [f"{_month(each)} per month", f"{_per_dollar(each)} per dollar", each.evidence]
    yield from numbered_lines(number, f"{each.nodes} x {each.offer} ({each.storage})", parts)


def _family(each: OperationsCandidate) -> tuple[str, str, bool]:
    """Local disks and volumes of a family of machine types are apart."""
    return each.provider, family_of(each.provider, each.offer), each.loses_data


def _range(each: OperationsCandidate) -> str:
    low = each.low_operations_per_second
    between = "" if low is None else f" [{_thousands(low)}..]"
    return f"{_thousands(each.operations_per_second)}/s{between}"


def _rate(operations: float) -> str:
    return f"{_thousands(operations)} operations/s"


def _thousands(value: float) -> str:
    """A number with k or M: 541k, 2.21M."""
    for unit, factor in (("M", 1e6), ("k", 1e3)):
        if value >= factor:
            return f"{formatting.significant(value / factor)}{unit}"
    return formatting.significant(value)


def _per_dollar(each: OperationsCandidate) -> str:
    return f"{formatting.significant(each.operations_per_usd / 1e6)}M"


def _month(each: OperationsCandidate) -> str:
    return f"${each.usd_per_month:,.0f}"


def _nodes(count: int) -> str:
    return formatting.several(count, "node")
