"""The page's arithmetic is the planner's: no field, term or line of either goes without comparison.

`report/explorer/assets` is a second implementation of parts of `tonnage.plan`. Three tests tie
them: each field that the planner's classes have reaches the page or is listed here with a reason;
each term of each candidate has the same name, values and sources; and the requests compared here
run every line of the arithmetic on both sides, so that a new branch fails until a request compares
it.
"""

from __future__ import annotations

import dataclasses
import datetime
import importlib
import pkgutil
import re
from importlib import resources
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest

import tonnage.plan
from support.browser.chromium import Browser
from support.browser.line_coverage import ModuleLines, ScriptLines
from support.browser.plan_pages import (
    JOBS,
    WIDE,
    PlanPage,
    assert_same_plan,
    page_plan,
    to_request,
)
from support.data.copies import replace
from support.data.offers import (
    BURSTING,
    FAMILIES,
    SIZED,
    STEADY,
    STORE,
    catalog,
    distribution,
    offer,
    profile,
)
from support.data.runs import pass_one, pass_two, record
from tonnage.base.core.sockets import DESCRIPTORS
from tonnage.base.records.job import Demand, Job, JobPhase, RequestDemand, SpaceDemand
from tonnage.base.records.plan import ExplainedTerm
from tonnage.base.records.profile import CapacityDistribution, Mode
from tonnage.catalog import (
    Billing,
    Grant,
    Network,
    NetworkBurst,
    ObjectStore,
    Price,
    Spot,
    StoreLimits,
    VolumeKind,
    VolumeLink,
)
from tonnage.catalog.own_prices import OwnPrices
from tonnage.model.jobs.core_throughput import core_throughput
from tonnage.model.jobs.mapreduce import mapreduce_job, sort_job
from tonnage.model.jobs.reduce import reduce_job
from tonnage.model.profiles.build import build_profile
from tonnage.model.profiles.network_scaling import ScalingCurve
from tonnage.model.profiles.offer_matching import OfferAssignments
from tonnage.model.profiles.repository import ProfileIndex, index_profiles
from tonnage.plan.demand import DemandPart, DemandTerm, LayoutDemand, PhaseDemand
from tonnage.plan.explain import explain
from tonnage.plan.layouts import OfferGroup
from tonnage.plan.planner import PlanRequest, plan
from tonnage.plan.resources.block_volumes import BlockVolumes
from tonnage.plan.resources.machines import Machine
from tonnage.plan.resources.startup import default_startup
from tonnage.plan.search import LARGEST_CLUSTER, Limits, SearchResult
from tonnage.report.explorer import page_data, write_explorer
from tonnage.report.explorer.page import SCRIPTS

