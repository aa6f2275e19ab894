"""``tonnage plan``."""

from __future__ import annotations

import datetime
import json
import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from tonnage.base import core, formatting
from tonnage.base.core.sockets import DESCRIPTORS
from tonnage.cli.options.option_groups import default
from tonnage.cli.options.planning import (
    DIVISIBLE,
    JobDescription,
    JobName,
    PlanSources,
    job_from,
    load_catalogs,
    load_profiles,
    refuse_without_store,
    require_offer,
    usual_location,
)
from tonnage.cli.options.prices.own_prices import PriceOptions
from tonnage.cli.options.types import (
    MAX_NODES,
    Count,
    Json,
    Option,
    Size,
    Switch,
    Time,
    number,
    parse_duration,
    parse_usd,
)
from tonnage.cli.options.validate import refuse_unknown, usage_errors
from tonnage.cli.output import print_result
from tonnage.cli.output.plan import explanation_lines, print_plan, print_survey
from tonnage.cli.output.planning.no_candidate import why_no_candidate
from tonnage.cli.plan.current_cluster import CurrentClusterOptions
from tonnage.cli.plan.emit import EmitOptions, emit_candidate
from tonnage.cli.plan.past_runs import (
    past_runs_in,
    print_next_runs,
    print_plan_of_past_runs,
    refuse_for_past_runs,
)

if TYPE_CHECKING:
    from tonnage.base.records.job import Job
    from tonnage.base.records.location import Location
    from tonnage.catalog import OfferKind
    from tonnage.model.profiles.repository import ProfileIndex
    from tonnage.plan.recommendations.current_cluster import Cluster
    from tonnage.plan.resources.startup import Startup
    from tonnage.plan.search import Limits

MIN_BYTES = 1_000
"""A smaller size probably lacks its unit."""
OBJECTIVES = ("cost", "time")
BILLING = ("seconds", "hours")
ARCHITECTURES = ("x86_64", "arm64")
ALL_KINDS = "all"


def parse_startup(text: str) -> float:
    """A duration, or 0 for machines that run already."""
    return 0.0 if re.fullmatch(r"\s*0+\s*(s|m|min|h|d)?\s*", text) else parse_duration(text)


@dataclass(frozen=True, kw_only=True)
class LimitOptions:
    deadline: Annotated[
        float | None,
        Time(
            "Maximum time for the job: clusters whose median time exceeds it are left out, and the "
            "probability of meeting it is shown."
        ),
    ] = None
    budget: Annotated[
        float | None,
        Option(
            "USD",
            "Maximum cost of the job, like 50USD; with --survey, of the suggested measurements.",
            parse_usd,
        ),
    ] = None
    max_nodes: Annotated[int, Count("Largest cluster to consider.", 1, MAX_NODES)] = default("250")
    nodes: Annotated[
        int | None,
        Count(
            "Consider only clusters of exactly this many nodes, whatever --max-nodes is.",
            1,
            MAX_NODES,
        ),
    ] = None
    quota_vcpus: Annotated[
        int | None,
        Count(
            "Only clusters with at most so many vCPUs, your account's quota for these machines. "
            "New accounts have few: AWS 5, Google Cloud 24 in a region. Default: any number.",
            1,
            1_000_000_000,
        ),
    ] = None
    descriptors: Annotated[
        int,
        Count(
            "Maximum open files and sockets of a process (ulimit -n), which limits the number of "
            "nodes of a sort or MapReduce, since each is connected to all others.",
            DESCRIPTORS,
            1 << 30,
        ),
    ] = default(str(DESCRIPTORS))
    objective: Annotated[str, Option("WHAT", "What to minimize: cost or time.")] = "cost"
    billing: Annotated[
        str,
        Option(
            "HOW",
            "Billing unit: seconds (with the provider's minimum), or hours (each started hour is "
            "billed in full).",
        ),
    ] = "seconds"

    def limits(self, survey: bool) -> Limits:
        from tonnage.plan.search import Limits

        refuse_unknown("--objective", [self.objective], OBJECTIVES)
        refuse_unknown("--billing", [self.billing], BILLING)
        return Limits(
            min_nodes=self.nodes or 1,
            max_nodes=self.nodes or self.max_nodes,
            deadline_seconds=math.inf if self.deadline is None else self.deadline,
            budget_usd=math.inf if self.budget is None or survey else self.budget,
            objective=self.objective,  # type: ignore[arg-type]
            billing_unit=self.billing,  # type: ignore[arg-type]
        )


