"""Export boto3 requests to EC2: ``run_instances``, and the placement group before it.

Fields are those of EC2's API reference (RunInstances, CreatePlacementGroup).
"""

from typing import Any

from tonnage.provision.export.document import ExportedDocument, ExportError
from tonnage.provision.rental import Rental, placeholder
from tonnage.provision.user_data import user_data

LETTERS = "bcdefghijklmnopqrstuvwxyz"
"""Letters of devices after ``/dev/sd``, all that EC2 has; ``a`` is the system's."""
FIRST_VOLUME = LETTERS.index("f")
"""EC2 recommends ``f`` and later for volumes."""


def export(rental: Rental) -> ExportedDocument:
    """Build the requests and their region.

    Raises:
        ExportError: The candidate is another provider's, or has more disks than EC2 has names.
    """
    candidate = rental.candidate
    if candidate.provider != "aws":
        raise ExportError(
            f"the AWS export cannot rent machines of {candidate.provider}; plan for provider "
            "aws, or "
            "export for ray or skypilot"
        )
    tags = [{"Key": "Name", "Value": rental.name}]
    tagged = ["instance", "volume"] if candidate.volumes else ["instance"]
    request = {
        "MinCount": candidate.nodes,
        "MaxCount": candidate.nodes,
        "KeyName": placeholder("KeyName"),
        "SubnetId": placeholder("SubnetId"),
        **node(rental),
        "TagSpecifications": [{"ResourceType": each, "Tags": tags} for each in tagged],
    }
    if script := user_data(rental):
        request["UserData"] = script
    document: dict[str, Any] = {"region": rental.region}
    if candidate.placement:
        document["create_placement_group"] = {"GroupName": rental.name, "Strategy": "cluster"}
    return ExportedDocument(
        document=document | {"run_instances": request},
        replace={
            **rental.replace_region,
            **replace_image(rental),
            placeholder("KeyName"): "the name of your key pair",
            placeholder("SubnetId"): "the id of a subnet, whose zone all nodes are in",
        },
        notes=[
            "each key is a method of boto3's EC2 client, with its arguments",
            *(
                ["disks are mounted in /tonnage when a node starts; Tonnage is not installed"]
                if rental.has_disks
                else ["Tonnage is not installed"]
            ),
        ],
    )


def replace_image(rental: Rental) -> dict[str, str]:
    """The placeholders of `node`."""
    description = f"the id of an image of {rental.system} in {rental.region}"
    return {placeholder("ImageId"): description}


def node(rental: Rental) -> dict[str, Any]:
    """The part of the request that describes a node."""
    candidate, offer = rental.candidate, rental.offer
    request: dict[str, Any] = {"ImageId": placeholder("ImageId"), "InstanceType": offer.type}
    if candidate.placement:
        request["Placement"] = {"GroupName": rental.name}
    if devices := _devices(rental):
        request["BlockDeviceMappings"] = devices
    if candidate.volumes and offer.volume_link.optional:
        request["EbsOptimized"] = True
    if rental.spot:
        request["InstanceMarketOptions"] = {"MarketType": "spot"}
    return request


def disks_to_request(rental: Rental) -> int:
    """The number of local disks that EC2 attaches only on request: all but NVMe ones.

    Raises:
        ExportError: Their number is unknown.
    """
    if not rental.candidate.own_disks:
        return 0
    disks = [each for each in rental.offer.disks or () if each.kind != "nvme"]
    if any(each.count is None for each in disks):
        raise ExportError(
            f"the number of local disks of {rental.offer.type} is unknown, but EC2 needs it; "
            "choose another candidate"
        )
    return sum(each.count or 0 for each in disks)


def _devices(rental: Rental) -> list[dict[str, Any]]:
    own, volumes = disks_to_request(rental), rental.candidate.volumes
    first = max(FIRST_VOLUME, own)
    count = volumes.count if volumes else 0
    if max(own, first + count if count else 0) > len(LETTERS):
        raise ExportError(
            f"EC2 has names for only {len(LETTERS)} devices, too few for {own} local disks and "
            f"{count} volumes; choose another candidate"
        )
    devices: list[dict[str, Any]] = [
        {"DeviceName": f"/dev/sd{LETTERS[at]}", "VirtualName": f"ephemeral{at}"}
        for at in range(own)
    ]
    if volumes:
        devices += [
            {
                "DeviceName": f"/dev/sd{LETTERS[first + at]}",
                "Ebs": {
                    "VolumeSize": volumes.gib_each,
                    "VolumeType": volumes.kind,
                    "DeleteOnTermination": True,
                },
            }
            for at in range(count)
        ]
    return devices