ASSETS = resources.files("tonnage.report.explorer") / "assets"
MIRRORED = {
    "capacity_samples": (
        "tonnage.model.slowest_node",
        "tonnage.model.profiles.network_scaling",
        "tonnage.plan.capacity_samples",
    ),
    "block_volumes": ("tonnage.plan.resources.block_volumes",),
    "cost_model": ("tonnage.plan.cost_model", "tonnage.model.token_bucket"),
    "search": ("tonnage.plan.search", "tonnage.plan.layouts"),
    "candidates": ("tonnage.plan.candidates", "tonnage.plan.monte_carlo"),
    "pareto": ("tonnage.plan.recommendations.pareto",),
    "planner": ("tonnage.plan.planner",),
    "explain": ("tonnage.plan.explain",),
}
"""The modules that each script of the arithmetic mirrors."""
PYTHON_ONLY = {
    **{
        f"tonnage.plan.{name}": "the page predicts no past runs"
        for name in (
            *("backtest.predict", "backtest.published_sorts", "backtest.chosen_runs"),
            *("backtest.runs", "backtest.summary", "backtest.training_sets"),
            "backtest.logged_runs",
            *("past_runs.clusters", "past_runs.failed_runs"),
            *("past_runs.known_runs", "past_runs.next_run"),
            *("past_runs.planner", "past_runs.run_machines", "past_runs.run_table"),
            "past_runs.runs_of_job",
        )
    },
    "tonnage.plan.calibration": "its results are in the demands that the page gets",
    "tonnage.plan.demand": "the page gets the demands",
    "tonnage.plan.recommendations.drop_nodes": "the page plans no existing cluster",
    "tonnage.plan.operations.local_disks": "the page plans jobs, not operations",
    "tonnage.plan.operations.planner": "the page plans jobs, not operations",
    "tonnage.plan.operations.question": "the page plans jobs, not operations",
    "tonnage.plan.operations.volumes": "the page plans jobs, not operations",
    "tonnage.plan.resources.machines": "the page gets prices and buckets",
    "tonnage.plan.resources.engine_memory": "its figures are in the tables",
    "tonnage.plan.resources.engine_sockets": "its figure is in the tables",
    "tonnage.plan.resources.engine_requests": "its figures are in the machines' buckets",
    "tonnage.plan.resources.object_store": "its demands, requests and limits are in the tables",
    "tonnage.plan.resources.spot": "its rates are in the tables",
    "tonnage.plan.resources.startup": "its distributions are in the tables",
    "tonnage.plan.recommendations.current_cluster": "the page plans no existing cluster",
    "tonnage.plan.recommendations.seen_application": "the page gets the demands",
    "tonnage.plan.recommendations.sure": "the page shows no plan that surely keeps the deadline",
    "tonnage.plan.recommendations.next_measurements": "the page suggests no measurements",
}
NO_ARITHMETIC = {"formatting", "plan_request", "chart", "view", "main"}