@dataclass(frozen=True, kw_only=True)
class OfferOptions:
    network: Annotated[
        str,
        Option(
            "MODEL",
            "Network model: scaled (bandwidth per node falls as the cluster grows, as measured), "
            "baseline (bandwidth between two nodes), infinite (ignore the network).",
        ),
    ] = "scaled"
    purchase: Annotated[
        str,
        Option(
            "HOW",
            "on-demand, or spot (the cost is a range; interruptions count where their rate is "
            "published).",
        ),
    ] = "on-demand"
    provider: Annotated[
        list[str] | None,
        Option("NAME...", "Only offers of these providers: aws, gcp, azure, lab. Default: all."),
    ] = None
    arch: Annotated[
        str | None,
        Option("NAME", "Only offers of this architecture: x86_64 or arm64. Default: both."),
    ] = None
    placement: Annotated[
        bool | None,
        Switch(
            "--placement/--no-placement",
            "--placement: only offers in a placement group; --no-placement: only offers outside "
            "one. Default: both.",
        ),
    ] = None
    measured: Annotated[
        bool,
        Switch(
            "--measured", "Only offers for which every capacity that the job needs was measured."
        ),
    ] = False

    include: Annotated[
        list[str] | None,
        Option(
            "KIND...",
            "Also kinds of offers that are left out otherwise: gpu (accelerators), burstable "
            "(cores on credits), previous (generations), metal (without a hypervisor), hpc (a "
            "fast network among themselves only), all.",
        ),
    ] = None

    startup: Annotated[
        float | None,
        Time(
            "Time from the request of the machines until the job can begin; 0: they are ready. "
            "Default: as in finished launches, if a profile has some; else the boot of the slowest "
            "machine, as others measured it for the provider, then installing and screening as "
            "tonnage launch does.",
            parse_startup,
        ),
    ] = None

    prefixes: Annotated[
        int,
        Count(
            "Over how many prefixes (of a bucket at AWS), buckets (Google Cloud) or accounts "
            "(Azure) the data in object storage is spread: a store has limits for each.",
            1,
            1_000_000,
        ),
    ] = default("1")

    ignore_cores: Annotated[
        bool,
        Switch(
            "--ignore-cores",
            "Leave out what a job's own work takes of cores, as the papers' models do, unless a "
            "profile or the job states it.",
        ),
    ] = False

    any_memory: Annotated[
        bool,
        Switch(
            "--any-memory",
            "Count two passes on machines with too little memory, too, where a sort or MapReduce "
            "of this size needs a third.",
        ),
    ] = False

    public_addresses: Annotated[
        bool,
        Switch(
            "--public-addresses/--no-public-addresses",
            "Whether each machine has a public IPv4 address, which providers bill by the hour; "
            "tonnage launch then requests machines with or without.",
        ),
    ] = True

    def startup_laws(self, known: ProfileIndex) -> Startup:
        from tonnage.plan.resources.startup import default_startup, fixed_startup

        if self.startup is None:
            return default_startup(known.starts)
        return fixed_startup(self.startup)

    @property
    def of_known_demands(self) -> dict[str, object]:
        """The options that matter only where demands are known, by their flags; what is at its
        default is false."""
        return {
            "--network": self.network != "scaled",
            "--placement": self.placement is not None,
            "--measured": self.measured,
            "--startup": self.startup is not None,
            "--prefixes": str(self.prefixes) != "1",
            "--ignore-cores": self.ignore_cores,
            "--any-memory": self.any_memory,
        }

    @property
    def included(self) -> frozenset[OfferKind]:
        from tonnage.catalog import OFFER_KINDS

        asked = self.include or []
        return frozenset(kind for kind in OFFER_KINDS if kind in asked or ALL_KINDS in asked)

    def refuse_unknown(self) -> None:
        from tonnage.catalog import OFFER_KINDS
        from tonnage.plan.layouts import NETWORKS
        from tonnage.plan.resources.machines import PURCHASES

        refuse_unknown("--network", [self.network], NETWORKS)
        refuse_unknown("--purchase", [self.purchase], PURCHASES)
        refuse_unknown("--arch", [self.arch], ARCHITECTURES)
        refuse_unknown("--include", self.include or (), (*OFFER_KINDS, ALL_KINDS))


