"""Export a plan's candidate as a document for another tool; renting nothing.

``ray``: a cluster for Ray's launcher. ``aws``: boto3 requests. ``skypilot``: a SkyPilot task.
Values that only the user's account has (an image, a zone) are ``REPLACE-...`` placeholders, listed
with the document.
"""

from tonnage.provision.export import aws, ray, skypilot
from tonnage.provision.export.document import ExportedDocument, ExportError
from tonnage.provision.rental import Rental

EXPORTERS = {"ray": ray.export, "aws": aws.export, "skypilot": skypilot.export}
"""Exporters by kind."""

__all__ = ["EXPORTERS", "ExportError", "ExportedDocument", "Rental"]