SIZES_GIVEN = "of the request, not of the page's tables"
LAYOUT = "the page builds it from a group's kind and count"
FIELDS: dict[type, dict[str, str]] = {
    DemandPart: {
        name: name
        for name in (
            *("resource", "per_byte", "capacity", "advertised", "sources", "curve"),
            *("remote_only", "per_node", "shared", "outside", "in_turn"),
        )
    },
    DemandTerm: {
        name: name for name in ("resource_class", "parts", "credit_share", "max_per_node", "tasks")
    },
    PhaseDemand: {
        "name": "name",
        "terms": "terms",
        "fixed_seconds": "fixed_seconds",
        "local_per_byte": "- only next_measurements uses it",
    },
    LayoutDemand: {
        "layout": "- in the group",
        "own_disks": "- in the group",
        "volumes": "- in the group",
        "phases": "phases",
        "unknown_classes": "- the page gets plannable groups alone",
        "advertised_resources": "advertised_resources",
        "measured_curve": "uses_measured_curve",
        "calibration_match": "calibrated",
        "spread": "spread",
        "with_third_pass": "- a demand of its own, which the group names",
    },
    OfferGroup: {
        "demand": "demand",
        "machines": "machines",
        "min_nodes": "- follows from the request's size",
        "catalog": "catalog",
        "outside": "- follows from the request's size",
        "most_nodes": "- the page asks for no quota",
        "most_connected": "- one number for all groups",
        "quota_vcpus": "- the page asks for no quota",
    },
    Machine: {
        "catalog": "catalog",
        "offer": "type",
        "placement": "placement",
        "number": "- the order of machines",
        "purchase": "prices",
        "usd_per_hour": "prices",
        "usd_range": "prices",
        "link_usd_per_hour": "link_usd",
        "buckets": "buckets",
        "address_usd_per_hour": "address_usd",
        "purchase_notes": "prices",
        "interruptions_per_second": "prices",
    },
    BlockVolumes: {
        "kind": "kind",
        "count": "count",
        "stored_bytes": "- follows from the request's size",
        "hours_per_month": "- in the catalog's billing",
    },
    VolumeKind: {
        "name": "name",
        "media": "- no arithmetic",
        "usd_per_gib_month": "usd",
        "most_bytes": "most",
        "least_bytes": "least",
        "largest_operation_bytes": "largest",
        "operations": "operations",
        "throughput": "throughput",
        "date": "- no arithmetic",
        "price_source": "price_source",
        "limit_source": "limit_source",
        "most_iops_per_gib": "- plans buy no rates",
        "most_bytes_per_operation": "- plans buy no rates",
    },
    Grant: {
        name: name
        for name in (
            *("included", "per_gib", "least", "most"),
            *("burst", "burst_per_gib", "credit", "credit_per_gib"),
        )
    }
    | {"usd_each_month": "- plans buy no rates"},
    Billing: {
        "granularity_seconds": "granularity_seconds",
        "least_seconds": "least_seconds",
        "hours_per_month": "hours_per_month",
        "source": "source",
    },
    ObjectStore: {
        "name": "- no arithmetic",
        "usd_per_gb_month": "- the job is shorter",
        "usd_per_1000_puts": "usd_per_1000_puts",
        "usd_per_1000_gets": "usd_per_1000_gets",
        "usd_per_gb_to_internet": "usd_per_gb_to_internet",
        "usd_per_gb_in_region": "- plans do not use it",
        "limits": "- in the demands",
        "date": "- no arithmetic",
        "source": "source",
    },
    CapacityDistribution: {
        name: name
        for name in (
            *("resource", "modes", "of_fleet", "at_scale", "fleet_spread", "fleets"),
            *("fleet_freedom", "evidence", "source", "spread_source"),
        )
    },
    Mode: {name: name for name in ("median", "spread", "instances")},
    ScalingCurve: {name: name for name in ("points", "source", "exponent", "error")}
    | {"freedom": "interval"},
    Job: {
        "name": "- in the page's heading",
        "phases": "- in the demands",
        "room": "kept",
        "requests": "requests",
        "taken_out_per_byte": "taken_out",
        "least_memory_bytes": "- the page gets plannable groups alone",
        "least_memory_per_vcpu": "- the page gets plannable groups alone",
        "core_speed": "- in the demands",
        "spread": "- in the demands",
        "seen_bytes": "seen_bytes",
        "divisible": "divisible",
        "settings": "- in the demands' calibration and the notes",
    },
    Limits: {
        "min_nodes": "minNodes",
        "max_nodes": "maxNodes",
        "deadline_seconds": "deadline",
        "budget_usd": "budget",
        "objective": "objective",
        "billing_unit": "- the page bills by the second",
    },
    SearchResult: {
        "nodes": "nodes",
        "value": "value",
        "fastest_seconds": "fastest",
        "cheapest_usd": "cheapest",
    },
    PlanRequest: {
        "job": "location",
        "size": "size",
        "limits": "deadline",
        "network": "- the page plans with scaled networks",
        "purchase": "purchase",
        "providers": "provider",
        "arch": "- the page plans for every architecture",
        "placement": "- the page plans with every placement",
        "measured_only": "- the page uses advertised rates too",
        "include": "- the page leaves out what the command leaves out by default",
        "all_sizes": "- the page shows the best candidates",
        "sure": "- the page shows no plan that surely keeps the deadline",
        "startup": "- in the demands",
        "cores": "- the page counts cores",
        "memory": "most_bytes",
        "prefixes": "- the page asks for one",
        "quota_vcpus": "- the page asks for no quota",
        "descriptors": "most_connected",
        "public_addresses": "address_usd",
        "today": "- in the notes and the cautions of prices",
        "own_prices": "- in the machines' prices",
    },
}
"""How each field reaches the page: its key there, or ``-`` and why it does not."""
TERM_KEYS = {
    "phase": "phase",
    "resource": "resource",
    "limit": "limit",
    "demand": "demand",
    "capacity": "capacity",
    "low_capacity": "interval",
    "high_capacity": "interval",
    "seconds": "seconds",
    "evidence": "evidence",
    "demand_source": "demandSource",
    "capacity_source": "capacitySource",
    "spread_source": "spreadSource",
}
NOT_ON_THE_PAGE = (
    "raise ",
    # The page gets the text.
    'return f"keep its rate in larger clusters',
    # Billing by the started hour is the command's alone.
    "np.ceil(work / nodes / 3600)",
    # Of no groups, or of limits that the first machine misses: empty.
    "return []",
    "return np.zeros(len(fastest), dtype=bool)",
    "return np.empty(0, dtype=np.int64)",
)
"""Lines of the planner that no page mirrors."""
NEVER_RUN = (
    # Beyond the quantiles that 400 clusters draw; the tables have them all.
    "far === Infinity",
    "randomDraws.normal.far",
    # The number of clusters is even.
    "sorted.length % 2",
    # Rounding of a text, half to even.
    "value - below === 0.5",
    # No arithmetic: keys that tie, the cache of medians, no machine at all.
    "return 0;",
    "allSamples.size > 8",
    "return first ? ",
)
"""Lines of scripts with a part that does not run."""
BEFORE_THE_PAGE = (
    *("object_store_bill", "scaling_curve", "_fit", "exponent_interval", "warning"),
    "operations",
)
"""Functions of mirrored modules whose results are in the tables, or compared as notes; and volumes'
operations, which only a simulation counts."""


