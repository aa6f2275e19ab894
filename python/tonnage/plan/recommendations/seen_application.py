"""The job of an application, with what the catalogs know of the machines that it ran on."""

from tonnage.base.records.application import Application
from tonnage.base.records.job import Job
from tonnage.base.records.location import Location
from tonnage.catalog import Offer
from tonnage.model.jobs.application import application_job, busy_vcpus
from tonnage.plan.resources.machines import busy_core_speed, lasting_vcpus


def job_seen_on(
    application: Application,
    offer: Offer,
    nodes: int,
    *,
    read_from: Location | None = None,
    written_to: Location | None = None,
) -> Job:
    """The job of a run on so many of these machines; where its data is, as `application_job`."""
    return application_job(
        application,
        core_speed=busy_core_speed(offer, busy_vcpus(application) / nodes),
        vcpus=nodes * (lasting_vcpus(offer) or 0.0) or None,
        read_from=read_from,
        written_to=written_to,
    )
