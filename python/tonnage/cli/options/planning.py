"""Options of commands that plan: the job, catalogs of offers, and profiles of their capacity."""

from __future__ import annotations

import dataclasses
import os
import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

from msgspec import structs

from tonnage.base import core, formatting
from tonnage.cli.options.option_groups import flags_and_values
from tonnage.cli.options.types import LARGEST, Argument, Count, Option, Size, Switch, number
from tonnage.cli.options.validate import refuse_unknown, usage_errors

if TYPE_CHECKING:
    from tonnage.base.records.application import Application
    from tonnage.base.records.job import Job
    from tonnage.base.records.location import Location
    from tonnage.catalog import Catalog, Offer
    from tonnage.model.profiles.build import AdvertisedRates
    from tonnage.model.profiles.repository import ProfileIndex
    from tonnage.plan.recommendations.current_cluster import Cluster

BUILT_IN = ("themis-2014", "skyrise")
"""The profiles used if none is given."""
LAB = "lab"
AWS_REGION = r"[a-z]{2}(-[a-z]+)+-\d+"
DEFAULT_CHUNK = 8 << 20
DIVISIBLE = "--divisible"
FLAGS_OF_JOB = {
    "sort": ("--from", "--to", "--durability"),
    "mapreduce": ("--from", "--to", "--durability", "--map-share", "--reduce-share"),
    "reduce": (
        *("--from", "--passes", "--chunk-size", "--local-share"),
        *("--reduction", "--core-seconds"),
    ),
}
"""The flags that describe each kind of job."""
FLAGS_OF_APPLICATION = ("--from", "--to")
"""Those of an application that was imported."""

JobName = Annotated[
    str,
    Argument(
        "JOB",
        "sort, mapreduce, reduce, a job's JSON file, the record of a finished run (its run.json, "
        "or what --json printed), or an application's (tonnage import).",
    ),
]
CatalogNames = Annotated[
    list[str] | None,
    Option(
        "NAME...",
        "Catalogs of offers and prices: names, or CSV files. Default: each provider's newest.",
    ),
]


@dataclass(frozen=True, kw_only=True)
class JobDescription:
    from_: Annotated[
        str | None,
        Option(
            "objects|volumes|local",
            "Where the input is: objects (in object storage like S3), volumes (on network block "
            "storage that was attached before), local (on the nodes' own disks, as on machines "
            "that you keep). Default: objects, since rented machines start empty; of a sort or "
            "MapReduce on machines of your own: local.",
            flag="--from",
        ),
    ] = None
    to: Annotated[
        str | None,
        Option(
            "objects|volumes|local",
            "sort, mapreduce: where the output goes. Default: where the input is; with "
            "--durability replicated: local.",
        ),
    ] = None
    map_share: Annotated[
        float | None,
        Option(
            "RATIO",
            "mapreduce: ratio of map output to input bytes. Default: 1.",
            number(1e-9, 1e9),
        ),
    ] = None
    reduce_share: Annotated[
        float | None,
        Option(
            "RATIO",
            "mapreduce: ratio of reduce output to map output bytes. Default: 1.",
            number(1e-9, 1e9),
        ),
    ] = None
    passes: Annotated[
        int | None, Count("reduce: number of passes over the input. Default: 1.", 1, 1_000)
    ] = None
    chunk_size: Annotated[
        int | None, Size("reduce: approximate size of a chunk. Default: 8MiB.")
    ] = None
    local_share: Annotated[
        float | None,
        Option(
            "SHARE",
            "reduce: share of the input that is on the nodes' own disks, from 0 to 1; the rest is "
            "in object storage. Default: 0.",
            number(0, 1),
        ),
    ] = None
    core_seconds: Annotated[
        float | None,
        Option(
            "N",
            "reduce: core seconds of computation per GB per pass. Default: those of --reduction; "
            "without it they are unknown and not counted, and the plan says so.",
            number(0, 1e6),
        ),
    ] = None
    reduction: Annotated[
        str | None,
        Option(
            "kmeans|pca",
            "reduce: the built-in reduction, whose core seconds count as Tonnage's own benchmark "
            "measured them: 1.7 per GB and iteration of kmeans with 16 centres, 2.6 per GB of pca, "
            "both of rows of eight float64; more centres or columns take more (--core-seconds).",
        ),
    ] = None

    divisible: Annotated[
        bool | None,
        Switch(
            "--divisible",
            "A job in a file: machines can share the work, each with a part of the input. Default: "
            "as the file says; a command that was observed runs on one machine.",
        ),
    ] = None

    @property
    def given_flags(self) -> dict[str, Any]:
        values = flags_and_values(self)
        return {flag: value for flag, value in values.items() if value is not None}


