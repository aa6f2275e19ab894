"""boto3's requests to EC2: ``run_instances``, and before it the placement group.

Fields are those of EC2's API reference (RunInstances, CreatePlacementGroup).
"""

from __future__ import annotations

from typing import Any

from tonnage.provision.export.rental import ExportedDocument, ExportError, Rental, placeholder

LETTERS = "bcdefghijklmnopqrstuvwxyz"
"""Of a node's devices, after ``/dev/sd``: ``a`` is the system's. EC2 has no more."""
FIRST_VOLUME = LETTERS.index("f")
"""EC2 recommends ``f`` and what follows for volumes."""


def export(rental: Rental) -> ExportedDocument:
    """The requests, and the region that they go to.

    Raises:
        ExportError: The candidate is another provider's, or has more disks than EC2 has names.
    """
    candidate = rental.candidate
    if candidate.provider != "aws":
        raise ExportError(
            f"it is of {candidate.provider}: give --provider aws, or --emit ray or skypilot"
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
    if rental.has_disks:
        request["UserData"] = "#!/bin/bash\n" + rental.mount()
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
            "each part is the arguments of the method of boto3's EC2 client that it names",
            *(
                ["disks are mounted in /tonnage as a node starts; Tonnage is not installed"]
                if rental.has_disks
                else ["Tonnage is not installed"]
            ),
        ],
    )


def replace_image(rental: Rental) -> dict[str, str]:
    """What to replace in `node`."""
    said = f"the id of an image of {rental.system} in {rental.region}"
    return {placeholder("ImageId"): said}


def node(rental: Rental) -> dict[str, Any]:
    """What EC2 has to be told of each node."""
    candidate, offer = rental.candidate, rental.offer
    found: dict[str, Any] = {
        "ImageId": placeholder("ImageId"),
        "InstanceType": offer.type,
    }
    if candidate.placement:
        found["Placement"] = {"GroupName": rental.name}
    if devices := _devices(rental):
        found["BlockDeviceMappings"] = devices
    if candidate.volumes and offer.volume_link.optional:
        found["EbsOptimized"] = True
    if rental.spot:
        found["InstanceMarketOptions"] = {"MarketType": "spot"}
    return found


def disks_to_request(rental: Rental) -> int:
    """How many local disks EC2 attaches only if asked: all but NVMe ones, which are just there.

    Raises:
        ExportError: Their number is unknown.
    """
    if not rental.candidate.own_disks:
        return 0
    disks = [each for each in rental.offer.disks or () if each.kind != "nvme"]
    if any(each.count is None for each in disks):
        raise ExportError(
            f"the number of local disks of {rental.offer.type} is unknown, and EC2 has to be told: "
            "choose another --candidate"
        )
    return sum(each.count or 0 for each in disks)


def _devices(rental: Rental) -> list[dict[str, Any]]:
    own, volumes = disks_to_request(rental), rental.candidate.volumes
    first = max(FIRST_VOLUME, own)
    count = volumes.count if volumes else 0
    if max(own, first + count if count else 0) > len(LETTERS):
        raise ExportError(
            f"EC2 has names for {len(LETTERS)} devices, these are {own} local disks and {count} "
            "volumes: choose another --candidate"
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
