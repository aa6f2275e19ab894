"""A candidate of a plan as a document that rents it; pure functions, which rent nothing.

``ray``: a cluster for Ray's launcher. ``aws``: boto3's request. ``skypilot``: a SkyPilot task.
What only the user's account can tell (an image, a zone) stands as ``REPLACE-...`` in a document,
and is told beside it: nothing is invented.
"""

from tonnage.provision.export import aws, ray, skypilot
from tonnage.provision.export.rental import ExportedDocument, ExportError, Rental

EXPORTERS = {"ray": ray.export, "aws": aws.export, "skypilot": skypilot.export}
"""What a candidate can be handed over as."""

__all__ = ["EXPORTERS", "ExportedDocument", "ExportError", "Rental"]
