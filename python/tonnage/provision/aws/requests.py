"""Build the EC2 requests of a launch.

To the nodes of `export.aws` they add what finds them again (tags), terminates them (a shutdown at a
set time), and bounds the bill (all or none; an idempotency token). Fields are as in EC2's API
reference.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from msgspec import structs

from tonnage.base.records.launch import Tariff
from tonnage.base.records.plan import CostLine
from tonnage.provision.export import aws
from tonnage.provision.rental import Rental, placeholder
from tonnage.provision.user_data import user_data

TAG = "tonnage-launch"
"""The tag of everything rented; its value is the launch's name."""
ENDS_TAG, TARIFF_TAG = "tonnage-ends-at", "tonnage-tariff"
"""When the launch terminates itself and what a node costs: enough if the record is lost."""
VPC, GROUP = placeholder("VpcId"), placeholder("GroupId")
SSH_PORT = 22
TOKEN_LETTERS = 64
"""EC2's limit."""


@dataclass(frozen=True)
class Account:
    """Values of the user's account, or placeholders."""

    image: str = placeholder("ImageId")
    subnet: str = placeholder("SubnetId")
    key: str = placeholder("KeyName")
    ssh_from: str = placeholder("CidrIp")
    """Addresses that may connect by ssh."""
    profile: str | None = None
    """The nodes' instance profile, for example to access a bucket."""


@dataclass(frozen=True)
class LaunchOrder:
    """What to launch, in which account, until when."""

    rental: Rental
    account: Account
    tariff: Tariff
    ends_at: datetime
    costs: Sequence[CostLine] = ()
    """The bill, if it takes as long as planned."""
    public_addresses: bool = True
    """Whether nodes get public addresses, where the subnet assigns them."""

    @property
    def name(self) -> str:
        return self.rental.name

    @property
    def tags(self) -> list[dict[str, str]]:
        told = {
            "Name": self.name,
            TAG: self.name,
            ENDS_TAG: self.ends_at.isoformat(timespec="seconds"),
            TARIFF_TAG: tariff_tag(self.tariff),
        }
        return [{"Key": key, "Value": value} for key, value in told.items()]


def tariff_tag(of: Tariff) -> str:
    return " ".join(repr(float(value)) for value in structs.asdict(of).values())


def tariff_of(tag: str) -> Tariff | None:
    """Decode a tag's tariff, also one of before addresses had a price; ``None`` if it has none."""
    names = [*Tariff.__annotations__]
    values = tag.split()
    try:
        return Tariff(**dict(zip(names[: max(len(values), 5)], map(float, values), strict=True)))
    except ValueError:
        return None


def describe_subnets(order: LaunchOrder) -> dict[str, Any]:
    return {"SubnetIds": [order.account.subnet]}


def create_security_group(order: LaunchOrder, vpc: str) -> dict[str, Any]:
    return {
        "GroupName": order.name,
        "Description": "Nodes of a launch by Tonnage",
        "VpcId": vpc,
        "TagSpecifications": [{"ResourceType": "security-group", "Tags": order.tags}],
    }


def authorize_security_group_ingress(order: LaunchOrder, group: str) -> dict[str, Any]:
    """Allow traffic among nodes, and ssh from the user."""
    allowed = order.account.ssh_from
    ranges = (
        {"Ipv6Ranges": [{"CidrIpv6": allowed}]}
        if ":" in allowed
        else {"IpRanges": [{"CidrIp": allowed}]}
    )
    ssh = {"IpProtocol": "tcp", "FromPort": SSH_PORT, "ToPort": SSH_PORT, **ranges}
    among = {"IpProtocol": "-1", "UserIdGroupPairs": [{"GroupId": group}]}
    return {"GroupId": group, "IpPermissions": [among, ssh]}


def create_placement_group(order: LaunchOrder) -> dict[str, Any] | None:
    """Create the placement group; ``None`` if none is planned."""
    asked = aws.export(order.rental).document.get("create_placement_group")
    tagged = [{"ResourceType": "placement-group", "Tags": order.tags}]
    return None if asked is None else {**asked, "TagSpecifications": tagged}


def run_instances(order: LaunchOrder, group: str, count: int, number: int) -> dict[str, Any]:
    """Rent ``count`` nodes, all or none; a repeated ``number`` is the same request."""
    rental, account = order.rental, order.account
    asked: dict[str, Any] = dict(aws.export(rental).document["run_instances"])
    if rental.spot:
        most = order.tariff.machine_most_usd_per_hour
        asked["InstanceMarketOptions"] = {
            "MarketType": "spot",
            "SpotOptions": {"SpotInstanceType": "one-time", "MaxPrice": f"{most:.6f}"},
        }
    if account.profile:
        asked["IamInstanceProfile"] = {"Name": account.profile}
    where: dict[str, Any] = {"SubnetId": account.subnet}
    if order.public_addresses:
        where["SecurityGroupIds"] = [group]
    else:
        asked.pop("SubnetId")
        first = {"DeviceIndex": 0, "AssociatePublicIpAddress": False, "Groups": [group]}
        where = {"NetworkInterfaces": [first | where]}
    kinds = ("instance", "volume")
    return (
        asked
        | where
        | {
            "MinCount": count,
            "MaxCount": count,
            "ImageId": account.image,
            "KeyName": account.key,
            "ClientToken": f"{order.name}-{number}"[-TOKEN_LETTERS:],
            "InstanceInitiatedShutdownBehavior": "terminate",
            "UserData": user_data(rental, order.ends_at),
            "TagSpecifications": [{"ResourceType": kind, "Tags": order.tags} for kind in kinds],
        }
    )


def all_requests(order: LaunchOrder) -> Iterator[tuple[str, dict[str, Any]]]:
    """All requests of a successful launch by method of boto3's EC2 client.

    Values from earlier answers are placeholders.
    """
    yield "describe_subnets", describe_subnets(order)
    yield "create_security_group", create_security_group(order, VPC)
    yield "authorize_security_group_ingress", authorize_security_group_ingress(order, GROUP)
    if placed := create_placement_group(order):
        yield "create_placement_group", placed
    count = order.rental.candidate.nodes
    yield "run_instances", run_instances(order, GROUP, count, number=0)
