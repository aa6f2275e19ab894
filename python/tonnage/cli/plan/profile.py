"""``tonnage profile``."""

from __future__ import annotations

import datetime
import json
import textwrap
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from tonnage.base import core, formatting
from tonnage.cli.options.inputs import load_all, load_records, measurement_files
from tonnage.cli.options.planning import BUILT_IN, CatalogNames, load_catalogs, require_offer
from tonnage.cli.options.types import Argument, Json, Option, Switch
from tonnage.cli.options.validate import refuse_suffix, usage_errors

if TYPE_CHECKING:
    from tonnage.base.records.calibration import Calibration
    from tonnage.base.records.profile import CapacityDistribution, Profile
    from tonnage.catalog import Catalog
    from tonnage.model.profiles.offer_matching import OfferAssignments, OfferName

SOURCE_WIDTH = 120
"""A longer list of sources is cut; the file has all."""


def profile(
    *,
    paths: Annotated[
        list[Path],
        Argument(
            "RECORD...",
            "Measurements, records of finished runs and of launches, or directories that contain "
            "them at any depth.",
        ),
    ],
    out: Annotated[Path, Option("PROFILE.json", "File for the profile.", flag="--output")],
    offer: Annotated[
        list[str] | None,
        Option(
            "[HOST=]OFFER...",
            "The offer that was measured, if the measurements do not state it: OFFER for all "
            "hosts, HOST=OFFER for one host. An offer is TYPE or PROVIDER/TYPE.",
        ),
    ] = None,
    catalog: CatalogNames = None,
    volumes: Annotated[
        bool,
        Switch(
            "--volumes",
            "Treat devices of unknown kind as network block storage, not as local disks.",
        ),
    ] = False,
    placement: Annotated[
        bool, Switch("--placement", "The machines were in a placement group.")
    ] = False,
    name: Annotated[
        str | None, Option("NAME", "Name of the profile. Default: the name of its file.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Build a capacity profile for tonnage plan from measurements, finished runs and launches.

    A run calibrates plans for its kind of job: the measured times of its phases take precedence
    over benchmarks. Launches that got ready take precedence over what others measured of starts.

    Examples:
        tonnage profile results --offer aws/i4i.large --output mine.json
    """
    from tonnage.model.profiles.build import build_profile
    from tonnage.model.profiles.offer_matching import OfferError
    from tonnage.plan.resources.machines import advertised_rates

    refuse_suffix(out, ".json")
    catalogs = load_catalogs(catalog)
    assigned = _assignments(offer or [], catalogs)
    given = load_records(paths)
    measurements = load_all(measurement_files(given.measured)) if given.measured else []
    with usage_errors(OfferError, prefix="--offer "):
        made = build_profile(
            measurements,
            advertised_rates(catalogs),
            name=name or out.stem,
            made_at=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
            runs=given.runs,
            launches=given.launches,
            assigned=assigned,
            volumes=volumes,
            placement=placement,
        )
    if not made.offers and not made.starts:
        reason = made.left_out[0].why if made.left_out else "there are no trials"
        raise core.UsageError(f"no profile can be built: {reason}")
    made.write(out)
    if as_json:
        print(json.dumps(made.to_json()))
    else:
        print("\n".join(_lines(made)))
        known = [law.resource for each in made.offers for law in each.laws]
        known += [law.resource for law in made.shares]
        # No shuffle can be planned without a network's rate.
        others = "" if "network" in known else f"--profile {' '.join(BUILT_IN)} "
        others += "".join(f"--catalog {each} " for each in catalog or [])
        print(f"Profile: {out}. To plan with it: tonnage plan JOB {others}--profile {out}")


def _assignments(given: Sequence[str], catalogs: Sequence[Catalog]) -> OfferAssignments:
    from tonnage.model.profiles.offer_matching import OfferAssignments

    of_hosts: dict[str, OfferName] = {}
    of_all: OfferName | None = None
    for each in given:
        host, separator, named = each.rpartition("=")
        if separator and not host:
            raise core.UsageError(
                f"--offer {each}: the host is missing; use HOST=OFFER, or OFFER for all hosts"
            )
        # A mistyped offer would never be planned with.
        found = require_offer("--offer", catalogs, named)
        offer = found.provider, found.type
        known = of_hosts.get(host) if host else of_all
        if known not in (None, offer):
            whose = host or "all hosts"
            raise core.UsageError(
                f"--offer {each} conflicts with {'/'.join(known or ())}, which --offer also states "
                f"for {whose}; remove one of them"
            )
        if host:
            of_hosts[host] = offer
        else:
            of_all = offer
    return OfferAssignments(of_all, of_hosts)


def _lines(made: Profile) -> list[str]:
    lines = []
    for each in made.offers:
        placed = ", in a placement group" if each.placement else ""
        lines.append(f"{each.provider}/{each.type}{placed}")
        lines += [f"  {law.resource}: {_distribution(law)}" for law in each.laws]
        if each.scaling and len(each.scaling.points) > 1:
            points = [
                f"{formatting.percent(share)} of {nodes}" for nodes, share in each.scaling.points
            ]
            lines.append(f"  network, by nodes: {formatting.listing(points)}")
        lines += [_calibration(runs) for runs in each.calibrations]
    for law in made.shares:
        if law.resource.startswith("cpu "):
            lines.append(f"{law.resource}, per vCPU of any offer: {_distribution(law)}")
        else:
            lines.append(
                f"{law.resource}, as a share of the advertised figure: "
                f"{_distribution(law, formatting.percent)}"
            )
    lines += [f"{each.provider}, start: {_start(each.law)}" for each in made.starts]
    for out in made.left_out:
        these = formatting.several(len(out.measurements), "record")
        some = ", ".join(out.measurements[:3]) + (", ..." if len(out.measurements) > 3 else "")
        lines.append(f"Left out, from {these} ({some}): {formatting.sentence(out.why)}")
    return lines


def _calibration(runs: Calibration) -> str:
    kept = "" if runs.durability == "none" else f" ({runs.durability})"
    phases = [
        f"{formatting.phase(phase.name)} {formatting.rate(phase.pace)} of input per node, "
        f"limited by {phase.limits[0]}"
        for phase in runs.phases
    ]
    return (
        f"  {runs.job}{kept}, from runs: {formatting.listing(phases)}; spread "
        f"{formatting.percent(runs.phases[0].spread)}, {runs.spread_source}; {', '.join(runs.runs)}"
    )


def _start(law: CapacityDistribution) -> str:
    (mode,) = law.modes
    source = textwrap.shorten(law.source, SOURCE_WIDTH, placeholder=" ...")
    return (
        f"{formatting.duration(1 / mode.median)} (spread {formatting.percent(mode.spread)}); "
        f"{law.spread_source}; {source}"
    )


def _distribution(
    law: CapacityDistribution, figure: Callable[[float], str] = formatting.rate
) -> str:
    kinds = [
        f"{figure(mode.median)} (spread {formatting.percent(mode.spread)}, "
        f"{formatting.several(mode.instances, 'node')})"
        for mode in law.modes
    ]
    common = (
        f", spread between clusters {formatting.percent(law.fleet_spread)}"
        if law.fleet_spread
        else ""
    )
    source = textwrap.shorten(law.source, SOURCE_WIDTH, placeholder=" ...")
    return f"{formatting.listing(kinds)}{common}; {law.spread_source}; {source}"