@dataclass(frozen=True, kw_only=True)
class PlanSources:
    catalog: CatalogNames = None
    region: Annotated[
        list[str] | None,
        Option(
            "NAME...",
            "Only offers of these regions, such as us-east-1, us-central1 or eastus: from "
            "--catalog, or else the newest catalogs of these regions, the files that tonnage "
            "catalog refresh wrote into the current directory included.",
        ),
    ] = None
    profile: Annotated[
        list[str] | None,
        Option(
            "NAME_OR_DIR...",
            "Measured capacities: names of profiles, or directories of profiles and "
            f"measurements. Default: {' and '.join(BUILT_IN)}, published measurements of machines "
            "of AWS; other machines get what these reached of their advertised rates.",
        ),
    ] = None


def shipped_catalogs() -> list[Catalog]:
    """All that are shipped, older ones first: runs may be of machines of their time."""
    from tonnage.catalog import catalog_names, load_catalog

    return [load_catalog(name) for name in sorted(catalog_names())]


def load_catalogs(
    names: list[str] | None, providers: Sequence[str] = (), regions: Sequence[str] = ()
) -> list[Catalog]:
    from tonnage.catalog import CatalogError, load_catalog, newest_catalogs, newest_of_regions

    with usage_errors(CatalogError, prefix="--catalog: "):
        if names:
            found = list(map(load_catalog, names))
        else:
            found = newest_of_regions(regions) if regions else newest_catalogs()
    if regions:
        _refuse_unknown_regions(regions, found, names)
        found = [each for each in found if each.region in regions]
    refuse_unknown("--provider", providers, sorted({each.provider for each in found}))
    return [each for each in found if not providers or each.provider in providers]


def _refuse_unknown_regions(
    regions: Sequence[str], found: Sequence[Catalog], names: list[str] | None
) -> None:
    from tonnage.catalog import catalog_names, load_catalog

    for region in regions:
        if any(each.region == region for each in found):
            continue
        if names:
            known = [f"{each.name} is of {each.region or 'an unknown region'}" for each in found]
            raise core.UsageError(
                f"--region {region}: {formatting.listing(known)}; add a catalog of {region}, or "
                "remove --region"
            )
        if re.fullmatch(AWS_REGION, region):
            raise core.UsageError(
                f"--region {region}: there is no catalog of this region; fetch one with tonnage "
                f"catalog refresh aws --region {region}"
            )
        shipped = [load_catalog(name).region for name in catalog_names()]
        refuse_unknown("--region", [region], dict.fromkeys(filter(None, shipped)))


def load_profiles(names: list[str] | None, catalogs: list[Catalog]) -> ProfileIndex:
    """The profiles of these names; refused if one has no machine type of the catalogs."""
    from tonnage.model.jobs.core_throughput import core_throughput
    from tonnage.model.profiles.repository import ProfileError, index_profiles, read_profiles

    def figures() -> AdvertisedRates:
        from tonnage.plan.resources.machines import advertised_rates

        return advertised_rates(catalogs)

    offers = {(offer.provider, offer.type) for each in catalogs for offer in each.offers}
    found = []
    for name in names or BUILT_IN:
        with usage_errors(ProfileError, prefix="--profile: "):
            profiles = read_profiles(name, figures)
        measured = [(entry.provider, entry.type) for each in profiles for entry in each.offers]
        for_all = any(each.shares or each.starts for each in profiles)
        if not offers.intersection(measured) and not for_all:
            types = ", ".join(sorted({kind for _, kind in measured}))
            covers = f"covers {types}, not the offers" if types else "covers none of the offers"
            raise core.UsageError(
                f"--profile {name} {covers} of the catalogs used; select the right catalog with "
                "--catalog"
            )
        found += profiles
    with usage_errors(ProfileError, prefix="--profile: "):
        known = index_profiles(found)
    shares = dataclasses.replace(known.shares, engine=core_throughput())
    return dataclasses.replace(known, shares=shares)


