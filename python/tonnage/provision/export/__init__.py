"""Export a plan's candidate as a document for another tool; renting nothing.

``ray``: a cluster for Ray's launcher. ``aws``: boto3 requests. ``skypilot``: a SkyPilot task. Of
applications of Spark, ``spark``: its settings; ``emr``, ``dataproc``, ``kubernetes``: clusters, or
the application, with these settings.
Values that only the user's account has (an image, a zone) are ``REPLACE-...`` placeholders, listed
with the document.
"""

from tonnage.provision.export import aws, ray, skypilot, spark
from tonnage.provision.export.document import (
    ExportedDocument,
    ExportError,
    OtherPlanNeeded,
    TooLittleMemory,
)
from tonnage.provision.rental import Rental

OF_SPARK = {
    "spark": spark.export_properties,
    "emr": spark.export_emr,
    "dataproc": spark.export_dataproc,
    "kubernetes": spark.export_kubernetes,
}
"""Exporters of applications of Spark alone."""
EXPORTERS = {"ray": ray.export, "aws": aws.export, "skypilot": skypilot.export, **OF_SPARK}
"""Exporters by kind."""

__all__ = [
    "EXPORTERS",
    "OF_SPARK",
    "ExportError",
    "ExportedDocument",
    "OtherPlanNeeded",
    "Rental",
    "TooLittleMemory",
]
