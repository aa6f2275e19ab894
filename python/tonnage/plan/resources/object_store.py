"""What all nodes of a cluster share of an object store: its requests and bytes a second.

Providers document how many requests a second a prefix or a bucket serves, or how many bytes an
account. Stores grow with their load over minutes, so that these are what a job can count on. A
job's requests of a kind are spread over its phases as the bytes are that they move.

A job states its longest requests. Where the engine makes them (of a sort, of a MapReduce), those of
a machine are no longer than its memory allows (`engine_requests`).
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Literal

import numpy as np
import numpy.typing as npt
from msgspec import structs

from tonnage.base.records.job import Job, JobPhase, Resource
from tonnage.base.records.profile import CapacityDistribution, Mode
from tonnage.catalog import Catalog, StoreLimits
from tonnage.plan.resources.engine_memory import intermediate_share

CONNECTIONS: Literal["object connections"] = "object connections"
"""The class of a node's own connections to the store."""
SharedClass = Literal["object requests", "object account"]
RequestSize = Literal["get bytes", "put bytes"]
"""A machine's figure: bytes that its requests of this kind move."""
SIZES: Mapping[Literal["get", "put"], RequestSize] = {"get": "get bytes", "put": "put bytes"}
WAYS: tuple[tuple[Literal["get", "put"], Resource], ...] = (
    ("get", "object get"),
    ("put", "object put"),
)
OF_A_PREFIX = (
    *("gets_per_second", "puts_per_second"),
    *("read_bytes_per_second", "write_bytes_per_second"),
)
"""The limits of a store that are those of one prefix, bucket or account."""
NINETY = 1.645
"""Standard deviations from the median to the end of the middle 90 % of a normal distribution."""
REQUESTED_BY = "the requests of the job"
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Requests:
    """A job's requests of a kind, as it states them."""

    kind: Literal["get", "put"]
    per_byte: float
    """Requests for each byte of input."""
    moved: float
    """The bytes that they move, for each byte of input."""
    size: RequestSize | None
    """The machine's figure that limits their length; ``None``: they are as stated on any."""

    @property
    def longest(self) -> float:
        """Bytes of a request, as stated."""
        return self.moved / self.per_byte

    def per_byte_of(self, figure: Floats) -> Floats:
        """Requests for each byte of input, of machines with these figures."""
        return self.moved / np.minimum(figure, self.longest)


def requests_of(job: Job) -> Sequence[Requests]:
    """The job's requests of each kind."""
    found, is_engine_job = [], intermediate_share(job) is not None
    for way, resource in WAYS:
        per_byte = sum(each.per_byte for each in job.requests if each.kind == way)
        moved = sum(_bytes(each, resource) for each in job.phases)
        if per_byte:
            size = SIZES[way] if is_engine_job and moved else None
            found.append(Requests(way, per_byte, moved, size))
    return found


@dataclass(frozen=True)
class SharedDemand:
    """Requests or bytes for each byte of input, and how many of them all nodes get a second."""

    resource_class: SharedClass
    resource: str
    per_byte: float
    """Of requests whose size is a machine's, the bytes that they move."""
    capacity: CapacityDistribution
    source: str
    size: RequestSize | None = None
    longest: float | None = None
    """No request is longer, whatever the machine's figure."""


def shared_demands(
    job: Job, limits: StoreLimits, requests: Sequence[Requests]
) -> list[list[SharedDemand]]:
    """What each phase demands of the store, where a limit is documented."""
    return [list(_shared_demands(phase, limits, requests)) for phase in job.phases]


def _shared_demands(
    phase: JobPhase, limits: StoreLimits, requests: Sequence[Requests]
) -> Iterator[SharedDemand]:
    for way, resource in WAYS:
        moved = _bytes(phase, resource)
        if not moved:
            continue
        gets = way == "get"
        most = limits.gets_per_second if gets else limits.puts_per_second
        for each in requests if most else ():
            if each.kind != way:
                continue
            law = _law(f"{way} requests", most, limits.source)
            if each.size:
                by_memory = each.size, each.longest
                yield SharedDemand(
                    "object requests", law.resource, moved, law, REQUESTED_BY, *by_memory
                )
            else:
                part = each.per_byte * moved / each.moved
                yield SharedDemand("object requests", law.resource, part, law, REQUESTED_BY)
        most = limits.read_bytes_per_second if gets else limits.write_bytes_per_second
        if most:
            law = _law(f"account {way}", most, limits.source)
            sources = (each.source for each in phase.demands if each.resource == resource)
            source = "; ".join(dict.fromkeys(sources))
            yield SharedDemand("object account", law.resource, moved, law, source)


def with_prefixes(catalog: Catalog, prefixes: int) -> Catalog:
    """The catalog whose store delivers what so many of its prefixes, buckets or accounts do."""
    store = catalog.object_store
    if prefixes == 1 or store is None or store.limits is None:
        return catalog
    limits = store.limits
    shared = {name: getattr(limits, name) for name in OF_A_PREFIX}
    many = {name: rate and rate * prefixes for name, rate in shared.items()}
    source = f"{prefixes} times what one has: {limits.source}"
    more = structs.replace(limits, **many, source=source)
    return structs.replace(catalog, object_store=structs.replace(store, limits=more))


@cache
def connection_law(limits: StoreLimits) -> CapacityDistribution | None:
    """Bytes a second of one request at a time, if that is documented."""
    if limits.connection_bytes_per_second is None:
        return None
    low, high = limits.connection_bytes_per_second
    return CapacityDistribution(
        resource="object get",
        modes=[
            Mode(
                median=math.sqrt(low * high),
                spread=math.log(high / low) / (2 * NINETY),
                instances=1,
            )
        ],
        of_fleet=True,
        evidence="advertised",
        source=f"by each request that is under way: {limits.source}",
        spread_source="the documented range, taken for the middle 90 %",
    )


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