def scripts() -> dict[str, str]:
    """The text of each script by name."""
    return {name: (ASSETS / f"{name}.js").read_text() for name in SCRIPTS}


def test_each_script_names_the_modules_that_it_mirrors() -> None:
    assert {*MIRRORED} | NO_ARITHMETIC == {*SCRIPTS}
    for name, modules in MIRRORED.items():
        head = re.match(r"(?://.*\n)+", scripts()[name])
        assert head, name
        named = set(re.findall(r"tonnage/[\w/]+\.py", head[0]))
        assert named == {f"{module.replace('.', '/')}.py" for module in modules}, name
        assert name in {module.rpartition(".")[2] for module in modules}


def test_each_module_of_the_planner_is_mirrored_or_not_for_a_reason() -> None:
    modules = {
        each.name
        for each in pkgutil.walk_packages(tonnage.plan.__path__, "tonnage.plan.")
        if not each.ispkg
    }
    mirrored = {name for names in MIRRORED.values() for name in names}
    assert modules == {name for name in mirrored if ".plan." in name} | PYTHON_ONLY.keys()


@pytest.mark.parametrize("kind", FIELDS, ids=lambda kind: kind.__name__)
def test_each_field_of_the_planner_reaches_the_page(kind: type) -> None:
    names = (
        {each.name for each in dataclasses.fields(kind)}
        if dataclasses.is_dataclass(kind)
        else set(kind.__struct_fields__)  # type: ignore[attr-defined]
    )
    assert names == FIELDS[kind].keys(), "say how the field reaches the page, or why it does not"
    text = "\n".join(scripts().values())
    for key in FIELDS[kind].values():
        if not key.startswith("-"):
            assert re.search(rf"\b{key}\b", text), f"no script reads {kind.__name__}'s {key}"


def keys(kind: type) -> set[str]:
    """The page's keys for a class."""
    return {key for key in FIELDS[kind].values() if not key.startswith("-")}


