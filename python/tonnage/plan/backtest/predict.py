"""Plan a published sort's own set-up, and compare the plan with what it took.

The plan has the record's machines, their number, and where its data was; the best layout of its
disks is the planner's choice, unless the source states one. Times of records begin with running
machines, so their start is not counted. What an engine's cores take is known only if they did not
limit it.
"""

import dataclasses
from collections.abc import Sequence

from msgspec import structs

from tonnage.base.records.job import Job
from tonnage.base.records.plan import Candidate, Range
from tonnage.catalog import Catalog, Offer
from tonnage.model.jobs.mapreduce import sort_job
from tonnage.model.profiles.repository import ProfileIndex
from tonnage.plan.backtest.published_sorts import (
    ENGINES,
    LAYOUTS,
    LOCATIONS,
    MACHINES,
    WORKERS,
    Engine,
    PublishedSort,
)
from tonnage.plan.planner import PlanRequest, plan
from tonnage.plan.search import Limits


@dataclasses.dataclass(frozen=True)
class Prediction:
    """What a plan of the record's set-up says."""

    record: PublishedSort
    candidate: Candidate
    engine: Engine

    @property
    def put_in(self) -> list[str]:
        """What the plan was given besides the set-up, with its sources."""
        stored = {self.record.read_from, self.record.written_to} & {"s3"}
        requests = [self.engine.requests] if stored and self.engine.requests else []
        machine = MACHINES.get(self.record.machine_type)
        layout, workers = LAYOUTS.get(self.record.name), WORKERS.get(self.record.name)
        facts = [each.source for each in (machine, layout, workers) if each]
        return [f"cores did not limit it: {self.engine.cores}", *requests, *facts]

    @property
    def seconds_error(self) -> float:
        """Relative to the true time."""
        return self.candidate.seconds.median / self.record.seconds - 1

    @property
    def usd_error(self) -> float | None:
        usd = self.record.usd
        return None if usd is None else self.candidate.cost_usd.median / usd - 1

    @property
    def inside(self) -> bool:
        """Whether the true time is inside the interval."""
        return _contains(self.candidate.seconds, self.record.seconds)

    @property
    def usd_inside(self) -> bool | None:
        usd = self.record.usd
        return None if usd is None else _contains(self.candidate.cost_usd, usd)


@dataclasses.dataclass(frozen=True)
class Skipped:
    record: PublishedSort
    why: str


def predict(
    record: PublishedSort, catalogs: Sequence[Catalog], known: ProfileIndex
) -> Prediction | Skipped:
    """Predict the record's time and cost; or say why that is impossible."""
    catalog = _catalog(record, catalogs)
    if catalog is None:
        return Skipped(record, f"no catalog has its machines ({record.machine_type})")
    engine = ENGINES.get(record.engine)
    if engine is None:
        return Skipped(record, f"nobody published what {record.engine}'s cores take of a GB")
    workers = WORKERS.get(record.name)
    nodes = workers.nodes if workers else record.nodes
    request = PlanRequest(
        job=_job(record, engine),
        size=record.bytes,
        limits=Limits(min_nodes=nodes, max_nodes=nodes),
        include=frozenset(["previous"]),
        all_sizes=True,
        prefixes=engine.prefixes,
    )
    made = plan(request, [catalog], known)
    layout = LAYOUTS.get(record.name)
    fitting = [each for each in made.candidates if not layout or layout.name == each.layout]
    if not fitting:
        return Skipped(record, "; ".join(dict.fromkeys(each.why for each in made.excluded)))
    return Prediction(record, _with_all_paid(fitting[0], record.nodes), engine)


def _with_all_paid(candidate: Candidate, nodes: int) -> Candidate:
    """The candidate with the cost of so many machines, of which some only direct the others."""
    more = nodes / candidate.nodes
    usd = candidate.cost_usd
    paid = Range(low=more * usd.low, median=more * usd.median, high=more * usd.high)
    return structs.replace(candidate, cost_usd=paid)


def _contains(interval: Range, value: float) -> bool:
    return interval.low <= value <= interval.high


def _catalog(record: PublishedSort, catalogs: Sequence[Catalog]) -> Catalog | None:
    """The catalog nearest in time that has the record's machines, and only those."""
    having = [
        (abs(int((each.date or "0")[:4]) - record.year), each)
        for each in catalogs
        if each.provider == record.provider
        and any(offer.type == record.machine_type for offer in each.offers)
    ]
    if not having:
        return None
    _, nearest = min(having, key=lambda pair: pair[0])
    offers = tuple(_with_facts(each) for each in nearest.offers if each.type == record.machine_type)
    return structs.replace(nearest, offers=offers)


def _with_facts(offer: Offer) -> Offer:
    facts = MACHINES.get(offer.type)
    if facts is None:
        return offer
    disks = tuple(
        structs.replace(
            each,
            read_bytes_per_second=facts.disk_read,
            write_bytes_per_second=facts.disk_write,
            rate_source=facts.source,
        )
        for each in offer.disks or ()
    )
    network = structs.replace(offer.network, baseline_bytes_per_second=facts.network)
    return structs.replace(offer, disks=disks, network=network)


def _job(record: PublishedSort, engine: Engine) -> Job:
    """The engine's sort, without cores, which did not limit it, and with requests of its own."""
    job = sort_job(
        record.durability,
        read_from=LOCATIONS[record.read_from],
        written_to=LOCATIONS[record.written_to],
    )
    phases = [
        structs.replace(
            phase, demands=[each for each in phase.demands if not each.resource.startswith("cpu")]
        )
        for phase in job.phases
    ]
    sizes = {"get": engine.get_bytes, "put": engine.put_bytes}
    requests = [
        structs.replace(each, per_byte=1 / size) if (size := sizes[each.kind]) else each
        for each in job.requests
    ]
    return structs.replace(job, name=record.engine, phases=phases, requests=requests)
