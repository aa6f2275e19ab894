"""Export a SkyPilot task, after SkyPilot's own schema.

SkyPilot chooses images and zones. It creates no volumes or placement groups, and requests no local
disks from EC2.
"""

from typing import Any

from tonnage.provision.export.aws import disks_to_request
from tonnage.provision.export.document import ExportedDocument, ExportError
from tonnage.provision.rental import BOOT_GIB, WHEELS, Rental

MEASURE = "~/tonnage/bin/tonnage measure disk --dir /tonnage/*\n"
"""The task: measure whether disks are as fast as planned."""


def export(rental: Rental) -> ExportedDocument:
    """Build the task.

    Raises:
        ExportError: SkyPilot cannot rent the candidate's disks, volumes or placement.
    """
    candidate, offer = rental.candidate, rental.offer
    others = "choose another candidate" + (
        ", or export for ray or aws" if candidate.provider == "aws" else ""
    )
    if candidate.volumes:
        raise ExportError(f"SkyPilot does not support attaching volumes; {others}")
    if candidate.placement:
        raise ExportError(
            "SkyPilot does not support placement groups; plan without placement"
            + (", or export for ray or aws" if candidate.provider == "aws" else "")
        )
    if candidate.provider == "aws" and disks_to_request(rental):
        raise ExportError(
            f"SkyPilot does not support requesting local disks on EC2, but {offer.type} attaches "
            f"its disks only on request; {others}"
        )
    document: dict[str, Any] = {
        "name": rental.name,
        "num_nodes": candidate.nodes,
        "resources": {
            "infra": f"{candidate.provider}/{rental.region}",
            "instance_type": offer.type,
            "disk_size": BOOT_GIB,
            "use_spot": rental.spot,
        },
        "file_mounts": dict(WHEELS),
        "setup": rental.install() + (rental.mount() if rental.has_disks else ""),
    }
    if rental.has_disks:
        document["run"] = MEASURE
    return ExportedDocument(
        document=document, replace=rental.replace_region, notes=rental.wheel_notes()
    )
