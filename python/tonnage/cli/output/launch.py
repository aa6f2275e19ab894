"""A launch on the terminal: its requests, its price, and how to use the cluster."""

from __future__ import annotations

import json
import sys
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tonnage.base import formatting
from tonnage.base.records.base import to_builtins
from tonnage.cli.output.candidates import cost_lines
from tonnage.cli.provision.launch_order import missing_values, most_usd

if TYPE_CHECKING:
    from tonnage.base.records.launch import Launch
    from tonnage.provision.aws.launcher import LaunchRequest
    from tonnage.provision.aws.requests import LaunchOrder


def price_lines(order: LaunchOrder, cap_usd: float | None) -> list[str]:
    from tonnage.provision.cost import NOT_COUNTED, usd_per_hour

    candidate = order.rental.candidate
    hourly = usd_per_hour(order.tariff)
    usual = "usually " if order.rental.spot else ""
    lines = [
        f"{candidate.nodes} x {candidate.offer} ({candidate.layout}): {usual}"
        f"{formatting.usd(round(candidate.nodes * hourly, 4))} per hour "
        f"({formatting.usd(round(hourly, 6))} per node)",
        _planned(order),
        f"Maximum cost: {formatting.cents(most_usd(order))}, without replacements, until all nodes "
        f"terminate themselves, {_moment(order.ends_at)}",
    ]
    if cap_usd is not None and most_usd(order) > cap_usd:
        lines.append(
            f"The maximum cost exceeds --budget {cap_usd:g}, so the launch would be refused"
        )
    return [*lines, formatting.sentence(NOT_COUNTED)]


def _planned(order: LaunchOrder) -> str:
    candidate = order.rental.candidate
    start = ", from the request of the nodes" if candidate.run_seconds else ""
    total = sum(each.usd for each in order.costs)
    return (
        f"Planned cost: {formatting.cents(total)} for "
        f"{formatting.duration(candidate.seconds.median)}{start}: {cost_lines(order.costs)}"
    )


def print_requests(order: LaunchOrder, cap_usd: float | None, as_json: bool) -> None:
    from tonnage.provision.aws import requests as ec2_requests
    from tonnage.provision.cost import usd_per_hour

    requests = [{method: arguments} for method, arguments in ec2_requests.all_requests(order)]
    document: dict[str, Any] = {"region": order.rental.region, "requests": requests}
    if as_json:
        prices = {
            "seconds": order.rental.candidate.seconds.median,
            "cost_usd": sum(each.usd for each in order.costs),
            "costs": to_builtins(list(order.costs)),
            "usd_per_hour": order.rental.candidate.nodes * usd_per_hour(order.tariff),
            "most_usd": most_usd(order),
            "tariff": to_builtins(order.tariff),
        }
        extra = {"ends_at": order.ends_at.isoformat(), "give": missing_values(order)}
        print(json.dumps(document | {"name": order.name} | prices | extra))
        return
    print(json.dumps(document, indent=1))
    for line in price_lines(order, cap_usd):
        print(line, file=sys.stderr)
    for flag, what in missing_values(order).items():
        print(f"To launch, add {flag} ({what}).", file=sys.stderr)


def ready_lines(request: LaunchRequest, record: Launch, at: str, place: Path) -> list[str]:
    from tonnage.provision.cost import usd_per_hour

    order = request.order
    hourly = usd_per_hour(record.tariff)
    nodes = record.rented
    login = formatting.command([*request.ssh.program, f"{request.ssh.user}@{at}"])
    return [
        f"{record.name} is ready: {len(nodes)} x {record.candidate.offer} in {record.region}, Ray "
        f"at {record.address}",
        f"It costs {formatting.usd(round(len(nodes) * hourly, 4))} per hour, "
        f"{formatting.cents(record.cost_usd)} so far; the nodes terminate themselves "
        f"{_moment(order.ends_at)}",
        f"To use it: {login}, then tonnage run ... --cluster auto",
        f"To terminate it: tonnage cluster down {place}",
    ]


def _moment(at: datetime) -> str:
    return formatting.moment(at.isoformat(timespec="seconds"))