def require_offer(flag: str, catalogs: Sequence[Catalog], name: str) -> Offer:
    from tonnage.catalog import CatalogError, find_offer

    with usage_errors(CatalogError, prefix=f"{flag}: "):
        return find_offer(catalogs, name)[1]


def usual_location(catalogs: Sequence[Catalog]) -> Location:
    """Where data is if nobody says so: rented machines start empty, a lab's do not."""
    return "local" if all(each.provider == LAB for each in catalogs) else "objects"


def refuse_without_store(job: Job, catalogs: Sequence[Catalog]) -> None:
    """Refuses a job on object storage if no catalog has any."""
    needs_store = any(room.where == "object" for room in job.room)
    if needs_store and not any(each.object_store or each.provider == LAB for each in catalogs):
        lack = "lacks" if len(catalogs) == 1 else "lack"
        raise core.UsageError(
            f"{formatting.listing(each.name for each in catalogs)} {lack} object storage, where "
            "the job's data is; for data elsewhere, add --from local or --from volumes"
        )


def job_from(
    name: str,
    given: dict[str, Any],
    usual: Location,
    egress: float | None = None,
    now: Cluster | None = None,
) -> Job:
    """The job of a kind, or in a file.

    ``usual`` is where a sort's input is if nobody says so, ``now`` the cluster on which an
    application was seen.
    """
    from tonnage.cli.measure.importing.not_imported import refuse_not_imported

    refuse_not_imported(name, "JOB")
    if Path(name).is_file() and (application := _application_in_file(Path(name))):
        _refuse_flags_of_others(name, given, FLAGS_OF_APPLICATION)
        job = _job_of_application(application, given, now)
        return job if egress is None else structs.replace(job, taken_out_per_byte=egress)
    if DIVISIBLE in given and name in FLAGS_OF_JOB:
        raise core.UsageError(
            f"{DIVISIBLE} is for a job in a file; {name} divides anyway; remove it"
        )
    _refuse_flags_of_others(name, given, (DIVISIBLE, *FLAGS_OF_JOB.get(name, ())))
    if name in ("sort", "mapreduce"):
        job = _shuffling_job(name, given, usual)
    elif name == "reduce":
        job = _reducing_job(given)
    elif Path(name).is_file():
        job = _seen_on(_job_in_file(Path(name)), now)
    elif "/" in name or name.endswith(".json") or Path(name).exists():
        what = "not a regular file" if os.path.lexists(name) else "no such file"
        raise core.UsageError(
            f"JOB {name}: {what}; use a job's JSON file, or the record of a finished run"
        )
    else:
        raise core.UsageError(
            f"JOB {name} is not valid{formatting.did_you_mean(name, FLAGS_OF_JOB)}; use sort, "
            "mapreduce, reduce or a job's JSON file"
        )
    if DIVISIBLE in given:
        job = structs.replace(job, divisible=True)
    return job if egress is None else structs.replace(job, taken_out_per_byte=egress)


def _seen_on(job: Job, now: Cluster | None) -> Job:
    """A job that was observed, with the speed of the cores that it ran on."""
    from tonnage.plan.resources.machines import core_speed

    if now is None or job.seen_bytes is None or job.core_speed is not None:
        return job
    return structs.replace(job, core_speed=core_speed(now.offer))


def _refuse_flags_of_others(name: str, given: Iterable[str], known: Collection[str]) -> None:
    for flag in given:
        if flag not in known:
            kinds = [job for job, flags in FLAGS_OF_JOB.items() if flag in flags]
            of_kinds = " and ".join(kinds) or "a job that was observed"
            raise core.UsageError(f"{flag} applies only to {of_kinds}, not to {name}; remove it")


def _application_in_file(path: Path) -> Application | None:
    from tonnage.base.records.application import Application
    from tonnage.base.records.base import RecordError
    from tonnage.base.records.find_measurements import has_schema

    with usage_errors(RecordError, prefix="JOB "):
        return Application.read(path) if has_schema(path, Application) else None


