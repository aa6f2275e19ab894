"""EC2 as launches ask it, through boto3; credentials that have expired are looked for once more.

What a launch has rented is found by its tag: by that, and by no record, it is counted and ended.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from tonnage.base.records.launch import RentedNode
from tonnage.catalog.aws_errors import EXPIRED, aws_errors_as, error_code
from tonnage.provision.aws.requests import TAG

TRIES = 4
ENDED = ("shutting-down", "terminated", "stopping", "stopped")
"""States of a machine that is not paid for."""
GONE = "terminated"
ENDING = ("shutting-down", GONE)
"""States of a machine that somebody has ended; one that is stopped would stay, with its volumes."""
GOING = ("deleting", "deleted")
"""States of a placement group that is none any more."""
MOMENT = re.compile(r"\((\d{4}-\d\d-\d\d \d\d:\d\d:\d\d) (?:GMT|UTC)\)")
"""In why a machine's state changed, when it did."""


class AwsError(Exception):
    """AWS refused, or did not answer; says why, and what to do, in one line."""

    @property
    def code(self) -> str:
        """AWS' name for it; empty if it said none."""
        return error_code(self.__cause__)


@dataclass
class LaunchResources:
    """What AWS has of a launch: machines, also those that ended lately, and what is around them."""

    instances: list[dict[str, Any]] = field(default_factory=list)
    volumes: list[str] = field(default_factory=list)
    security_groups: list[str] = field(default_factory=list)
    placement_groups: list[str] = field(default_factory=list)

    @property
    def billed(self) -> list[str]:
        """The machines that are paid for."""
        return [each["InstanceId"] for each in self.instances if not has_ended(each)]

    @property
    def to_terminate(self) -> list[str]:
        """The machines that nobody has ended, those that are stopped as well."""
        return [
            each["InstanceId"] for each in self.instances if each["State"]["Name"] not in ENDING
        ]

    @property
    def shutting_down(self) -> list[str]:
        """Machines that are on their way out, and hold on to what is around them until then."""
        states = ((each["InstanceId"], each["State"]["Name"]) for each in self.instances)
        return [name for name, state in states if state in ENDED and state != GONE]

    @property
    def is_empty(self) -> bool:
        """Whether nothing is left of it."""
        around = self.volumes or self.security_groups or self.placement_groups
        return not (self.billed or self.shutting_down or around)

    @property
    def tags(self) -> dict[str, str]:
        """Those of its machines."""
        return {tag["Key"]: tag["Value"] for each in self.instances for tag in each.get("Tags", ())}

    def nodes(self, now: datetime) -> list[RentedNode]:
        """Its machines, for their price."""
        return [rented_node(each, now) for each in self.instances]


class Ec2:
    """EC2 in a region."""

    def __init__(self, region: str) -> None:
        self.region = region
        self._client: Any = None

    def call(self, method: str, **arguments: Any) -> dict[str, Any]:
        """What it answers to a request.

        Raises:
            AwsError: It refuses, or cannot be reached.
        """
        try:
            return self._asked(method, arguments)
        except AwsError as why:
            if why.code not in EXPIRED:
                raise
        # Whoever renews credentials puts them where a new session finds them.
        self._client = None
        return self._asked(method, arguments)

    def paginate(self, method: str, within: str, **arguments: Any) -> Iterator[dict[str, Any]]:
        """What is ``within`` the answer, page by page."""
        more: dict[str, Any] = {}
        while True:
            answer = self.call(method, **arguments, **more)
            yield from answer[within]
            if not answer.get("NextToken"):
                return
            more = {"NextToken": answer["NextToken"]}

    def find_resources(self, name: str | None = None) -> dict[str, LaunchResources]:
        """What there is of a launch of this name, or of every one that is not gone, by name.

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
        """The machines of a launch, by their ids.

        Raises:
            AwsError: As `ask`.
        """
        only = [{"Name": f"tag:{TAG}", "Values": [name]}]
        pages = self.paginate("describe_instances", "Reservations", Filters=only)
        return {each["InstanceId"]: each for page in pages for each in page["Instances"]}

    def _asked(self, method: str, arguments: dict[str, Any]) -> dict[str, Any]:
        with aws_errors_as(AwsError):
            if self._client is None:
                self._client = _connect(self.region)
            answer: dict[str, Any] = getattr(self._client, method)(**arguments)
            return answer


def default_region() -> str | None:
    """The region of the user's settings; ``None`` if there is none.

    Raises:
        AwsError: The settings cannot be used.
    """
    import boto3

    with aws_errors_as(AwsError):
        found: str | None = boto3.Session().region_name
        return found


def has_ended(instance: dict[str, Any]) -> bool:
    """Whether a machine is not paid for any more."""
    return instance["State"]["Name"] in ENDED


def why_ended(instance: dict[str, Any]) -> str:
    """Why a machine is not there any more."""
    said = instance.get("StateReason", {}).get("Message") or instance.get("StateTransitionReason")
    return f"AWS ended it: {said or 'without a word'}"


def rented_node(instance: dict[str, Any], now: datetime) -> RentedNode:
    """A machine as a node. The end of one that has ended is AWS' word, or, without, ``now``."""
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
    from botocore.config import Config

    patient = Config(
        retries={"mode": "standard", "total_max_attempts": TRIES},
        connect_timeout=10,
        read_timeout=60,
    )
    return boto3.Session().client("ec2", region_name=region, config=patient)