@dataclass(frozen=True, kw_only=True)
class PlannedJob(JobDescription):
    durability: Annotated[
        str | None,
        Option(
            "none|replicated",
            "sort, mapreduce: what protects output on the nodes' own disks: none; replicated (a "
            "copy on another node). Default: none.",
        ),
    ] = None
    egress: Annotated[
        float | None,
        Option(
            "RATIO",
            "Bytes sent to the internet, as a multiple of the input's size, billed at the "
            "provider's egress price. For a sort whose whole output you download: 1. Default: 0.",
            number(0, 1e9),
        ),
    ] = None

    def job(self, name: str, usual: Location, now: Cluster | None) -> Job:
        given = {flag: value for flag, value in self.given_flags.items() if flag != "--egress"}
        return job_from(name, given, usual, self.egress, now)


def plan(
    *,
    job: JobName,
    data: Annotated[
        int | None,
        Size(
            "Size of the input, like 20TB. Default: of a job that was observed or imported, that "
            "of its run."
        ),
    ] = None,
    sources: PlanSources,
    description: PlannedJob,
    limits: LimitOptions,
    offers: OfferOptions,
    pricing: PriceOptions,
    current: CurrentClusterOptions,
    every: Annotated[
        bool, Switch("--all", "Print all candidates, not the ten best of their families.")
    ] = False,
    every_size: Annotated[
        bool,
        Switch(
            "--every-size",
            "Plan and print all numbers of nodes, not only the best of each offer and layout; at "
            "most 20,000 candidates.",
        ),
    ] = False,
    explain: Annotated[
        str | None,
        Option(
            "OFFER", "Show how this offer's best candidate is computed: TYPE, or PROVIDER/TYPE."
        ),
    ] = None,
    survey: Annotated[
        bool, Switch("--survey", "Show which offers to measure next, best first.")
    ] = False,
    next_run: Annotated[
        bool,
        Switch(
            "--next",
            "Of past runs that were imported: which run to make next, so that the choice "
            "afterwards is a good one.",
        ),
    ] = False,
    emitting: EmitOptions,
    as_json: Json = False,
) -> None:
    """Find machines for a job: the cheapest, or those that meet a deadline.

    Each candidate is an offer with a node count and a disk layout. Capacities that were not
    measured are estimated from advertised figures, and marked as such.

    tonnage plan ops is a question of its own, with its own options: which disks and volumes give
    so many random operations a second (see tonnage plan ops --help).

    Examples:
        tonnage plan sort --data 20TB --deadline 2h
        tonnage plan reduce --data 5TB --passes 10 --provider aws
        tonnage plan sort --data 20TB --explain aws/i4i.4xlarge
        tonnage plan application.json --now "20 x r5.4xlarge" --per-month 30
        tonnage plan ops --operation read4k --rate 500k/s --data 10TB
    """
    from tonnage.base.records.job import Job
    from tonnage.plan.explain import explain as explain_offer
    from tonnage.plan.planner import PlanError, PlanRequest
    from tonnage.plan.planner import plan as make_plan
    from tonnage.plan.recommendations.current_cluster import (
        plan_on_current,
        with_current_cluster,
    )

    offers.refuse_unknown()
    emitting.refuse({"--explain": explain, "--survey": survey})
    if explain is not None and survey:
        raise core.UsageError("--explain and --survey print different things; remove one of them")
    _refuse_tiny(data)
    catalogs = load_catalogs(sources.catalog, offers.provider or (), sources.region or ())
    # Today's cluster may be of another provider than the candidates.
    everywhere = catalogs if sources.catalog else load_catalogs(None, (), sources.region or ())
    past = past_runs_in(job)
    if past is not None:
        refuse_for_past_runs(
            job,
            description.given_flags
            | {"--explain": explain, "--survey": survey}
            | {"--emit": emitting.emit, "--profile": sources.profile}
            | offers.of_known_demands
            | ({"--now": current.now, "--per-month": current.per_month} if next_run else {}),
        )
        request = PlanRequest(
            job=Job(name=past.job, phases=[], room=[]),
            size=0,
            limits=limits.limits(survey=False),
            purchase=offers.purchase,  # type: ignore[arg-type]
            providers=tuple(offers.provider or ()),
            arch=offers.arch,
            include=offers.included,
            quota_vcpus=limits.quota_vcpus,
            own_prices=pricing.own_prices(catalogs),
            today=datetime.date.today(),
            public_addresses=offers.public_addresses,
            all_sizes=every_size,
        )
        if next_run:
            print_next_runs(past, request, data, catalogs, as_json)
            return
        print_plan_of_past_runs(
            *(past, request, data, catalogs, current.cluster(everywhere), current.per_month),
            every=every or every_size,
            as_json=as_json,
        )
        return
    if next_run:
        raise core.UsageError(
            "--next is for a job of which only past runs are known (tonnage import RUNS.csv); "
            "remove it"
        )
    profiles = load_profiles(sources.profile, catalogs)
    now = current.cluster(everywhere)
    planned = description.job(job, usual_location(catalogs), now)
    if data is not None and planned.settings.get("reads_input") is False:
        raise core.UsageError(
            f"--data {data}: the log of {job} shows no input, so how its time grows with it is "
            "unknown; remove --data"
        )
    size = data or planned.seen_bytes
    if size is None:
        raise core.UsageError("--data is missing: the size of the input, like --data 20TB")
    refuse_without_store(planned, catalogs)
    if limits.nodes not in (None, 1) and not planned.divisible:
        raise core.UsageError(
            f"--nodes {limits.nodes}: the job in {job} is not known to divide; add {DIVISIBLE} if "
            "machines can share its input, or remove --nodes"
        )
    request = PlanRequest(
        job=planned,
        size=size,
        limits=limits.limits(survey),
        network=offers.network,  # type: ignore[arg-type]
        purchase=offers.purchase,  # type: ignore[arg-type]
        providers=tuple(offers.provider or ()),
        arch=offers.arch,
        placement=offers.placement,
        measured_only=offers.measured,
        include=offers.included,
        startup=offers.startup_laws(profiles),
        cores=not offers.ignore_cores,
        memory=not offers.any_memory,
        prefixes=offers.prefixes,
        quota_vcpus=limits.quota_vcpus,
        descriptors=limits.descriptors,
        own_prices=pricing.own_prices(catalogs),
        today=datetime.date.today(),
        public_addresses=offers.public_addresses,
        all_sizes=every_size,
    )
    no_slower = now is not None and limits.deadline is None
    with usage_errors(PlanError):
        today = None
        if now is not None:
            today = plan_on_current(request, now, profiles)
            if no_slower:
                request = request.no_slower_than(today.candidate)
        if explain is not None:
            offer = require_offer("--explain", catalogs, explain)
            of_provider = [each for each in catalogs if each.provider == offer.provider]
            explanation = explain_offer(request, of_provider, profiles, offer.type)
            print_result(explanation, explanation_lines(explanation), as_json)
            return
        made = make_plan(request, catalogs, profiles)
        if today is not None:
            made = with_current_cluster(made, request, today, current.per_month, catalogs, profiles)
    if survey:
        print_survey(made, limits.budget, as_json)
    elif not made.candidates:
        if as_json and emitting.emit is None:
            print(json.dumps(made.to_json()))
        raise core.UsageError(why_no_candidate(made, no_slower))
    elif emitting.emit is not None:
        emit_candidate(made, catalogs, emitting, as_json)
    elif as_json:
        print(json.dumps(made.to_json()))
    else:
        print_plan(made, every or every_size, no_slower)


def _refuse_tiny(data: int | None) -> None:
    if data == 0:
        raise core.UsageError("--data 0: the input must have at least 1 kB, like 1TB")
    if data is not None and data < MIN_BYTES:
        raise core.UsageError(
            f"--data {data} means {formatting.several(data, 'byte')}; add a unit, for example 1TB"
        )
