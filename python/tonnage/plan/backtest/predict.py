"""Plan a published sort's own set-up, and compare the plan with what it took.

The plan has the record's machines, their number, and where its data was; the best layout of its
disks is the planner's choice, unless the source states one. Times of records begin with running
machines, so their start is not counted. What an engine's cores take is known only if they did not
limit it, or if other runs of the same program are public: then the record is predicted from those.
"""

import dataclasses
from collections.abc import Sequence
from pathlib import Path

from msgspec import structs

from tonnage.base.records.job import Job
from tonnage.base.records.past_run import PastRun, PastRuns
from tonnage.base.records.plan import Candidate, Range
from tonnage.catalog import Catalog, Offer, load_catalog
from tonnage.model.jobs.mapreduce import sort_job
from tonnage.model.profiles.repository import ProfileIndex
from tonnage.plan.backtest.published_sorts import (
    ENGINES,
    LAYOUTS,
    LOCATIONS,
    MACHINES,
    RUNS,
    WORKERS,
    Engine,
    PublishedSort,
)
from tonnage.plan.past_runs.planner import plan_past_runs
from tonnage.plan.past_runs.run_table import read_runs
from tonnage.plan.planner import PlanRequest, plan
from tonnage.plan.search import Limits


@dataclasses.dataclass(frozen=True)
class Prediction:
    """What a plan of the record's set-up says."""

    record: PublishedSort
    candidate: Candidate
    put_in: list[str]
    """What the plan was given besides the set-up, with its sources."""

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
    if runs := RUNS.get(record.engine):
        return _from_runs(record, catalog, runs)
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
    return Prediction(record, _with_all_paid(fitting[0], record.nodes), _put_in(record, engine))


def _put_in(record: PublishedSort, engine: Engine) -> list[str]:
    stored = {record.read_from, record.written_to} & {"s3"}
    requests = [engine.requests] if stored and engine.requests else []
    machine = MACHINES.get(record.machine_type)
    layout, workers = LAYOUTS.get(record.name), WORKERS.get(record.name)
    facts = [each.source for each in (machine, layout, workers) if each]
    return [f"cores did not limit it: {engine.cores}", *requests, *facts]


def _from_runs(record: PublishedSort, catalog: Catalog, table: Path) -> Prediction:
    """From the other runs of the program on as much data; those of the record's own cluster are
    hidden."""
    hidden = record.machine_type, record.nodes
    others = [
        run
        for run in read_runs(table)
        if (run.machine_type, run.nodes) != hidden and run.data_bytes == record.bytes
    ]
    request = PlanRequest(
        job=Job(name=record.engine, phases=[], room=[]),
        size=record.bytes,
        limits=Limits(min_nodes=record.nodes, max_nodes=record.nodes),
        include=frozenset(["previous"]),
    )
    offers = _with_types(others, catalog)
    made = plan_past_runs(request, PastRuns(job=others[0].name, runs=others), None, [offers])
    (candidate,) = [each for each in made.candidates if each.offer == record.machine_type]
    known = f"{len(others)} other runs of the program on as much data ({record.source})"
    return Prediction(record, candidate, [known])


def _with_types(runs: Sequence[PastRun], catalog: Catalog) -> Catalog:
    """The catalog with the machine types of these runs, of which it has only the record's."""
    whole = load_catalog(catalog.name)
    types = {run.machine_type for run in runs} | {each.type for each in catalog.offers}
    return structs.replace(whole, offers=tuple(each for each in whole.offers if each.type in types))


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
