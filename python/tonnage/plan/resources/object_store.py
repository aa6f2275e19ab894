"""What all nodes of a cluster share of an object store: its requests and bytes a second.

Providers document how many requests a second a prefix or a bucket serves, or how many bytes an
account. Stores grow with their load over minutes, so that these are what a job can count on. A
job's requests of a kind are spread over its phases as the bytes are that they move.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Literal

from tonnage.base.records.job import Job, JobPhase, Resource
from tonnage.base.records.profile import CapacityDistribution, Mode
from tonnage.catalog import StoreLimits

SharedClass = Literal["object requests", "object account"]
WAYS: tuple[tuple[Literal["get", "put"], Resource], ...] = (
    ("get", "object get"),
    ("put", "object put"),
)
REQUESTED_BY = "the requests of the job"


@dataclass(frozen=True)
class SharedDemand:
    """Requests or bytes for each byte of input, and how many of them all nodes get a second."""

    resource_class: SharedClass
    resource: str
    per_byte: float
    capacity: CapacityDistribution
    source: str


def shared_demands(job: Job, limits: StoreLimits) -> list[list[SharedDemand]]:
    """What each phase demands of the store, where a limit is documented."""
    of_job = {way: sum(_bytes(each, way) for each in job.phases) for _, way in WAYS}
    return [list(_shared_demands(job, phase, of_job, limits)) for phase in job.phases]


def _shared_demands(
    job: Job, phase: JobPhase, of_job: Mapping[Resource, float], limits: StoreLimits
) -> Iterator[SharedDemand]:
    for way, resource in WAYS:
        moved = _bytes(phase, resource)
        if not moved:
            continue
        requests = sum(each.per_byte for each in job.requests if each.kind == way)
        share = moved / of_job[resource]
        gets = way == "get"
        most = limits.gets_per_second if gets else limits.puts_per_second
        if most and requests:
            law = _law(f"{way} requests", most, limits.source)
            yield SharedDemand("object requests", law.resource, requests * share, law, REQUESTED_BY)
        most = limits.read_bytes_per_second if gets else limits.write_bytes_per_second
        if most:
            law = _law(f"account {way}", most, limits.source)
            sources = (each.source for each in phase.demands if each.resource == resource)
            source = "; ".join(dict.fromkeys(sources))
            yield SharedDemand("object account", law.resource, moved, law, source)


def _bytes(phase: JobPhase, resource: Resource) -> float:
    return sum(each.per_byte for each in phase.demands if each.resource == resource)


@cache
def _law(resource: str, rate: float, source: str) -> CapacityDistribution:
    """One object for each limit, so that equal terms are computed once."""
    return CapacityDistribution(
        resource=resource,
        modes=[Mode(median=rate, spread=0.0, instances=1)],
        of_fleet=True,
        evidence="advertised",
        source=f"of all nodes together: {source}",
        spread_source="documented; the store grows with its load",
    )
