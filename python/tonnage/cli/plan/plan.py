"""``tonnage plan``."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Annotated

import typer

from tonnage.base import core
from tonnage.cli.options.planning import (
    Catalogs,
    Chunk,
    CoreSeconds,
    LocalShare,
    MapShare,
    Objects,
    Passes,
    Profiles,
    ReduceShare,
    catalogs_of,
    find_offer,
    job_of,
    known_of,
)
from tonnage.cli.options.types import (
    Json,
    number,
    parse_duration,
    parse_size,
    parse_usd,
    whole_number,
)
from tonnage.cli.options.validate import refuse_unknown

LEAST_BYTES = 1_000
"""Less is a size whose unit was forgotten."""
MOST_NODES = 10_000
"""No larger fleet is planned."""
OBJECTIVES = ("cost", "time")
CHARGED = ("seconds", "hours")
ARCHITECTURES = ("x86_64", "arm64")


def plan(
    job: Annotated[
        str,
        typer.Argument(
            metavar="JOB",
            help="sort, mapreduce, reduce, or a job's JSON file; the record of a run is one.",
        ),
    ],
    data: Annotated[
        int, typer.Option("--data", parser=parse_size, metavar="SIZE", help="Input, like 100TB.")
    ],
    catalog: Catalogs = None,
    profiles: Profiles = None,
    durability: Annotated[
        str | None,
        typer.Option(
            "--durability",
            metavar="HOW",
            help="none; replicated: a second copy of the output on another node; volumes: input "
            "and output on network-attached volumes, or in a store (--objects). Of sort and "
            "mapreduce.",
        ),
    ] = None,
    objects: Objects = None,
    map_share: MapShare = None,
    reduce_share: ReduceShare = None,
    passes: Passes = None,
    chunk: Chunk = None,
    local_share: LocalShare = None,
    core_seconds: CoreSeconds = None,
    deadline: Annotated[
        float | None,
        typer.Option(
            "--deadline", parser=parse_duration, metavar="TIME", help="When it has to be done."
        ),
    ] = None,
    budget: Annotated[
        float | None,
        typer.Option(
            "--budget",
            parser=parse_usd,
            metavar="USD",
            help="What it may cost; with --survey, what measuring may cost.",
        ),
    ] = None,
    max_nodes: Annotated[
        int,
        typer.Option(
            "--max-nodes",
            parser=whole_number(1, MOST_NODES),
            metavar="N",
            help="The largest fleet.",
        ),
    ] = "1000",  # type: ignore[assignment]
    nodes: Annotated[
        int | None,
        typer.Option(
            "--nodes",
            parser=whole_number(1, MOST_NODES),
            metavar="N",
            help="Exactly so many nodes.",
        ),
    ] = None,
    objective: Annotated[
        str, typer.Option("--objective", metavar="WHAT", help="What is to be least: cost or time.")
    ] = "cost",
    network: Annotated[
        str,
        typer.Option(
            "--network",
            metavar="HOW",
            help="scaled: as it was seen to fall in larger fleets; baseline: as between two nodes; "
            "infinite: left out.",
        ),
    ] = "scaled",
    billing: Annotated[
        str,
        typer.Option(
            "--billing",
            metavar="HOW",
            help="seconds: with the provider's minimum; hours: begun ones count whole.",
        ),
    ] = "seconds",
    purchase: Annotated[
        str,
        typer.Option(
            "--purchase",
            metavar="HOW",
            help="on-demand; spot: spare machines, at a price within a range and taken back at "
            "any time, which is not counted.",
        ),
    ] = "on-demand",
    take_out: Annotated[
        float | None,
        typer.Option(
            "--egress",
            parser=number(0, 1e9),
            metavar="SHARE",
            help="Bytes that leave the provider, at its price to the internet, for each byte of "
            "input: 1 if a sort's output is taken home.",
        ),
    ] = None,
    provider: Annotated[
        list[str] | None,
        typer.Option(
            "--provider", metavar="NAME", help="Only aws, gcp, azure or lab; again for more."
        ),
    ] = None,
    arch: Annotated[
        str | None, typer.Option("--arch", metavar="NAME", help="Only x86_64, or only arm64.")
    ] = None,
    placement: Annotated[
        bool | None,
        typer.Option(
            "--placement/--no-placement", help="Only nodes placed close together, or only others."
        ),
    ] = None,
    measured: Annotated[
        bool,
        typer.Option("--measured", help="Only offers of which all that is needed was measured."),
    ] = False,
    every: Annotated[
        bool, typer.Option("--all", help="Every number of nodes and volumes, and every line.")
    ] = False,
    explain: Annotated[
        str | None,
        typer.Option(
            "--explain",
            metavar="OFFER",
            help="The arithmetic of this offer's best: TYPE, or PROVIDER/TYPE.",
        ),
    ] = None,
    survey: Annotated[
        bool, typer.Option("--survey", help="What to measure next, best first.")
    ] = False,
    emit: Annotated[
        str | None,
        typer.Option(
            "--emit",
            metavar="KIND",
            help="What rents the best candidate: ray, a cluster's YAML; aws, boto3's requests; "
            "skypilot, a task's YAML.",
        ),
    ] = None,
    candidate: Annotated[
        int | None,
        typer.Option(
            "--candidate",
            parser=whole_number(1, 1_000_000),
            metavar="N",
            help="With --emit: not the best but the N-th, as the table has them.",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--output", metavar="FILE", help="With --emit: where to, if not to the screen."
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Find which machines, how many and laid out how, do a job cheapest, or in time.

    Figures that nobody measured are taken from what is advertised, and said to be.
    """
    from tonnage.cli.output import plan as planned
    from tonnage.cli.plan import emit as handover
    from tonnage.plan.explain import explain as explained
    from tonnage.plan.layouts import NETWORKS
    from tonnage.plan.machines import PURCHASES
    from tonnage.plan.next_measurements import within_budget
    from tonnage.plan.planner import PlanError, PlanRequest
    from tonnage.plan.planner import plan as planning
    from tonnage.plan.search import Limits

    refuse_unknown("--objective", [objective], OBJECTIVES)
    refuse_unknown("--network", [network], NETWORKS)
    refuse_unknown("--billing", [billing], CHARGED)
    refuse_unknown("--purchase", [purchase], PURCHASES)
    refuse_unknown("--arch", [arch] if arch else [], ARCHITECTURES)
    handover.refuse(emit, candidate, out, {"--explain": explain, "--survey": survey})
    if data < LEAST_BYTES:
        raise core.UsageError(f"--data {data}: that many bytes are no job: give more, like 1TB")
    catalogs = catalogs_of(catalog, provider or ())
    known = known_of(profiles, catalogs)
    measuring = budget if survey else None
    about = {
        "--durability": durability,
        "--objects": objects,
        "--map-share": map_share,
        "--reduce-share": reduce_share,
        "--passes": passes,
        "--chunk-size": chunk,
        "--local-share": local_share,
        "--core-seconds": core_seconds,
    }
    question = PlanRequest(
        job=job_of(job, about, take_out),
        size=data,
        limits=Limits(
            min_nodes=nodes or 1,
            max_nodes=nodes or max_nodes,
            deadline_seconds=math.inf if deadline is None else deadline,
            budget_usd=math.inf if budget is None or survey else budget,
            objective=objective,  # type: ignore[arg-type]
            billing_unit=billing,  # type: ignore[arg-type]
        ),
        network=network,  # type: ignore[arg-type]
        purchase=purchase,  # type: ignore[arg-type]
        providers=tuple(provider or ()),
        arch=arch,
        placement=placement,
        measured_only=measured,
        all_sizes=every,
    )
    try:
        if explain is not None:
            offer = find_offer("--explain", catalogs, explain)
            its = [each for each in catalogs if each.provider == offer.provider]
            told = explained(question, its, known, offer.type)
            print(json.dumps(told.to_json()) if as_json else planned.explanation(told))
            return
        made = planning(question, catalogs, known)
    except PlanError as why:
        raise core.UsageError(str(why)) from why
    if emit and made.candidates:
        handover.emit(made, catalogs, emit, candidate or 1, out, as_json)
    elif emit:
        raise core.UsageError(planned.nothing(made))
    elif as_json:
        print(
            json.dumps(
                made.to_json() | ({"survey": within_budget(made, measuring)} if survey else {})
            )
        )
    elif survey:
        planned.show_survey(made, measuring)
    else:
        planned.show(made, every)
    if not made.candidates and not survey:
        raise core.UsageError(planned.nothing(made))
