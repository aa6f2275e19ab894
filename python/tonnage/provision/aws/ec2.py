"""Call EC2 through boto3; expired credentials are reloaded once.

The resources of a launch are found by its tag. Only the tag, and no record, decides what is counted
and terminated.
"""

import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from tonnage.base.records.launch import RentedNode
from tonnage.catalog.aws_errors import EXPIRED, aws_errors_as, client_config, error_code
from tonnage.provision.aws.requests import TAG

TRIES = 4
ENDED = ("shutting-down", "terminated", "stopping", "stopped")
"""States in which an instance is not billed."""
GONE = "terminated"
ENDING = ("shutting-down", GONE)
"""States of a terminated instance; a stopped one would stay, with its volumes."""
GOING = ("deleting", "deleted")
"""States of a deleted placement group."""
MOMENT = re.compile(r"\((\d{4}-\d\d-\d\d \d\d:\d\d:\d\d) (?:GMT|UTC)\)")
"""The time in the reason of a state change."""


class AwsError(Exception):
    """AWS refused or did not answer; says why and what to do, in one line."""

    @property
    def code(self) -> str:
        """AWS's error code; empty if there is none."""
        return error_code(self.__cause__)


@dataclass
class LaunchResources:
    """A launch's resources: instances, also recently terminated ones, and what belongs to them."""

    instances: list[dict[str, Any]] = field(default_factory=list)
    volumes: list[str] = field(default_factory=list)
    security_groups: list[str] = field(default_factory=list)
    placement_groups: list[str] = field(default_factory=list)

    @property
    def billed(self) -> list[str]:
        return [each["InstanceId"] for each in self.instances if not has_ended(each)]

    @property
    def to_terminate(self) -> list[str]:
        """Instances that are not terminated, including stopped ones."""
        return [
            each["InstanceId"] for each in self.instances if each["State"]["Name"] not in ENDING
        ]

    @property
    def shutting_down(self) -> list[str]:
        """Instances that are terminating and still hold their other resources."""
        states = ((each["InstanceId"], each["State"]["Name"]) for each in self.instances)
        return [name for name, state in states if state in ENDED and state != GONE]

    @property
    def is_empty(self) -> bool:
        """Whether nothing is left."""
        around = self.volumes or self.security_groups or self.placement_groups
        return not (self.billed or self.shutting_down or around)

    @property
    def tags(self) -> dict[str, str]:
        return {tag["Key"]: tag["Value"] for each in self.instances for tag in each.get("Tags", ())}

    def nodes(self, now: datetime) -> list[RentedNode]:
        return [rented_node(each, now) for each in self.instances]


class Ec2:
    def __init__(self, region: str) -> None:
        self.region = region
        self._client: Any = None

    def call(self, method: str, **arguments: Any) -> dict[str, Any]:
        """Call a method of boto3's EC2 client.

        Raises:
            AwsError: AWS refuses or cannot be reached.
        """
        try:
            return self._call(method, arguments)
        except AwsError as why:
            if why.code not in EXPIRED:
                raise
        # A new session finds renewed credentials.
        self._client = None
        return self._call(method, arguments)

    def paginate(self, method: str, within: str, **arguments: Any) -> Iterator[dict[str, Any]]:
        more: dict[str, Any] = {}
        while True:
            answer = self.call(method, **arguments, **more)
            yield from answer[within]
            if not answer.get("NextToken"):
                return
            more = {"NextToken": answer["NextToken"]}

    def find_resources(self, name: str | None = None) -> dict[str, LaunchResources]:
        """Find the resources of the named launch, or of every existing one, by name.

        Raises:
            AwsError: As `ask`.
        """
        known = {"Name": f"tag:{TAG}", "Values": [name]}
        any_of_them = {"Name": "tag-key", "Values": [TAG]}
        only = [any_of_them if name is None else known]
        found: dict[str, LaunchResources] = defaultdict(LaunchResources)
        for each in self.paginate("describe_instances", "Reservations", Filters=only):
            for instance in each["Instances"]:
                found[_launch(instance)].instances.append(instance)
        for each in self.paginate("describe_volumes", "Volumes", Filters=only):
            found[_launch(each)].volumes.append(each["VolumeId"])
        for each in self.paginate("describe_security_groups", "SecurityGroups", Filters=only):
            found[_launch(each)].security_groups.append(each["GroupId"])
        for each in self.paginate("describe_placement_groups", "PlacementGroups", Filters=only):
            if each["State"] not in GOING:
                found[_launch(each)].placement_groups.append(each["GroupName"])
        for there in found.values():
            there.instances.sort(key=lambda instance: str(instance["LaunchTime"]))
        return {each: there for each, there in found.items() if name or not there.is_empty}

    def instances(self, name: str) -> dict[str, dict[str, Any]]:
        """The instances of a launch by id.

        Raises:
            AwsError: As `ask`.
        """
        only = [{"Name": f"tag:{TAG}", "Values": [name]}]
        pages = self.paginate("describe_instances", "Reservations", Filters=only)
        return {each["InstanceId"]: each for page in pages for each in page["Instances"]}

    def _call(self, method: str, arguments: dict[str, Any]) -> dict[str, Any]:
        with aws_errors_as(AwsError):
            if self._client is None:
                self._client = _connect(self.region)
            answer: dict[str, Any] = getattr(self._client, method)(**arguments)
            return answer


def default_region() -> str | None:
    """The region of the user's AWS configuration, if any.

    Raises:
        AwsError: The settings cannot be used.
    """
    import boto3

    with aws_errors_as(AwsError):
        found: str | None = boto3.Session().region_name
        return found


def has_ended(instance: dict[str, Any]) -> bool:
    return instance["State"]["Name"] in ENDED


def why_ended(instance: dict[str, Any]) -> str:
    said = instance.get("StateReason", {}).get("Message") or instance.get("StateTransitionReason")
    return f"AWS terminated it: {said or 'no reason given'}"


def rented_node(instance: dict[str, Any], now: datetime) -> RentedNode:
    """An instance as a node; without AWS's time of termination, ``now`` counts."""
    ended = None
    if has_ended(instance):
        said = MOMENT.search(instance.get("StateTransitionReason") or "")
        ended = datetime.strptime(said[1], "%Y-%m-%d %H:%M:%S").replace(tzinfo=UTC) if said else now
    return RentedNode(
        instance=instance["InstanceId"],
        began_at=instance["LaunchTime"].isoformat(),
        inside=instance.get("PrivateIpAddress") or None,
        outside=instance.get("PublicIpAddress") or None,
        ended_at=ended.isoformat() if ended else None,
    )


def _launch(thing: dict[str, Any]) -> str:
    return next((tag["Value"] for tag in thing.get("Tags", ()) if tag["Key"] == TAG), "")


def _connect(region: str) -> Any:
    import boto3

    return boto3.Session().client("ec2", region_name=region, config=client_config(TRIES))
