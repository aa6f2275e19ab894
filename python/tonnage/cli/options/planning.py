"""What is asked of a plan: its catalogs, what is known of their offers, and the job."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from msgspec import structs

from tonnage.base import core, formatting
from tonnage.cli.options.types import LARGEST, number, parse_size, whole_number
from tonnage.cli.options.validate import refuse_unknown

if TYPE_CHECKING:
    from tonnage.base.records.job import Job
    from tonnage.catalog import Catalog, Offer
    from tonnage.model.profiles.build import AdvertisedRates
    from tonnage.model.profiles.repository import ProfileIndex

BUILT_IN = "themis-2014"
"""The profile that is taken if none is given."""
FLAGS = {
    "sort": ("--durability", "--objects"),
    "mapreduce": ("--durability", "--objects", "--map-share", "--reduce-share"),
    "reduce": ("--passes", "--chunk-size", "--local-share", "--core-seconds"),
}
"""Which flags say what a kind of job is like."""
DEFAULT_CHUNK = 8 << 20
Catalogs = Annotated[
    list[str] | None,
    typer.Option(
        "--catalog",
        metavar="NAME",
        help="A catalog's name or CSV file; again for more. Default: each provider's newest.",
    ),
]
Profiles = Annotated[
    list[str] | None,
    typer.Option(
        "--profile",
        metavar="NAME_OR_DIR",
        help="What was measured: a profile's name, or a directory of profiles and measurements; "
        "again for more. Default: themis-2014.",
    ),
]


Objects = Annotated[
    bool | None,
    typer.Option(
        "--objects",
        help="Input and output are objects in a store, like S3, which keeps them. Of sort and "
        "mapreduce.",
    ),
]
MapShare = Annotated[
    float | None,
    typer.Option(
        "--map-share",
        parser=number(1e-9, 1e9),
        metavar="SHARE",
        help="Of mapreduce: bytes that the map makes of each byte.",
    ),
]
ReduceShare = Annotated[
    float | None,
    typer.Option(
        "--reduce-share",
        parser=number(1e-9, 1e9),
        metavar="SHARE",
        help="Of mapreduce: bytes that the reduction makes of each byte of those.",
    ),
]
Passes = Annotated[
    int | None,
    typer.Option(
        "--passes",
        parser=whole_number(1, 10_000),
        metavar="N",
        help="Of reduce: how often all data is gone through.",
    ),
]
Chunk = Annotated[
    int | None,
    typer.Option(
        "--chunk-size", parser=parse_size, metavar="SIZE", help="Of reduce: what a request gets."
    ),
]
LocalShare = Annotated[
    float | None,
    typer.Option(
        "--local-share",
        parser=number(0, 1),
        metavar="SHARE",
        help="Of reduce: of the input, what lies on the nodes' own disks. Default: 0.",
    ),
]
CoreSeconds = Annotated[
    float | None,
    typer.Option(
        "--core-seconds",
        parser=number(0, 1e6),
        metavar="N",
        help="Of reduce: what its own work takes of a core for each GB, in each pass.",
    ),
]


def catalogs_of(given: list[str] | None, providers: list[str] | tuple[str, ...]) -> list[Catalog]:
    """The catalogs of these names, or each provider's newest; of these providers."""
    from tonnage.catalog import CatalogError, load_catalog, newest_catalogs

    try:
        found = list(map(load_catalog, given)) if given else newest_catalogs()
    except CatalogError as why:
        raise core.UsageError(f"--catalog: {why}") from why
    refuse_unknown("--provider", providers, sorted({each.provider for each in found}))
    return [each for each in found if not providers or each.provider in providers]


def known_of(given: list[str] | None, catalogs: list[Catalog]) -> ProfileIndex:
    """What these profiles say; refused if one is of no machine in the catalogs."""
    from tonnage.model.profiles.repository import ProfileError, index_profiles, read_profiles

    def figures() -> AdvertisedRates:
        from tonnage.plan.advertised import advertised_figures

        return advertised_figures(catalogs)

    offers = {(offer.provider, offer.type) for each in catalogs for offer in each.offers}
    found = []
    for name in given or [BUILT_IN]:
        try:
            profiles = read_profiles(name, figures)
        except ProfileError as why:
            raise core.UsageError(f"--profile: {why}") from why
        of = [(entry.provider, entry.type) for each in profiles for entry in each.offers]
        if not offers.intersection(of) and not any(each.shares for each in profiles):
            types = ", ".join(sorted({kind for _, kind in of})) or "no machine"
            raise core.UsageError(
                f"--profile {name}: it is of {types}, which is in no catalog that is asked for: "
                "give its --catalog"
            )
        found += profiles
    try:
        return index_profiles(found)
    except ProfileError as why:
        raise core.UsageError(f"--profile: {why}") from why