def _job_of_application(
    application: Application, given: dict[str, Any], now: Cluster | None
) -> Job:
    from tonnage.model.jobs.application import application_job
    from tonnage.plan.recommendations.seen_application import job_seen_on

    read, written = _location("--from", given, None), _location("--to", given, None)
    if now is None:
        return application_job(application, read_from=read, written_to=written)
    return job_seen_on(application, now.offer, now.nodes, read_from=read, written_to=written)


def _shuffling_job(name: str, given: dict[str, Any], usual: Location) -> Job:
    from tonnage.base.records.durability import DURABILITIES
    from tonnage.model.jobs.mapreduce import mapreduce_job, sort_job

    durability = given.get("--durability", "none")
    refuse_unknown("--durability", [durability], DURABILITIES)
    copied = durability == "replicated"
    read_from = _location("--from", given, usual)
    written_to = _location("--to", given, "local" if copied else read_from)
    if copied and written_to != "local":
        raise core.UsageError(
            f"--durability replicated copies output on the nodes' own disks, but --to "
            f"{written_to} keeps it elsewhere; remove one of them"
        )
    if name == "sort":
        return sort_job(durability, read_from=read_from, written_to=written_to)
    return mapreduce_job(
        durability,
        read_from=read_from,
        written_to=written_to,
        map_share=given.get("--map-share", 1.0),
        reduce_share=given.get("--reduce-share", 1.0),
    )


Default = TypeVar("Default", "Location", "Location | None")


def _location(flag: str, given: dict[str, Any], default: Default) -> Default:
    from tonnage.base.records.location import LOCATIONS

    if flag not in given:
        return default
    location: Location = given[flag]
    refuse_unknown(flag, [location], LOCATIONS)
    return location


def _reducing_job(given: dict[str, Any]) -> Job:
    from tonnage.model.jobs.core_throughput import REDUCTIONS
    from tonnage.model.jobs.reduce import reduce_job

    read_from = _location("--from", given, "objects")
    share = given.get("--local-share")
    if share is not None and read_from != "objects":
        raise core.UsageError(
            f"--local-share {share:g} leaves the rest of the input in object storage, but --from "
            f"is {read_from}; remove one of them"
        )
    chunk = given.get("--chunk-size", DEFAULT_CHUNK)
    if not 0 < chunk <= LARGEST:
        raise core.UsageError(f"--chunk-size {chunk}: use 1 to {LARGEST} bytes")
    seconds, reduction = given.get("--core-seconds"), given.get("--reduction")
    if reduction is not None:
        refuse_unknown("--reduction", [reduction], REDUCTIONS)
    if reduction is not None and seconds is not None:
        raise core.UsageError(
            f"--core-seconds {seconds:g} replaces the core seconds of --reduction {reduction}; "
            "remove one of them"
        )
    return reduce_job(
        given.get("--passes", 1),
        chunk_bytes=chunk,
        read_from=read_from,
        local_share=share or 0.0,
        cpu_seconds_per_byte=None if seconds is None else seconds / 1e9,
        reduction=reduction,
    )


def _job_in_file(path: Path) -> Job:
    from tonnage.base.records import ReductionRecord, RunRecord
    from tonnage.base.records.base import RecordError
    from tonnage.base.records.find_measurements import has_schema
    from tonnage.base.records.job import Job
    from tonnage.model.jobs.mapreduce import job_from_run
    from tonnage.model.jobs.reduce import job_from_reduction

    with usage_errors(RecordError, ValueError, prefix="JOB "):
        if has_schema(path, ReductionRecord):
            return job_from_reduction(ReductionRecord.read(path))
        if has_schema(path, RunRecord):
            return job_from_run(RunRecord.read(path))
        job = Job.read(path)
    demands = [demand for phase in job.phases for demand in phase.demands]
    if not any(each.per_byte for each in demands) and not any(
        each.fixed_seconds for each in job.phases
    ):
        raise core.UsageError(
            f"JOB {path}: $.phases: none demands anything of a resource, so there is nothing to "
            "plan"
        )
    return job
