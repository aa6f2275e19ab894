"""``tonnage explore``."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tonnage import engine, words
from tonnage.cli.arguments import Json
from tonnage.cli.extras import refuse_without
from tonnage.cli.question import FLAGS, Catalogs, Profiles, catalogs_of, job_of, known_of

if TYPE_CHECKING:
    from tonnage.artifacts.job import Job


def explore(
    job: Annotated[
        str, typer.Argument(metavar="JOB", help="sort, reduce, or a job's JSON file.")
    ] = "sort",
    catalog: Catalogs = None,
    profiles: Profiles = None,
    out: Annotated[
        Path, typer.Option("--out", metavar="FILE.html", help="Where the page goes.")
    ] = Path("explore.html"),
    as_json: Json = False,
) -> None:
    """Write a page that plans: how much, by when, and it says what to rent.

    The page needs no network and no Tonnage; it gives the answers of tonnage plan, each with the
    command that gives it too. A link keeps what was asked: explore.html#data=20TB&deadline=2h.
    """
    refuse_without("report", "tonnage explore")
    from tonnage.explore import world, write_explorer

    if out.suffix != ".html" or out.is_dir():
        raise engine.Refused(f"--out {out}: name a file that ends in .html")
    with engine.Progress("gathering what can be planned with") as progress:
        catalogs = catalogs_of(catalog, ())
        progress(1, 4)
        known = known_of(profiles, catalogs)
        if known.runs:
            raise engine.Refused(
                f"--profiles: {known.runs[0]} is a finished run, by which tonnage plan "
                "calibrates, and the page does not: give profiles of measurements alone"
            )
        progress(2, 4)
        held = world(_jobs(job), catalogs, known, _commands(profiles or ()))
        if not held.offers:
            raise engine.Refused("nothing can be planned with: tonnage plan says why")
        progress(3, 4)
        flags = [part for name in catalog or () for part in ("--catalog", name)]
        flags += [part for name in profiles or () for part in ("--profiles", name)]
        page = write_explorer(held, job, flags, out)
    if as_json:
        found = {
            "page": str(page),
            "bytes": page.stat().st_size,
            "job": job,
            "catalogs": [each.name for each in catalogs],
            "profiles": list(known.names),
            "machines": held.offers,
        }
        print(json.dumps(found))
        return
    print(
        f"{words.several(held.offers, 'machine')} that can be planned with, of "
        f"{words.listing(each.name for each in catalogs)}.\nPage: {page}"
    )


def _jobs(name: str) -> dict[str, Job]:
    """The job in every durability that there is of it."""
    from tonnage.model.jobs.mapreduce import DURABILITIES

    if "--durability" in FLAGS.get(name, ()):
        return {how: job_of(name, {"--durability": how}, None) for how in DURABILITIES}
    return {"": job_of(name, {}, None)}


def _commands(profiles: Iterable[str]) -> dict[str, str]:
    """What measured, by the names of the measurements that lie among profiles."""
    from tonnage.artifacts.artifact import ArtifactError
    from tonnage.artifacts.gathering import measurements_at, places

    found: dict[str, str] = {}
    for name in profiles:
        try:
            where = places(Path(name)) if Path(name).exists() else []
        except ArtifactError:
            continue  # It holds no measurement.
        found |= {
            each.id: words.command(each.command) for at in where for each in measurements_at(at)
        }
    return found
