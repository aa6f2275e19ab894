"""``tonnage explore``."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tonnage.base import core, formatting
from tonnage.cli.options.planning import (
    FLAGS,
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
    job_of,
    known_of,
)
from tonnage.cli.options.types import Json

if TYPE_CHECKING:
    from tonnage.base.records.job import Job


def explore(
    job: Annotated[
        str,
        typer.Argument(
            metavar="JOB",
            help="sort, mapreduce, reduce, or a job's JSON file; the record of a run is one.",
        ),
    ] = "sort",
    catalog: Catalogs = None,
    profiles: Profiles = None,
    objects: Objects = None,
    map_share: MapShare = None,
    reduce_share: ReduceShare = None,
    passes: Passes = None,
    chunk: Chunk = None,
    local_share: LocalShare = None,
    core_seconds: CoreSeconds = None,
    out: Annotated[
        Path, typer.Option("--output", metavar="FILE.html", help="Where the page goes.")
    ] = Path("explore.html"),
    as_json: Json = False,
) -> None:
    """Write a page that plans: how much, by when, and it says what to rent.

    The page needs no network and no Tonnage; it gives the answers of tonnage plan, each with the
    command that gives it too. A link keeps what was asked: explore.html#data=20TB&deadline=2h.
    """
    from tonnage.report.explorer import page_data, write_explorer

    if out.suffix != ".html" or out.is_dir():
        raise core.UsageError(f"--output {out}: name a file that ends in .html")
    about: dict[str, Any] = {
        "--objects": objects,
        "--map-share": map_share,
        "--reduce-share": reduce_share,
        "--passes": passes,
        "--chunk-size": chunk,
        "--local-share": local_share,
        "--core-seconds": core_seconds,
    }
    with core.Progress("gathering what can be planned with") as progress:
        catalogs = catalogs_of(catalog, ())
        progress(1, 4)
        known = known_of(profiles, catalogs)
        progress(2, 4)
        held = page_data(_jobs(job, about), catalogs, known)
        if not held.offers:
            raise core.UsageError("nothing can be planned with: tonnage plan says why")
        progress(3, 4)
        flags = [part for flag, value in about.items() for part in _given(flag, value)]
        flags += [part for name in catalog or () for part in ("--catalog", name)]
        flags += [part for name in profiles or () for part in ("--profile", name)]
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
        f"{formatting.several(held.offers, 'machine')} that can be planned with, of "
        f"{formatting.listing(each.name for each in catalogs)}.\nPage: {page}"
    )


def _jobs(name: str, about: Mapping[str, Any]) -> dict[str, Job]:
    """The job in every durability that there is of it."""
    from tonnage.model.jobs.mapreduce import DURABILITIES

    if "--durability" in FLAGS.get(name, ()) and not about["--objects"]:
        return {how: job_of(name, {**about, "--durability": how}, None) for how in DURABILITIES}
    return {"": job_of(name, about, None)}


def _given(flag: str, value: Any) -> list[str]:
    """A flag as it is typed; nothing if it was not given."""
    if value is None or value is False:
        return []
    if value is True:
        return [flag]
    return [flag, f"{value:.12g}" if isinstance(value, float) else str(value)]
