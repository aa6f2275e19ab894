"""Nodes with their own disks: as many as give the operations and hold the data.

The cost grows with the nodes, so the fewest are the cheapest. Operations of 4 KiB are those that
others measured, at most the documented ones, or else the documented ones; of these, the low end is
what measured families of machine types reached of theirs. Large operations follow from the disks'
bytes a second; where those are documented operations of 4 KiB, they are a lower bound.
"""

import math

from tonnage.base.records.operations_plan import NodesLimit, OperationsCandidate
from tonnage.catalog import Catalog, Disks, Offer
from tonnage.catalog.published.disk_rates import DOCUMENTED, reached_share
from tonnage.plan.operations.question import FILL, Operation, OperationsQuestion

LOWER_BOUND = "large operations give at least as many bytes a second as the documented small ones"


def local_candidates(
    question: OperationsQuestion, catalog: Catalog, offer: Offer
) -> list[OperationsCandidate] | str:
    """A candidate for each kind of the offer's local disks; or why there is none."""
    if offer.disks == ():
        return "it has no local disks"
    if offer.on_demand is None:
        return "its on-demand price is unknown"
    why = "the operations of its local disks are neither measured nor documented"
    found = []
    for disks in offer.disks or ():
        each = _candidate(question, catalog, offer, offer.on_demand.usd_per_hour, disks)
        if isinstance(each, str):
            why = each
        else:
            found.append(each)
    return found or why


def node_operations(operation: Operation, disks: Disks) -> float | None:
    """Operations a second of a node's identical disks; ``None`` is unknown."""
    if operation.is_small:
        return disks.write_iops if operation.writes else disks.read_iops
    rate = disks.write_bytes_per_second if operation.writes else disks.read_bytes_per_second
    return rate / operation.block_bytes if rate else None


def _candidate(
    question: OperationsQuestion, catalog: Catalog, offer: Offer, usd: float, disks: Disks
) -> OperationsCandidate | str:
    operation = question.operation
    each = node_operations(operation, disks)
    if not each:
        return "the operations of its local disks are neither measured nor documented"
    if question.data_bytes and not disks.total_bytes:
        return "the size of its local disks is unknown"
    room = FILL * (disks.total_bytes or 0)
    for_operations = math.ceil(question.rate / each)
    for_data = math.ceil(question.data_bytes / room) if question.data_bytes else 1
    needed = max(for_operations, for_data)
    nodes = max(needed, question.min_nodes)
    if nodes > question.max_nodes:
        return "more nodes than allowed"
    limit: NodesLimit = "operations" if for_operations >= for_data else "data"
    documented_small = operation.is_small and not disks.measured
    lower_bound = not operation.is_small and disks.rate_source == DOCUMENTED
    low = reached_share(operation.writes).low if documented_small else None
    source = (disks.iops_source if operation.is_small else disks.rate_source) or offer.spec_source
    month = catalog.billing.hours_per_month
    return OperationsCandidate(
        catalog=catalog.name,
        provider=offer.provider,
        offer=offer.type,
        storage=f"local, {f'{disks.count} x ' if disks.count else ''}{disks.kind or 'disks'}",
        nodes=nodes,
        nodes_limit="request" if nodes > needed else limit,
        nodes_for_operations=for_operations,
        nodes_for_data=for_data,
        operations_per_second=nodes * each,
        low_operations_per_second=None if low is None else nodes * each * low,
        room_bytes=int(nodes * room),
        usd_per_hour=nodes * usd,
        usd_per_month=nodes * usd * month,
        evidence="measured" if disks.measured else "documented",
        loses_data=True,
        sources=[source],
        notes=[LOWER_BOUND] if lower_bound else [],
    )
