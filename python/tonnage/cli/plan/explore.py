"""``tonnage explore``."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from tonnage.base import core, formatting
from tonnage.base.core.sockets import DESCRIPTORS
from tonnage.base.records.location import LOCATIONS
from tonnage.cli.options.option_groups import flags_and_values
from tonnage.cli.options.planning import (
    FLAGS_OF_JOB,
    LAB,
    JobDescription,
    JobName,
    PlanSources,
    job_from,
    load_catalogs,
    load_profiles,
    refuse_without_store,
    usual_location,
)
from tonnage.cli.options.prices.own_prices import PriceOptions
from tonnage.cli.options.types import Json, Option
from tonnage.cli.options.validate import refuse_suffix
from tonnage.cli.output import print_result

if TYPE_CHECKING:
    from tonnage.base.records.job import Job
    from tonnage.catalog import Catalog


def explore(
    *,
    job: JobName = "sort",
    sources: PlanSources,
    description: JobDescription,
    pricing: PriceOptions,
    out: Annotated[Path, Option("FILE.html", "File for the page.", flag="--output")] = Path(
        "explore.html"
    ),
    as_json: Json = False,
) -> None:
    """Write an interactive planning page: choose a data size and a deadline, and see what to rent.

    The page works offline and without Tonnage. It gives the same answers as tonnage plan, and shows
    the equivalent command. Your choices are kept in the page's URL:
    explore.html#data=20TB&deadline=2h.

    Examples:
        tonnage explore --output explore.html
        tonnage explore reduce --passes 10 --chunk-size 8MiB
    """
    from tonnage.plan.resources.startup import default_startup
    from tonnage.report.explorer import page_data, write_explorer

    refuse_suffix(out, ".html")
    given = description.given_flags
    with core.Progress("collecting offers and profiles") as progress:
        catalogs = load_catalogs(sources.catalog, regions=sources.region or ())
        progress(1, 4)
        profiles = load_profiles(sources.profile, catalogs)
        progress(2, 4)
        data = page_data(
            _jobs(job, given, catalogs),
            catalogs,
            profiles,
            default_startup(profiles.starts),
            memory=True,
            descriptors=DESCRIPTORS,
            public_addresses=True,
            own_prices=pricing.own_prices(catalogs),
            today=datetime.date.today(),
        )
        if not data.offers:
            raise core.UsageError("no offer is usable; run tonnage plan to see why")
        progress(3, 4)
        typed = given | {flag: each for flag, each in flags_and_values(pricing).items() if each}
        flags = [part for flag, value in typed.items() for part in _typed(flag, value)]
        flags += [part for name in sources.catalog or () for part in ("--catalog", name)]
        flags += [part for name in sources.region or () for part in ("--region", name)]
        flags += [part for name in sources.profile or () for part in ("--profile", name)]
        page = write_explorer(data, job, flags, out)
    values = {
        "page": str(page),
        "bytes": page.stat().st_size,
        "job": job,
        "catalogs": [each.name for each in catalogs],
        "profiles": list(profiles.names),
        "machines": data.offers,
    }
    names = formatting.listing(each.name for each in catalogs)
    lines = [
        f"The page covers {formatting.several(data.offers, 'offer')} from {names}.",
        f"Page: {page}",
    ]
    print_result(values, lines, as_json)


def _jobs(name: str, given: dict[str, Any], catalogs: Sequence[Catalog]) -> dict[str, Job]:
    """The job for each location of its data; only one if flags or the job itself state it."""
    usual = usual_location(catalogs)
    if "--durability" not in FLAGS_OF_JOB.get(name, ()) or {"--from", "--to"} & given.keys():
        job = job_from(name, given, usual)
        refuse_without_store(job, catalogs)
        return {"": job}
    locations = [usual, *(each for each in LOCATIONS if each != usual)]
    if not any(each.object_store or each.provider == LAB for each in catalogs):
        locations.remove("objects")
    jobs: dict[str, Job] = {
        each: job_from(name, {**given, "--from": each}, usual) for each in locations
    }
    copied = {**given, "--from": "local", "--durability": "replicated"}
    return {**jobs, "replicated": job_from(name, copied, usual)}


def _typed(flag: str, value: Any) -> list[str]:
    if value is True:
        return [flag]
    return [flag, f"{value:.12g}" if isinstance(value, float) else str(value)]