def test_the_tables_have_a_key_for_each_field() -> None:
    tables = page_data({"local": sort_job()}, [WORLD], index_profiles(PROFILES)).values
    demands, kinds = tables["demands"], tables["catalogs"][0]["kinds"]
    group = tables["variants"]["local"]["on-demand"]["groups"][0]
    phase = demands[0]["phases"][0]
    for kind, row, more in (
        (DemandPart, phase["terms"][0]["parts"][0], set()),
        (DemandTerm, phase["terms"][0], set()),
        (PhaseDemand, phase, set()),
        (LayoutDemand, demands[0], {"evidence", "calibration_text", "notes"}),
        (OfferGroup, group, {"layout", "own_disks", "kind", "count", "third_pass"}),
        (
            Machine,
            tables["machines"][0],
            {
                *("link_source", "local_bytes", "memory_bytes"),
                *("source", "disks_source", "cores_source", "most_bytes", "most_share"),
                *("network_source", "network_caution", "possible_burst", "divides_once_more"),
                "family",
            },
        ),
        (VolumeKind, kinds[0], set()),
        (Billing, tables["catalogs"][0]["billing"], set()),
        (CapacityDistribution, tables["laws"][0], set()),
        (Mode, tables["laws"][0]["modes"][0], set()),
        (ScalingCurve, tables["curves"][0], {"freedom", "assumption"}),
        (Job, tables["variants"]["local"]["job"], set()),
    ):
        assert row.keys() == keys(kind) | more, kind.__name__
    grants = {key for each in kinds for part in ("operations", "throughput") for key in each[part]}
    assert grants <= keys(Grant)


SPOT = Spot(
    low_usd_per_hour=0.2,
    typical_usd_per_hour=None,
    high_usd_per_hour=0.7,
    date="2026-01-01",
    source="made up",
)
CREDIT_BY_SIZE = replace(
    BURSTING,
    name="credit by size",
    least_bytes=40 << 30,
    largest_operation_bytes=None,
    operations=Grant(),
    throughput=Grant(per_gib=4e5, least=2e7, burst_per_gib=2e6, most=4e8, credit_per_gib=6e8),
)
UNLIMITED = replace(
    SIZED,
    name="unlimited",
    most_bytes=None,
    operations=Grant(per_gib=3, most=16_000),
    throughput=Grant(included=2e8),
)
TODAY = datetime.date(2026, 6, 1)
"""The prices of the made-up catalog are old by then."""
ADDRESS = Price(usd_per_hour=0.05, date="2026-01-01", source="made up")
WORLD = catalog(
    [
        offer("both", 1.0, link_most=2e9, spot=replace(SPOT, interrupted=">20%")),
        offer("slow", 0.4, network=2e8, spot=SPOT),
        offer("small", 0.1, local_bytes=10**11),
        offer("documented", 0.3, disk_rates=(9e8, 4e8)),
        replace(
            offer("diskless", 0.5, local_bytes=0),
            volume_link=VolumeLink(
                baseline_bytes_per_second=1e9,
                optional=True,
                extra=Price(usd_per_hour=0.02, date="2026-01-01", source="made up"),
            ),
        ),
        offer("twin", 0.6, local_bytes=0, link_most=3e9),
        offer("cheaper twin", 0.5, local_bytes=0, link_most=3e9),
        replace(
            offer("burst", 0.7),
            network=Network(
                baseline_bytes_per_second=1e8,
                peak_bytes_per_second=9e8,
                words=None,
                possible_burst=NetworkBurst(
                    bytes_per_second=9e8, credit_bytes=1e11, source="made up"
                ),
            ),
        ),
        replace(
            offer("run", 0.8),
            network=Network(baseline_bytes_per_second=None, peak_bytes_per_second=9e8, words=None),
            on_demand=Price(
                usd_per_hour=0.8, date="2026-01-01", source="made up", caution="an estimate"
            ),
        ),
    ],
    (STEADY, SIZED, BURSTING, CREDIT_BY_SIZE, UNLIMITED),
    address=ADDRESS,
    store=replace(
        STORE,
        limits=StoreLimits(
            gets_per_second=900.0,
            puts_per_second=90.0,
            read_bytes_per_second=5e9,
            write_bytes_per_second=None,
            connection_bytes_per_second=(85e6, 90e6),
            source="made up",
            node_bytes_per_second=0.8e9,
        ),
    ),
)
OF_SIZES = replace(
    WORLD,
    offers=tuple(
        replace(each, memory_bytes=(16 << place) << 30 if place < 4 else each.memory_bytes)
        for place, each in enumerate(WORLD.offers)
    ),
)
"""Machines of 16 to 128 GiB, whose requests to object storage differ."""
ON_FEW_NODES = catalog(
    [
        replace(offer(name, price, local_bytes=10**14, spot=SPOT), vcpus=8, memory_bytes=size << 30)
        for name, price, size in (("both", 1.0, 256), ("slow", 0.4, 16))
    ]
)
"""One node of the first reads 5 TB a third time, two of it do not; the second always does."""
PROFILES = [
    profile(
        {
            "both": [
                distribution(
                    *("local both", 8e8, 0.2, 6, 0.1),
                    more=[Mode(median=3e8, spread=0.1, instances=2)],
                ),
                distribution("network", 7e8, 0.1, 5),
            ],
            "slow": [
                distribution("local read", 5e8, 0.3, 3),
                distribution("local write", 4e8, 0.3, 3),
                distribution("cpu partition", 9e8, 0.05, 3),
                distribution("cpu sort", 7e8, 0.05, 3),
            ],
            "small": [distribution("local both", 2e8, 0.1, 4)],
            "run": [distribution("local both", 1e8, 0.01), distribution("network", 9e7, 0.01)],
        },
        scaling=[(2, 1.0), (4, 0.9), (8, 0.7)],
        shares=[
            distribution(name, 0.9, 0.1, 4)
            for name in ("local read", "local write", "network", "volume read", "volume write")
        ],
    )
]
FORMS = (
    {"data": "2TB", "deadline": "10min", "budget": "10"},
    {"data": "20TB"},
    {"data": "4GB", "max-nodes": "3"},
    {"data": "900TB", "deadline": "1h", "max-nodes": "400"},
    {"data": "2TB", "deadline": "20min", "budget": "40", "objective": "time"},
    {"data": "5TB", "purchase": "spot", "objective": "time", "max-nodes": "1"},
    {"data": "1PB", "max-nodes": "2"},
    {"data": "3TB", "deadline": "3h", "purchase": "spot"},
    {"data": "9TB", "budget": "1", "provider": "aws"},
    {"data": "300TB", "deadline": "90s", "budget": "900"},
    {"data": "40PB", "objective": "time", "max-nodes": "100000"},
    {"data": "8EB", "deadline": "1s", "max-nodes": "1"},
)
"""Together they run every line of the arithmetic."""