def find_offer(flag: str, catalogs: Sequence[Catalog], name: str) -> Offer:
    """The offer of this name; refused if no catalog has it.

    Args:
        flag: What gave it.
        catalogs: Where to look.
        name: ``TYPE``, or ``PROVIDER/TYPE``.
    """
    from tonnage.catalog import CatalogError, find_offer

    try:
        return find_offer(catalogs, name)[1]
    except CatalogError as why:
        raise core.UsageError(f"{flag}: {why}; or give its --catalog") from why


def job_of(name: str, about: Mapping[str, Any], taken_out: float | None) -> Job:
    """The kind of job of this name, or the one in this file.

    Args:
        name: What it is called.
        about: Flags that say what such a job is like, as they were given; ``None`` were not.
        taken_out: Bytes that leave the provider for each byte of input, if that was given.
    """
    from tonnage.model.jobs.mapreduce import DURABILITIES, mapreduce_job, sort_job
    from tonnage.model.jobs.reduce import reduce_job

    given = {flag: value for flag, value in about.items() if value is not None}
    for flag in given:
        if flag not in FLAGS.get(name, ()):
            whose = [job for job, flags in FLAGS.items() if flag in flags]
            raise core.UsageError(
                f"{flag} is of {' and '.join(whose)}, not of {name}: leave it out"
            )
    objects = given.get("--objects", False)
    durability = given.get("--durability", "volumes" if objects else "none")
    refuse_unknown("--durability", [durability], DURABILITIES)
    if objects and durability != "volumes":
        raise core.UsageError(
            f"--objects: a store keeps what is in it, and --durability {durability} is of the "
            "machines' own disks: give one of the two"
        )
    if name == "sort":
        made = sort_job(durability, objects=objects)
    elif name == "mapreduce":
        made = mapreduce_job(
            durability,
            objects=objects,
            map_share=given.get("--map-share", 1.0),
            reduce_share=given.get("--reduce-share", 1.0),
        )
    elif name == "reduce":
        chunk = given.get("--chunk-size", DEFAULT_CHUNK)
        if not 0 < chunk <= LARGEST:
            raise core.UsageError("--chunk-size 0: a request gets at least a byte")
        seconds = given.get("--core-seconds")
        made = reduce_job(
            given.get("--passes", 1),
            chunk_bytes=chunk,
            local_share=given.get("--local-share", 0.0),
            cpu_seconds_per_byte=None if seconds is None else seconds / 1e9,
        )
    elif Path(name).is_file():
        made = _in_file(Path(name))
    elif "/" in name or name.endswith(".json"):
        raise core.UsageError(f"JOB {name}: there is no such file: give a job's, or a run's record")
    else:
        raise core.UsageError(
            f"JOB {name}: give sort, mapreduce, reduce or a job's JSON file"
            f"{formatting.did_you_mean(name, FLAGS)}"
        )
    return made if taken_out is None else structs.replace(made, taken_out_per_byte=taken_out)


def _in_file(path: Path) -> Job:
    """The job that a file holds, or that a run was of which it holds the record."""
    from tonnage.base.records import ReductionRecord, RunRecord
    from tonnage.base.records.base import RecordError
    from tonnage.base.records.discovery import has_schema
    from tonnage.base.records.job import Job
    from tonnage.model.jobs.mapreduce import job_from_run
    from tonnage.model.jobs.reduce import job_from_reduction

    try:
        if has_schema(path, ReductionRecord):
            return job_from_reduction(ReductionRecord.read(path))
        if has_schema(path, RunRecord):
            return job_from_run(RunRecord.read(path))
        return Job.read(path)
    except (RecordError, UnicodeDecodeError, ValueError) as why:
        raise core.UsageError(f"JOB {why}") from why
