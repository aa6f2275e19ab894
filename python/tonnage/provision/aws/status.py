"""Report existing launches and their cost so far, from AWS and its tags.

A record adds what AWS forgets: instances that terminated over an hour ago, and Ray's address.
"""

from dataclasses import dataclass
from pathlib import Path

from tonnage.base.records.launch import Launch, RentedNode, Tariff
from tonnage.provision import cost
from tonnage.provision.aws.ec2 import Ec2, LaunchResources
from tonnage.provision.aws.requests import ENDS_TAG, TARIFF_TAG, tariff_of
from tonnage.provision.aws.teardown import describe_resources, merge_nodes, now

RECORD = "launch.json"


@dataclass(frozen=True, kw_only=True)
class LaunchStatus:
    name: str
    region: str
    step: str | None
    """``None`` without a record."""
    address: str | None
    nodes: list[RentedNode]
    ends_at: str | None
    usd_per_hour: float | None
    """Of everything rented."""
    cost_usd: float | None
    """So far; ``None`` if the price is unknown."""
    standing: str
    """Its resources in words; empty if none."""


def launch_statuses(ec2: Ec2, name: str | None, record: Launch | None) -> list[LaunchStatus]:
    """The status of a launch with its record, if any; without a name, of all launches.

    Raises:
        AwsError: AWS refuses or does not answer.
    """
    found = ec2.find_resources(name)
    if name is not None:
        found.setdefault(name, LaunchResources())
    return [_status(ec2.region, each, there, record) for each, there in sorted(found.items())]


def _status(region: str, name: str, there: LaunchResources, record: Launch | None) -> LaunchStatus:
    moment = now()
    known, ends_at = (record.nodes, record.ends_at) if record else ([], None)
    nodes = merge_nodes(known, there.nodes(moment), ends_at=ends_at)
    tariff = record.tariff if record else tariff_of(there.tags.get(TARIFF_TAG, ""))
    return LaunchStatus(
        name=name,
        region=region,
        step=record.step if record else None,
        address=record.address if record else None,
        nodes=nodes,
        ends_at=record.ends_at if record else there.tags.get(ENDS_TAG),
        usd_per_hour=_hourly(tariff, nodes),
        cost_usd=cost.cost_usd(tariff, nodes, moment) if tariff else None,
        standing="" if there.is_empty else describe_resources(there),
    )


def _hourly(tariff: Tariff | None, nodes: list[RentedNode]) -> float | None:
    if tariff is None:
        return None
    return cost.usd_per_hour(tariff) * sum(node.is_rented for node in nodes)


def read_launch_record(place: str) -> tuple[Launch, Path] | None:
    """Read the record of a launch from its directory; ``None`` if there is none.

    Raises:
        RecordError: It is none, or of another version.
    """
    file = Path(place) / RECORD
    return (Launch.read(file), file) if file.is_file() else None
