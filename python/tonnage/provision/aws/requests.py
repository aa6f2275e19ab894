"""What EC2 is asked for a launch, in order; pure functions: `--dry-run` prints what is then asked.

The nodes are those of `plan.handover.aws`: what is added here finds them again (tags), ends them
(a shutdown that terminates, at a set time), and keeps the bill in bounds (all of them or none, a
token that makes a request that is repeated the same one). Fields are those of EC2's API reference.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from msgspec import structs

from tonnage.base.records.launch import Tariff
from tonnage.provision.export import aws
from tonnage.provision.export.rental import Rental, placeholder

TAG = "tonnage-launch"
"""Whose value is the launch's name, of all that is rented."""
ENDS_TAG, TARIFF_TAG = "tonnage-ends-at", "tonnage-tariff"
"""When it ends by itself, and what a node costs: enough if the record is lost."""
VPC, GROUP = placeholder("VpcId"), placeholder("GroupId")
SSH_PORT = 22
TOKEN_LETTERS = 64
"""The longest that EC2 takes."""


@dataclass(frozen=True)
class Account:
    """What only the user's account can tell; a placeholder stands for what was not told."""

    image: str = placeholder("ImageId")
    subnet: str = placeholder("SubnetId")
    key: str = placeholder("KeyName")
    ssh_from: str = placeholder("CidrIp")
    """Addresses that may reach the nodes."""
    profile: str | None = None
    """The instance profile whose role the nodes have, as to read and write a bucket."""


@dataclass(frozen=True)
class LaunchOrder:
    """What is launched, for whom, until when."""

    rental: Rental
    account: Account
    tariff: Tariff
    ends_at: datetime

    @property
    def name(self) -> str:
        """The launch's."""
        return self.rental.name

    @property
    def tags(self) -> list[dict[str, str]]:
        """Of all that is rented."""
        told = {
            "Name": self.name,
            TAG: self.name,
            ENDS_TAG: self.ends_at.isoformat(timespec="seconds"),
            TARIFF_TAG: tariff_tag(self.tariff),
        }
        return [{"Key": key, "Value": value} for key, value in told.items()]


def tariff_tag(of: Tariff) -> str:
    """A tariff in letters that a tag may have."""
    return " ".join(repr(float(value)) for value in structs.asdict(of).values())


def tariff_of(tag: str) -> Tariff | None:
    """The tariff that a tag tells; ``None`` if it tells none."""
    try:
        return Tariff(**dict(zip(Tariff.__annotations__, map(float, tag.split()), strict=True)))
    except ValueError:
        return None


def describe_subnets(order: LaunchOrder) -> dict[str, Any]:
    """Asks which network the subnet is of, and in which zone."""
    return {"SubnetIds": [order.account.subnet]}


def create_security_group(order: LaunchOrder, vpc: str) -> dict[str, Any]:
    """A group of the nodes alone."""
    return {
        "GroupName": order.name,
        "Description": "Nodes of a launch by Tonnage",
        "VpcId": vpc,
        "TagSpecifications": [{"ResourceType": "security-group", "Tags": order.tags}],
    }


def authorize_security_group_ingress(order: LaunchOrder, group: str) -> dict[str, Any]:
    """Nodes let in each other, and by ssh whoever is to reach them."""
    ssh = {
        "IpProtocol": "tcp",
        "FromPort": SSH_PORT,
        "ToPort": SSH_PORT,
        "IpRanges": [{"CidrIp": order.account.ssh_from}],
    }
    among = {"IpProtocol": "-1", "UserIdGroupPairs": [{"GroupId": group}]}
    return {"GroupId": group, "IpPermissions": [among, ssh]}


def create_placement_group(order: LaunchOrder) -> dict[str, Any] | None:
    """The group of nodes that are put close together; ``None`` where that was not planned."""
    asked = aws.export(order.rental).document.get("create_placement_group")
    tagged = [{"ResourceType": "placement-group", "Tags": order.tags}]
    return None if asked is None else {**asked, "TagSpecifications": tagged}


def run_instances(order: LaunchOrder, group: str, count: int, number: int) -> dict[str, Any]:
    """So many nodes, all or none.

    Args:
        order: What is launched.
        group: The id of the nodes' security group.
        count: How many.
        number: Of this request: one with the same number is the same, however often it is sent.
    """
    rental, account = order.rental, order.account
    asked: dict[str, Any] = dict(aws.export(rental).document["run_instances"])
    script = f"ends_at={int(order.ends_at.timestamp())}\n" + _script("lifetime.sh")
    mounting = rental.mount() if rental.has_disks else ""
    if rental.spot:
        most = order.tariff.machine_most_usd_per_hour
        asked["InstanceMarketOptions"] = {
            "MarketType": "spot",
            "SpotOptions": {"SpotInstanceType": "one-time", "MaxPrice": f"{most:.6f}"},
        }
    if account.profile:
        asked["IamInstanceProfile"] = {"Name": account.profile}
    kinds = ("instance", "volume")
    return asked | {
        "MinCount": count,
        "MaxCount": count,
        "ImageId": account.image,
        "SubnetId": account.subnet,
        "KeyName": account.key,
        "SecurityGroupIds": [group],
        "ClientToken": f"{order.name}-{number}"[-TOKEN_LETTERS:],
        "InstanceInitiatedShutdownBehavior": "terminate",
        # The end is arranged first: what comes after it may fail.
        "UserData": f"#!/bin/bash\n{script}{mounting}",
        "TagSpecifications": [{"ResourceType": kind, "Tags": order.tags} for kind in kinds],
    }


def all_requests(order: LaunchOrder) -> Iterator[tuple[str, dict[str, Any]]]:
    """Each request of a launch that goes well, by the method of boto3's EC2 client.

    What the answer to an earlier one tells is a placeholder.
    """
    yield "describe_subnets", describe_subnets(order)
    yield "create_security_group", create_security_group(order, VPC)
    yield "authorize_security_group_ingress", authorize_security_group_ingress(order, GROUP)
    if placed := create_placement_group(order):
        yield "create_placement_group", placed
    count = order.rental.candidate.nodes
    yield "run_instances", run_instances(order, GROUP, count, number=0)


def missing_values(order: LaunchOrder) -> dict[str, str]:
    """Of each placeholder in the requests that a flag replaces: the flag, and what it takes."""
    rental = order.rental
    flags = {
        "image": ("--image", f"the id of an image of {rental.system} in {rental.region}"),
        "subnet": ("--subnet", "the id of a subnet, whose zone all nodes are in"),
        "key": ("--key-pair", "the name of your key pair"),
        "ssh_from": ("--ssh-from", "who may reach the nodes by ssh, like 203.0.113.7/32"),
    }
    unknown = Account()
    return {
        flag: what
        for field, (flag, what) in flags.items()
        if getattr(order.account, field) == getattr(unknown, field)
    }


def _script(name: str) -> str:
    return (Path(__file__).parent / name).read_text()
