"""``tonnage profile``."""

from __future__ import annotations

import datetime
import json
import textwrap
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tonnage.base import core, formatting
from tonnage.cli.options.inputs import measured_places, read_all, runs_among
from tonnage.cli.options.planning import BUILT_IN, catalogs_of, find_offer
from tonnage.cli.options.types import Json

if TYPE_CHECKING:
    from tonnage.base.records.calibration import Calibration
    from tonnage.base.records.profile import CapacityDistribution, Profile
    from tonnage.catalog import Catalog
    from tonnage.model.profiles.offer_matching import OfferAssignments, OfferName

SOURCE_WIDTH = 120
"""All measurements of a law are in its file."""


def profile(
    paths: Annotated[
        list[Path],
        typer.Argument(
            metavar="MEASUREMENT_OR_RUN...",
            help="Measurements and records of finished runs, or directories that hold some, at any "
            "depth.",
        ),
    ],
    out: Annotated[
        Path, typer.Option("--output", metavar="PROFILE.json", help="Where the profile goes.")
    ],
    offer: Annotated[
        list[str] | None,
        typer.Option(
            "--offer",
            metavar="[HOST=]OFFER",
            help="Which offer the machines are, or this one is, if they do not say: TYPE, or "
            "PROVIDER/TYPE; again for more.",
        ),
    ] = None,
    catalog: Annotated[
        list[str] | None,
        typer.Option(
            "--catalog",
            metavar="NAME",
            help="A catalog's name or CSV file, for what is advertised; again for more. Default: "
            "each provider's newest.",
        ),
    ] = None,
    volumes: Annotated[
        bool,
        typer.Option(
            "--volumes",
            help="Devices that do not say what they are, are network-attached volumes; else they "
            "are taken for the machine's own.",
        ),
    ] = False,
    placement: Annotated[
        bool, typer.Option("--placement", help="The machines were placed close together.")
    ] = False,
    name: Annotated[
        str | None,
        typer.Option("--name", metavar="NAME", help="The profile's. Default: its file's."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Make measurements of offers, and finished runs on them, a profile, which tonnage plan takes.

    A run calibrates plans of its kind of job: what it showed of a phase goes before benchmarks.
    """
    from tonnage.model.profiles.build import build_profile
    from tonnage.model.profiles.offer_matching import OfferError
    from tonnage.plan.advertised import advertised_figures

    if out.suffix != ".json" or out.is_dir():
        raise core.UsageError(f"--output {out}: name a file that ends in .json")
    catalogs = catalogs_of(catalog, ())
    said = _said(offer or [], catalogs)
    runs, measured = runs_among(paths)
    measurements = read_all(measured_places(measured)) if measured or not runs else []
    try:
        made = build_profile(
            measurements,
            advertised_figures(catalogs),
            name=name or out.stem,
            made_at=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
            runs=runs,
            assigned=said,
            volumes=volumes,
            placement=placement,
        )
    except OfferError as why:
        raise core.UsageError(f"--offer {why}") from why
    if not made.offers:
        reason = made.left_out[0].why if made.left_out else "no trial was done"
        raise core.UsageError(f"nothing to make a profile of: {reason}")
    made.write(out)
    if as_json:
        print(json.dumps(made.to_json()))
    else:
        print("\n".join(_lines(made)))
        known = [law.resource for each in made.offers for law in each.laws]
        known += [law.resource for law in made.shares]
        # Without a network's rate nothing that shuffles can be planned.
        others = "" if "network" in known else f"--profile {BUILT_IN} "
        others += "".join(f"--catalog {each} " for each in catalog or [])
        print(f"Kept in {out}; to plan with it: tonnage plan JOB {others}--profile {out}")


def _said(given: Sequence[str], catalogs: Sequence[Catalog]) -> OfferAssignments:
    from tonnage.model.profiles.offer_matching import OfferAssignments

    of_hosts: dict[str, OfferName] = {}
    of_all: OfferName | None = None
    for each in given:
        host, separator, named = each.rpartition("=")
        if separator and not host:
            raise core.UsageError(
                f"--offer {each}: no machine is named: write HOST=OFFER, or OFFER"
            )
        # In a catalog, since a mistyped one would never be planned with.
        found = find_offer("--offer", catalogs, named)
        offer = found.provider, found.type
        known = of_hosts.get(host) if host else of_all
        if known not in (None, offer):
            whose = host or "all machines"
            raise core.UsageError(f"--offer {each}: {whose} cannot be {'/'.join(known or ())} too")
        if host:
            of_hosts[host] = offer
        else:
            of_all = offer
    return OfferAssignments(of_all, of_hosts)


def _lines(made: Profile) -> list[str]:
    """What was found, what share of the advertised that is, and what was left out."""
    lines = []
    for each in made.offers:
        placed = ", placed close together" if each.placement else ""
        lines.append(f"{each.provider}/{each.type}{placed}")
        lines += [f"  {law.resource}: {_told(law)}" for law in each.laws]
        if each.scaling and len(each.scaling.points) > 1:
            points = [
                f"{formatting.percent(share)} of {nodes}" for nodes, share in each.scaling.points
            ]
            lines.append(f"  network, by nodes: {formatting.listing(points)}")
        lines += [_shown(runs) for runs in each.calibrations]
    for law in made.shares:
        if law.resource.startswith("cpu "):
            lines.append(f"{law.resource}, of a vCPU of any offer: {_told(law)}")
        else:
            lines.append(f"{law.resource}, of what is advertised: {_told(law, formatting.percent)}")
    for out in made.left_out:
        these = formatting.several(len(out.measurements), "record")
        some = ", ".join(out.measurements[:3]) + (", ..." if len(out.measurements) > 3 else "")
        lines.append(f"Left out of {these} ({some}): {formatting.sentence(out.why)}")
    return lines


def _shown(runs: Calibration) -> str:
    """What finished runs of a job showed, in words."""
    kept = "" if runs.durability == "none" else f" ({runs.durability})"
    phases = [
        f"{formatting.phase(phase.name)} {formatting.rate(phase.pace)} of input a node, by {phase.limits[0]}"
        for phase in runs.phases
    ]
    return (
        f"  {runs.job}{kept}, as it was run: {formatting.listing(phases)}; spread "
        f"{formatting.percent(runs.phases[0].spread)}, {runs.spread_source}; {', '.join(runs.runs)}"
    )


def _told(law: CapacityDistribution, figure: Callable[[float], str] = formatting.rate) -> str:
    """A law in words: each kind of node, how they and times vary, and where it is from."""
    kinds = [
        f"{figure(mode.median)} (spread {formatting.percent(mode.spread)}, "
        f"{formatting.several(mode.instances, 'node')})"
        for mode in law.modes
    ]
    common = f", fleets {formatting.percent(law.fleet_spread)}" if law.fleet_spread else ""
    source = textwrap.shorten(law.source, SOURCE_WIDTH, placeholder=" ...")
    return f"{formatting.listing(kinds)}{common}; {law.spread_source}; {source}"