def assert_same_terms(found: dict[str, Any], page: PlanPage, request: PlanRequest) -> int:
    """Compare the explanation of the best candidate of each offer; return how many terms."""
    first: dict[str, dict[str, Any]] = {}
    for candidate in found["shown"]:
        first.setdefault(candidate["offer"], candidate)
    count = 0
    for name, candidate in first.items():
        its = explain(request, page.catalogs, page.known, name)
        assert its.candidate.layout == candidate["layout"]
        mine = [
            {key: term[key] for key in dict.fromkeys(TERM_KEYS.values())}
            for term in candidate["terms"]
        ]
        theirs = [
            {
                **{key: getattr(term, field) for field, key in TERM_KEYS.items()},
                "interval": [term.low_capacity, term.high_capacity],
            }
            for term in its.terms
        ]
        assert [plain(term) for term in mine] == [plain(term) for term in theirs]
        assert [numbers(term) for term in mine] == [
            pytest.approx(numbers(term), rel=1e-9, nan_ok=True) for term in theirs
        ]
        assert candidate["prices"] == its.prices
        phases = [each.seconds for each in its.candidate.phases]
        assert [each["seconds"] for each in candidate["phases"]] == pytest.approx(phases, rel=1e-9)
        count += len(mine)
    return count


def plain(term: dict[str, Any]) -> dict[str, str]:
    """The texts of a term."""
    return {key: value for key, value in term.items() if isinstance(value, str)}


