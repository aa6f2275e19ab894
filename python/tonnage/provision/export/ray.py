"""Export a cluster for Ray's launcher, after the schema that ships with Ray.

The head stores data like the workers: together they are the candidate's nodes, and their number is
fixed.
"""

from typing import Any

from tonnage.provision.export import aws
from tonnage.provision.export.document import ExportedDocument, ExportError
from tonnage.provision.rental import BOOT_GIB, WHEELS, Rental, placeholder

VERSION = "2.60.0"
"""The version of Ray on nodes and launcher, whose schema is tested."""
USER = "ubuntu"
"""SSH user of the image."""
PATH = "grep -q tonnage/bin ~/.bashrc || echo 'export PATH=~/tonnage/bin:$PATH' >> ~/.bashrc"
"""Ray runs each command in a new shell."""


def export(rental: Rental) -> ExportedDocument:
    """Build the cluster document.

    Raises:
        ExportError: Ray's launcher cannot rent the candidate's volumes or placement.
    """
    candidate = rental.candidate
    if candidate.placement and candidate.provider != "aws":
        raise ExportError(
            f"Ray does not support placement groups on {candidate.provider}; plan without placement"
        )
    provider, node, replace = PROVIDERS[candidate.provider](rental)
    workers = candidate.nodes - 1
    vcpus = rental.offer.vcpus
    alike = {"resources": {"CPU": int(vcpus)} if vcpus and vcpus >= 1 else {}, "node_config": node}
    types: dict[str, Any] = {"head": {"min_workers": 0, "max_workers": 0, **alike}}
    if workers:
        types["worker"] = {"min_workers": workers, "max_workers": workers, **alike}
    commands = [rental.install(f"ray[default]=={VERSION}"), PATH]
    if rental.has_disks:
        commands.append(rental.mount())
    notes = [
        *rental.wheel_notes(),
        f"start the cluster with ray up of Ray {VERSION}, the version on the nodes",
    ]
    if candidate.placement:
        notes.append(
            f"create the placement group first: aws ec2 create-placement-group --group-name "
            f"{rental.name} --strategy cluster --region {rental.region}"
        )
    return ExportedDocument(
        document={
            "cluster_name": rental.name,
            "max_workers": workers,
            # All at once: idle nodes are billed, too.
            "upscaling_speed": float(candidate.nodes),
            "provider": provider,
            "auth": {"ssh_user": USER},
            "available_node_types": types,
            "head_node_type": "head",
            "file_mounts": dict(WHEELS),
            "setup_commands": commands,
        },
        replace=replace,
        notes=notes,
    )


Part = tuple[dict[str, Any], dict[str, Any], dict[str, str]]
"""The provider, a node, and their placeholders."""


def _aws(rental: Rental) -> Part:
    zone = placeholder("availability_zone")
    provider = {
        "type": "aws",
        "region": rental.region,
        # One zone: traffic between zones is slower and billed.
        "availability_zone": zone,
        # A stopped node loses its disks while its volumes are billed.
        "cache_stopped_nodes": False,
    }
    return (
        provider,
        aws.node(rental),
        {**rental.replace_region, **aws.replace_image(rental), zone: "a zone of the region"},
    )


def _gcp(rental: Rental) -> Part:
    zone = placeholder("availability_zone")
    project, image = placeholder("project_id"), placeholder("sourceImage")
    provider = {
        "type": "gcp",
        "region": rental.region,
        "availability_zone": zone,
        "project_id": project,
    }
    boot = {"diskSizeGb": BOOT_GIB, "sourceImage": image}
    disks: list[dict[str, Any]] = [
        {"boot": True, "autoDelete": True, "type": "PERSISTENT", "initializeParams": boot}
    ]
    if volumes := rental.candidate.volumes:
        attached = {
            "diskSizeGb": volumes.gib_each,
            "diskType": f"zones/{zone}/diskTypes/{volumes.kind}",
        }
        disks += [
            {"autoDelete": True, "type": "PERSISTENT", "initializeParams": attached}
            for _ in range(volumes.count)
        ]
    node: dict[str, Any] = {"machineType": rental.offer.type, "disks": disks}
    if rental.spot:
        node["scheduling"] = [{"preemptible": True}]
    return (
        provider,
        node,
        {
            **rental.replace_region,
            zone: "a zone of the region",
            project: "your project's id",
            image: f"an image, or its family, of {rental.system}",
        },
    )


def _azure(rental: Rental) -> Part:
    if rental.candidate.volumes:
        raise ExportError(
            "Ray does not support attaching volumes on azure; choose another candidate or provider"
        )
    image, zone = placeholder("imageId"), placeholder("availability_zone")
    provider = {
        "type": "azure",
        "location": rental.region,
        "resource_group": rental.name,
        "availability_zone": zone,
    }
    node: dict[str, Any] = {"vmSize": rental.offer.type, "imageId": image}
    if rental.spot:
        node["priority"] = "Spot"
    return (
        provider,
        {"azure_arm_parameters": node},
        {
            **rental.replace_region,
            zone: "the number of a zone of the region, or none",
            image: f"the resource id of an image of {rental.system}",
        },
    )


PROVIDERS = {"aws": _aws, "gcp": _gcp, "azure": _azure}
