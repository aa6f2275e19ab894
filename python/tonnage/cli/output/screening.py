"""A screening on the terminal: suspect nodes, and what a job would gain without them."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tonnage.base import formatting
from tonnage.base.records import ClusterMeasurement
from tonnage.base.records.network_rounds import NET, RECEIVE, SEND
from tonnage.cli.output import print_result
from tonnage.cli.output.cluster_measurement import document, network_lines, summary
from tonnage.cli.output.trials import Details, disk_details

if TYPE_CHECKING:
    from tonnage.base.records.job import Job
    from tonnage.catalog import Catalog
    from tonnage.model.outlier_nodes import ScreeningResult, Suspect
    from tonnage.plan.recommendations.drop_nodes import Forecast, Gain

QUANTITIES = {SEND: "sending", RECEIVE: "receiving"}


@dataclass(frozen=True)
class ScreenedJob:
    job: Job
    size: int
    catalogs: list[Catalog]


def print_screening(
    disks: ClusterMeasurement,
    network: ClusterMeasurement | None,
    out: Path,
    job: ScreenedJob | None,
    as_json: bool,
) -> None:
    from tonnage.measure.cluster.screening import DISK
    from tonnage.model.outlier_nodes import screen

    result = screen(disks, network)
    gain, gain_lines = _gain(disks, network, result, job) if job else ({}, [])
    values = {
        "disk": document(disks, disk_details),
        "net": document(network) if network else None,
        "suspects": [dataclasses.asdict(each) for each in result.suspects],
        "decommission": result.decommission,
        "not_judged": result.not_judged,
    }
    lines = summary(disks, out / DISK, disk_details)
    if network:
        lines += [*summary(network, out / NET), *network_lines(network)]
    else:
        lines.append("The network was not tested; a network test needs at least two nodes.")
    lines += [*_suspect_lines(result), *gain_lines]
    print_result(values | gain, lines, as_json)


def _suspect_lines(result: ScreeningResult) -> list[str]:
    lines = [_suspect(each) for each in result.suspects]
    for why in sorted(set(result.not_judged.values())):
        nodes = [node for node, reason in sorted(result.not_judged.items()) if reason == why]
        lines.append(f"Not judged: {formatting.listing(nodes)}. Reason: {why}")
    if result.decommission:
        lines.append(f"Nodes to remove: {formatting.listing(result.decommission)}")
    return lines or ["No suspect nodes found."]


def _suspect(suspect: Suspect) -> str:
    if suspect.ratio_to_median is None:
        return f"Suspect: {suspect.node}, its measurement failed"
    quantity = QUANTITIES.get(suspect.what) or formatting.trial(suspect.what)
    return (
        f"Suspect: {suspect.node}, {quantity}: {formatting.percent(suspect.ratio_to_median)} of "
        f"the median of its machine type, confidence {formatting.percent(suspect.confidence)}"
    )


def _gain(
    disks: ClusterMeasurement,
    network: ClusterMeasurement | None,
    result: ScreeningResult,
    job: ScreenedJob,
) -> Details:
    """What the job would gain without the suspects; a ``gain`` of None is unknown."""
    from tonnage.model.outlier_nodes import measured_rates
    from tonnage.plan.recommendations.drop_nodes import MeasuredNode, NotEstimable, gain

    rows = {row.node: row for row in disks.nodes}
    offers = {
        (offer.provider, offer.type): (offer, each.billing)
        for each in reversed(job.catalogs)
        for offer in each.offers
    }
    nodes = []
    for name, rates in measured_rates(disks, network).items():
        kind = (rows[name].provider or "", rows[name].machine_type or "")
        nodes.append(MeasuredNode(name, rates, *offers.get(kind, (None, None))))
    title = f"{job.job.name} of {formatting.size(job.size)}"
    try:
        change = gain(job.job, job.size, nodes, result.decommission)
    except NotEstimable as error:
        return {"gain": None, "why": str(error)}, [
            f"The time of a {title} without the suspect nodes is unknown: {error}"
        ]
    values = {
        "seconds": change.seconds,
        "usd": change.usd,
        "with_all": dataclasses.asdict(change.all_nodes),
        "without": dataclasses.asdict(change.remaining),
        "notes": change.notes,
    }
    return {"gain": values}, list(_gain_lines(title, change))


def _gain_lines(title: str, change: Gain) -> Iterator[str]:
    yield f"A {title}: {_forecast(change.all_nodes)}"
    if change.remaining.nodes < change.all_nodes.nodes:
        yield f"Without the suspect nodes: {_forecast(change.remaining)}"
        yield f"Without them, the job is {formatting.listing(_saved(change))}"
    yield from map(formatting.sentence, change.notes)


def _saved(change: Gain) -> Iterator[str]:
    much = formatting.duration(abs(change.seconds))
    yield f"{much} {'faster' if change.seconds >= 0 else 'slower'}"
    if change.usd is not None:
        yield f"{_usd(abs(change.usd))} {'cheaper' if change.usd >= 0 else 'more expensive'}"


def _usd(value: float) -> str:
    return formatting.usd(round(value, 2) if value >= 1 else float(f"{value:.2g}"))


def _forecast(each: Forecast) -> str:
    price = "price unknown" if each.usd is None else _usd(each.usd)
    nodes = formatting.several(each.nodes, "node")
    return f"{formatting.duration(each.seconds)}, {price}, on {nodes}"