def numbers(term: dict[str, Any]) -> list[float]:
    """The numbers of a term."""
    return [
        number
        for value in term.values()
        if not isinstance(value, str)
        for number in (value if isinstance(value, list) else [value])
    ]


def test_terms_have_no_field_that_is_not_compared() -> None:
    fields = getattr(ExplainedTerm, "__struct_fields__", None) or [
        each.name for each in dataclasses.fields(ExplainedTerm)
    ]
    assert {*fields} == TERM_KEYS.keys()


@pytest.mark.browser
@pytest.mark.timeout(600)
def test_terms_are_the_same_and_no_line_goes_without_comparison(
    browser: Browser, tmp_path: Path
) -> None:
    modules = ModuleLines(
        [
            importlib.import_module(name)
            for names in MIRRORED.values()
            for name in names
            if name not in ("tonnage.plan.planner", "tonnage.plan.layouts", "tonnage.plan.explain")
        ],
        BEFORE_THE_PAGE,
    )
    mirrored = {name: text for name, text in scripts().items() if name in MIRRORED}
    lines, terms = ScriptLines(mirrored), 0
    for place, (jobs, catalogs, known) in enumerate(worlds()):
        file = tmp_path / f"{place}.html"
        startup = default_startup() if place else {}
        write_explorer(
            page_data(
                *(jobs, catalogs, known, startup),
                memory=bool(place),
                descriptors=DESCRIPTORS if place else None,
                public_addresses=bool(place),
                own_prices=OwnPrices(discount_percent=5.0 * place),
                today=TODAY,
            ),
            "job",
            [],
            file,
        )
        page = PlanPage(file, catalogs, known)
        with browser.open(file, WIDE, 900) as opened, lines.recording(opened):
            opened.inner.reload()
            opened.inner.wait_for_selector("html[data-planned]", state="attached")
            for form, (location, job) in zip(FORMS, cycle(jobs.items()), strict=False):
                found = page_plan(opened, form | {"location": location})
                defaults = {"deadline": "", "budget": "", "objective": "cost"}
                defaults |= {"provider": "", "purchase": "on-demand"}
                defaults["max-nodes"] = str(LARGEST_CLUSTER)
                request = replace(
                    to_request({**defaults, **form, "location": "local"}),
                    job=job,
                    startup=startup,
                    memory=bool(place),
                    descriptors=DESCRIPTORS if place else None,
                    public_addresses=bool(place),
                    own_prices=OwnPrices(discount_percent=5.0 * place),
                    today=TODAY,
                )
                with modules.recording():
                    assert_same_plan(found, plan(request, catalogs, known))
                    terms += assert_same_terms(found, page, request)
            assert opened.problems == []
    assert terms > 200
    assert [
        line for line in modules.missed() if not any(each in line for each in NOT_ON_THE_PAGE)
    ] == []
    missed = [line for line in lines.missed() if not any(each in line for each in NEVER_RUN)]
    assert not missed, "\n".join(missed)


def worlds() -> Any:
    """Jobs, catalogs and capacities of each page; together they run every line."""
    known = index_profiles(PROFILES)
    yield JOBS, [WORLD], known
    engine = dataclasses.replace(known.shares, engine=core_throughput())
    by_memory = {name: JOBS[name] for name in ("local", "objects")}
    yield by_memory, [OF_SIZES], dataclasses.replace(known, shares=engine)
    yield {"": reduce_job(4, cpu_seconds_per_byte=2e-9, object_share=0.01)}, [WORLD], known
    yield {"": ODD_JOB}, [replace(WORLD, billing=BY_THE_HOUR)], index_profiles([FEW_FIGURES])
    yield {"": replace(ODD_JOB, divisible=False)}, [WORLD], known
    yield {"": JOB_OF_TASKS}, [WORLD], known
    yield {"local": sort_job()}, [catalog([offer("run", 0.8), offer("other")])], calibrated()
    yield {"local": sort_job()}, [catalog(FAMILIES)], known
    yield {"local": mapreduce_job()}, [ON_FEW_NODES], known


