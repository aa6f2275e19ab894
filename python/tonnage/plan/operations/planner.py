"""All offers with all of their storage for a question, cheapest first."""

import datetime
import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from tonnage.base.records.operations_plan import (
    NodesLimit,
    OperationsCandidate,
    OperationsPlan,
    ProvisionedVolumes,
)
from tonnage.base.records.plan import ExcludedOffer
from tonnage.catalog import OFFER_KINDS, Catalog, Offer, VolumeKind
from tonnage.catalog.price_age import age_note
from tonnage.plan.operations.local_disks import local_candidates
from tonnage.plan.operations.question import FILL, OperationsQuestion
from tonnage.plan.operations.volumes import (
    GIB,
    LIMITS,
    VolumeChoices,
    volume_choices,
)
from tonnage.plan.resources.machines import Machine, Machines, priced_machine

TOO_EXPENSIVE = "more expensive than the budget"
UNFIT = "with volumes: more nodes than allowed, or the operations of its link are unknown"
NOT_FLUSHED = "the operations of disks and volumes are not those of writes that are each flushed"
NOT_COUNTED = (
    "not included: the cores that issue the operations, the network to clients, public addresses, "
    "account quotas"
)


def plan_operations(question: OperationsQuestion, catalogs: Sequence[Catalog]) -> OperationsPlan:
    """Answer the question from these catalogs."""
    candidates: list[OperationsCandidate] = []
    excluded: list[ExcludedOffer] = []
    for catalog in catalogs:
        offers = []
        for offer in catalog.offers:
            if question.arch is not None and offer.arch != question.arch:
                continue
            if kinds := [kind for kind in offer.kinds if kind not in question.include]:
                why = f"{OFFER_KINDS[kinds[0]]}; --include {' '.join(kinds)} plans it, too"
                excluded.append(ExcludedOffer(offer=offer.type, why=why, catalog=catalog.name))
            else:
                offers.append(offer)
        found, reasons = _of_catalog(question, catalog, offers)
        candidates += found
        excluded += [
            ExcludedOffer(offer=kind, why=why, catalog=catalog.name)
            for kind, why in reasons.items()
        ]
    return OperationsPlan(
        operation=question.operation.name,
        operations_per_second=question.rate,
        bytes=question.data_bytes,
        settings=_settings(question),
        made_at=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        catalogs=[each.name for each in catalogs],
        candidates=sorted(candidates, key=_rank),
        excluded=excluded,
        notes=_notes(question, catalogs),
    )


def _of_catalog(
    question: OperationsQuestion, catalog: Catalog, offers: Sequence[Offer]
) -> tuple[list[OperationsCandidate], dict[str, str]]:
    """Candidates, and why the other offers have none."""
    reasons: dict[str, str] = {}
    found: list[OperationsCandidate] = []
    for offer in offers:
        local = local_candidates(question, catalog, offer)
        if isinstance(local, str):
            reasons[offer.type] = f"{local}; {UNFIT}" if catalog.volume_kinds else local
        else:
            found += local
    priced = [
        priced_machine(catalog, offer, False, "on-demand", number)
        for number, offer in enumerate(offers)
    ]
    machines = [each for each in priced if isinstance(each, Machine)]
    some = Machines.of(machines) if machines else None
    for kind in catalog.volume_kinds if some else ():
        assert some is not None
        choices = volume_choices(question, catalog, kind, some)
        if not isinstance(choices, str):
            found += _with_volumes(question, catalog, kind, some, choices)
    within = [each for each in found if each.usd_per_month <= question.most_usd_per_month]
    for each in found:
        reasons[each.offer] = TOO_EXPENSIVE
    for each in within:
        reasons.pop(each.offer, None)
    return within, reasons


def _with_volumes(
    question: OperationsQuestion,
    catalog: Catalog,
    kind: VolumeKind,
    machines: Machines,
    choices: VolumeChoices,
) -> Iterator[OperationsCandidate]:
    month = catalog.billing.hours_per_month
    for place in np.flatnonzero(np.isfinite(choices.usd_per_hour)).tolist():
        machine = machines[place]
        nodes, count = int(choices.nodes[place]), int(choices.count[place])
        gib = int(choices.gib_each[place])
        fewest = [int(each) for each in choices.fewest[:, place]]
        by_limit = dict(zip(LIMITS, fewest, strict=True))
        yield OperationsCandidate(
            catalog=catalog.name,
            provider=machine.offer.provider,
            offer=machine.offer.type,
            storage=f"{count} x {kind.name}",
            nodes=nodes,
            nodes_limit=_nodes_limit(question, nodes, by_limit),
            nodes_for_operations=max(by_limit["operations"], by_limit["link"], 1),
            nodes_for_data=max(by_limit["data"], 1),
            operations_per_second=float(choices.operations_per_second[place]),
            room_bytes=int(nodes * count * gib * GIB * FILL),
            usd_per_hour=float(choices.usd_per_hour[place]),
            usd_per_month=float(choices.usd_per_hour[place]) * month,
            evidence="documented",
            loses_data=False,
            volumes=ProvisionedVolumes(
                kind=kind.name,
                count=count,
                gib_each=gib,
                operations_each=_finite(choices.operations_each[place]),
                bytes_per_second_each=_finite(choices.bytes_per_second_each[place]),
                usd_per_month=float(choices.volumes_usd_per_hour[place]) * month,
                source=f"prices: {kind.price_source}; limits: {kind.limit_source}",
            ),
            sources=[f"link to volumes: {machine.offer.spec_source}"],
        )


def _nodes_limit(
    question: OperationsQuestion, nodes: int, by_limit: dict[NodesLimit, int]
) -> NodesLimit:
    limit = max(LIMITS, key=lambda each: by_limit[each])
    if nodes > max(by_limit[limit], 1):
        return "request" if nodes == question.min_nodes else "price"
    return limit


def _rank(each: OperationsCandidate) -> tuple[float, int, str, str]:
    """By cost; what differs by less than eight digits is a tie, which goes to fewer nodes."""
    return float(f"{each.usd_per_hour:.8g}"), each.nodes, each.offer, each.storage


def _notes(question: OperationsQuestion, catalogs: Sequence[Catalog]) -> list[str]:
    old = [note for each in catalogs if (note := age_note(each, question.today))]
    return [*old, NOT_COUNTED, *([NOT_FLUSHED] if question.operation.writes else [])]


def _settings(question: OperationsQuestion) -> dict[str, Any]:
    return {
        "least_nodes": question.min_nodes,
        "most_nodes": question.max_nodes,
        "budget_usd_per_month": _finite(question.most_usd_per_month),
        "arch": question.arch,
        "include": sorted(question.include),
        "fill": FILL,
    }


def _finite(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None
