"""``tonnage plan``."""

from __future__ import annotations

import dataclasses
import json
import math
import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tonnage import engine
from tonnage.cli.arguments import (
    LARGEST,
    Json,
    number,
    parse_duration,
    parse_size,
    refuse_unknown,
    whole_number,
)

if TYPE_CHECKING:
    from tonnage.artifacts.job import Job
    from tonnage.catalog import Catalog
    from tonnage.model.known import Known

DURABILITIES = ("none", "replicated", "volumes")
NETWORKS = ("scaled", "baseline", "infinite")
OBJECTIVES = ("cost", "time")
CHARGED = ("seconds", "hours")
PURCHASES = ("on-demand", "spot")
PROVIDERS = ("aws", "gcp", "azure")
ARCHITECTURES = ("x86_64", "arm64")
BUILT_IN = "themis-2014"


def parse_usd(text: str) -> float:
    """``300USD`` or ``300`` as a number of US dollars."""
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*(?:usd)?\s*", text.lower())
    if found is None or not float(found[1]):
        raise typer.BadParameter(f"{text!r} is no amount of money: write it like 300USD")
    return float(found[1])


def plan(
    job: Annotated[
        str,
        typer.Argument(metavar="JOB", help="sort, mapreduce, reduction, or a job's JSON file."),
    ],
    data: Annotated[
        int, typer.Option("--data", parser=parse_size, metavar="SIZE", help="Input, like 100TB.")
    ],
    catalog: Annotated[
        list[str] | None,
        typer.Option(
            "--catalog",
            metavar="NAME",
            help="A catalog's name or CSV file; again for more. Default: each provider's newest.",
        ),
    ] = None,
    profiles: Annotated[
        list[str] | None,
        typer.Option(
            "--profiles",
            metavar="NAME_OR_DIR",
            help="What was measured: a profile's name, or a directory of profiles and "
            f"measurements; again for more. Default: {BUILT_IN}.",
        ),
    ] = None,
    durability: Annotated[
        str,
        typer.Option(
            "--durability",
            metavar="HOW",
            help="none; replicated: a second copy of the output on another node; volumes: input "
            "and output on network-attached volumes.",
        ),
    ] = "none",
    map_share: Annotated[
        float,
        typer.Option(
            "--map-share",
            parser=number(1e-9, 1e9),
            metavar="SHARE",
            help="Of mapreduce: bytes that the map makes of each byte.",
        ),
    ] = "1",  # type: ignore[assignment]
    reduce_share: Annotated[
        float,
        typer.Option(
            "--reduce-share",
            parser=number(1e-9, 1e9),
            metavar="SHARE",
            help="Of mapreduce: bytes that the reduction makes of each byte of those.",
        ),
    ] = "1",  # type: ignore[assignment]
    passes: Annotated[
        int,
        typer.Option(
            "--passes",
            parser=whole_number(1, 10_000),
            metavar="N",
            help="Of reduction: how often all data is gone through.",
        ),
    ] = "1",  # type: ignore[assignment]
    chunk: Annotated[
        int,
        typer.Option(
            "--chunk", parser=parse_size, metavar="SIZE", help="Of reduction: what a request gets."
        ),
    ] = "8MiB",  # type: ignore[assignment]
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
            "--max-nodes", parser=whole_number(1, 100_000), metavar="N", help="The largest fleet."
        ),
    ] = "1000",  # type: ignore[assignment]
    nodes: Annotated[
        int | None,
        typer.Option(
            "--nodes", parser=whole_number(1, 100_000), metavar="N", help="Exactly so many nodes."
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
        float,
        typer.Option(
            "--take-out",
            parser=number(0, 1e9),
            metavar="SHARE",
            help="Bytes that leave the provider, at its price to the internet, for each byte of "
            "input: 1 if a sort's output is taken home.",
        ),
    ] = "0",  # type: ignore[assignment]
    provider: Annotated[
        list[str] | None,
        typer.Option("--provider", metavar="NAME", help="Only aws, gcp or azure; again for more."),
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
    every: Annotated[
        bool, typer.Option("--all", help="Every number of nodes and volumes, and every line.")
    ] = False,
    explain: Annotated[
        str | None,
        typer.Option("--explain", metavar="OFFER", help="The arithmetic of this offer's best."),
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
        typer.Option("--out", metavar="FILE", help="With --emit: where to, if not to the screen."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Find which machines, how many and laid out how, do a job cheapest, or in time.

    Figures that nobody measured are taken from what is advertised, and said to be.
    """
    from tonnage.cli import handover, planned
    from tonnage.plan.explain import explain as explained
    from tonnage.plan.planner import PlanError, Question
    from tonnage.plan.planner import plan as planning
    from tonnage.plan.search import Limits
    from tonnage.plan.survey import within

    refuse_unknown("--durability", [durability], DURABILITIES)
    refuse_unknown("--objective", [objective], OBJECTIVES)
    refuse_unknown("--network", [network], NETWORKS)
    refuse_unknown("--billing", [billing], CHARGED)
    refuse_unknown("--purchase", [purchase], PURCHASES)
    refuse_unknown("--provider", provider or [], PROVIDERS)
    refuse_unknown("--arch", [arch] if arch else [], ARCHITECTURES)
    handover.refuse(emit, candidate, out, {"--explain": explain, "--survey": survey})
    if data == 0:
        raise engine.Refused("--data 0: there is nothing to move: give more, like 1TB")
    catalogs = _catalogs(catalog, provider or ())
    known = _known(profiles, catalogs)
    measuring = budget if survey else None
    question = Question(
        job=dataclasses.replace(
            _job(job, durability, map_share, reduce_share, passes, chunk),
            taken_out_per_byte=take_out,
        ),
        size=data,
        limits=Limits(
            least_nodes=nodes or 1,
            most_nodes=nodes or max_nodes,
            deadline_seconds=math.inf if deadline is None else deadline,
            budget_usd=math.inf if budget is None or survey else budget,
            objective=objective,  # type: ignore[arg-type]
            charged=billing,  # type: ignore[arg-type]
        ),
        network=network,  # type: ignore[arg-type]
        purchase=purchase,  # type: ignore[arg-type]
        providers=tuple(provider or ()),
        arch=arch,
        placement=placement,
        every=every,
    )
    try:
        if explain is not None:
            _find(catalogs, explain)
            told = explained(question, catalogs, known, explain)
            print(json.dumps(told.to_json()) if as_json else planned.explanation(told))
            return
        made = planning(question, catalogs, known)
    except PlanError as why:
        raise engine.Refused(str(why)) from why
    if emit and made.candidates:
        handover.emit(made, catalogs, emit, candidate or 1, out, as_json)
    elif emit:
        raise engine.Refused(planned.nothing(made))
    elif as_json:
        print(json.dumps(made.to_json() | ({"survey": within(made, measuring)} if survey else {})))
    elif survey:
        planned.show_survey(made, measuring)
    else:
        planned.show(made, every)
    if not made.candidates and not survey:
        raise engine.Refused(planned.nothing(made))


def _catalogs(given: list[str] | None, providers: list[str] | tuple[str, ...]) -> list[Catalog]:
    from tonnage.catalog import CatalogError, load, newest

    try:
        found = list(map(load, given)) if given else newest()
    except CatalogError as why:
        raise engine.Refused(f"--catalog: {why}") from why
    asked = [each for each in found if not providers or each.provider in providers]
    if not asked:
        raise engine.Refused(
            f"--provider {' '.join(providers)}: the catalogs are of "
            f"{', '.join(sorted({each.provider for each in found}))}"
        )
    return asked


def _known(given: list[str] | None, catalogs: list[Catalog]) -> Known:
    from tonnage.model.known import ProfileError, known, read
    from tonnage.plan.advertised import advertised

    offers = {(offer.provider, offer.type) for each in catalogs for offer in each.offers}
    found = []
    for name in given or [BUILT_IN]:
        try:
            profiles = read(name, advertised(catalogs))
        except ProfileError as why:
            raise engine.Refused(f"--profiles: {why}") from why
        of = [(entry.provider, entry.type) for each in profiles for entry in each.offers]
        if not offers.intersection(of) and not any(each.shares for each in profiles):
            types = ", ".join(sorted({kind for _, kind in of})) or "no machine"
            raise engine.Refused(
                f"--profiles {name}: it is of {types}, which is in no catalog that is asked for: "
                "give its --catalog"
            )
        found += profiles
    try:
        return known(found)
    except ProfileError as why:
        raise engine.Refused(f"--profiles: {why}") from why


def _find(catalogs: list[Catalog], offer: str) -> None:
    from tonnage.catalog import CatalogError, find

    try:
        find(catalogs, offer)
    except CatalogError as why:
        raise engine.Refused(f"--explain: {why}") from why


def _job(
    name: str, durability: str, map_share: float, reduce_share: float, passes: int, chunk: int
) -> Job:
    from tonnage.artifacts.artifact import ArtifactError
    from tonnage.artifacts.job import Job
    from tonnage.model.jobs.mapreduce import mapreduce, sort
    from tonnage.model.jobs.reduction import reduction

    if name == "sort":
        return sort(durability)  # type: ignore[arg-type]
    if name == "mapreduce":
        return mapreduce(
            durability,  # type: ignore[arg-type]
            map_share=map_share,
            reduce_share=reduce_share,
        )
    if name == "reduction":
        if not 0 < chunk <= LARGEST:
            raise engine.Refused("--chunk 0: a request gets at least a byte")
        return reduction(passes, chunk_bytes=chunk)
    if not Path(name).is_file():
        raise engine.Refused(f"JOB {name}: give sort, mapreduce, reduction or a job's JSON file")
    try:
        return Job.read(Path(name))
    except ArtifactError as why:
        raise engine.Refused(f"JOB {why}") from why