BY_THE_HOUR = Billing(
    granularity_seconds=3600, least_seconds=3600, hours_per_month=720, source="made up"
)
JOB_OF_TASKS = Job(
    name="tasks",
    phases=[
        JobPhase(
            name="map",
            demands=[
                Demand(resource="cpu", per_byte=4e-8, source="made up"),
                Demand(resource="task wait", per_byte=1e-8, source="made up"),
                Demand(resource="local write", per_byte=0.5, source="made up"),
            ],
            tasks=1_000,
        ),
        JobPhase(
            name="reduce",
            demands=[
                Demand(resource="cpu", per_byte=1e-8, source="made up"),
                Demand(resource="network", per_byte=0.5, source="made up", shuffled=True),
            ],
            longest_task_per_byte=1e-10,
        ),
        JobPhase(name="warm-up", demands=[], warm_up_seconds=3.0),
    ],
    room=[],
    core_speed=0.7,
    spread=0.2,
)
ODD_JOB = Job(
    name="odd",
    phases=[
        JobPhase(name="start", demands=[], fixed_seconds=40.0),
        JobPhase(
            name="work",
            demands=[
                Demand(resource="local read", per_byte=1.0, source="made up"),
                Demand(resource="network", per_byte=0.3, source="made up", shuffled=True),
                Demand(resource="object get", per_byte=0.1, source="made up", in_turn=True),
                Demand(resource="object put", per_byte=0.2, source="made up"),
                Demand(resource="cpu", per_byte=4e-9, source="made up"),
            ],
            most_cores=3.0,
        ),
        JobPhase(
            name="end",
            demands=[Demand(resource="volume write", per_byte=0.5, source="made up")],
            fixed_seconds=90_000.0,
        ),
    ],
    room=[
        SpaceDemand(where="local", what="input", per_byte=1.0),
        SpaceDemand(where="volume", what="output", per_byte=0.5),
        SpaceDemand(where="memory", what="index", per_byte=0.001),
    ],
    requests=[
        RequestDemand(kind="get", per_byte=1e-7),
        RequestDemand(kind="put", per_byte=2e-7),
    ],
    taken_out_per_byte=0.01,
    seen_bytes=10**9,
)
"""Fixed seconds, a limit of cores, reading in turn, memory, requests and egress."""
FEW_FIGURES = profile(
    {
        "both": [
            replace(
                distribution(
                    "local both", 8e8, 0.2, 6, more=[Mode(median=3e8, spread=0.1, instances=2)]
                ),
                of_fleet=True,
            ),
            distribution("network", 7e8, 0.1, 5),
        ],
        "slow": [
            distribution("local both", 4e8),
            distribution("network", 1e8),
            distribution("object get", 2e8),
        ],
    },
    shares=[distribution(name, 0.9, 0.1, 4) for name in ("network", "volume read", "volume write")],
)
"""A rate of the whole cluster in two modes, and no scaling of the network."""


def calibrated() -> ProfileIndex:
    """Capacities with runs of a sort, and a network whose scaling has no error."""
    phases = [pass_one(20.0, send=0.95, receive=0.1), pass_two()]
    run = replace(
        record({"n-0": phases, "n-1": phases}, 40.0),
        bytes=4_000_000_000,
        began_at="2026-01-01T00:00:00+00:00",
    )
    laws = [distribution("local both", 1e8, 0.01), distribution("network", 9e7, 0.01)]
    measured = profile({"run": laws, "other": laws}, scaling=[(2, 1.0), (4, 0.8)])
    runs = build_profile(
        [],
        {},
        name="runs",
        made_at="now",
        runs=[run],
        assigned=OfferAssignments(default=("aws", "run")),
    )
    return index_profiles([measured, runs])
