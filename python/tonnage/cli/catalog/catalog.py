"""``tonnage catalog``: what can be rented, where its figures are from, and how they change."""

from __future__ import annotations

import dataclasses
import json
import re
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tonnage.base import core, formatting
from tonnage.cli.measure.net import parse_rate
from tonnage.cli.options.extras import refuse_without
from tonnage.cli.options.types import Json, number, parse_size, parse_usd
from tonnage.cli.options.validate import refuse_unknown

if TYPE_CHECKING:
    from tonnage.catalog import Catalog, Offer

REFRESHABLE = ("aws",)
FIRST_AFTER_SECONDS, EVERY_SECONDS = 1.0, 5.0
"""When, and how often then, a refresh says how far it is."""

SORTS: dict[str, Callable[[Offer], tuple[bool, float | str]]] = {
    "price": lambda offer: (
        offer.on_demand is None,
        offer.on_demand.usd_per_hour if offer.on_demand else 0.0,
    ),
    "type": lambda offer: (False, offer.type),
    "vcpus": lambda offer: _most_first(offer.vcpus),
    "memory": lambda offer: _most_first(offer.memory_bytes),
    "local-disk": lambda offer: _most_first(offer.local_bytes),
    "network": lambda offer: _most_first(offer.network.baseline_bytes_per_second),
}
"""What offers can be sorted by; what is unknown comes last."""
LEAST_CAPACITY = 1_000_000
"""Bytes. What is below was meant in another unit."""


def parse_capacity(text: str) -> int:
    """What a machine has of memory or disks, in bytes; a number without its unit is no such."""
    found = parse_size(text)
    if found < LEAST_CAPACITY:
        raise typer.BadParameter(f"{text!r} is less than any machine has: write it like 64GiB")
    return found


def ls(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="CATALOG",
            help="Catalogs by name or as CSV files. Default: the newest of each provider, if "
            "anything is asked of their offers; else the catalogs are listed.",
        ),
    ] = None,
    provider: Annotated[
        str | None,
        typer.Option("--provider", metavar="NAME", help="One of aws, azure, gcp and lab."),
    ] = None,
    arch: Annotated[
        str | None,
        typer.Option("--arch", metavar="NAME", help="Like x86_64 or arm64."),
    ] = None,
    min_vcpus: Annotated[
        float | None,
        typer.Option(
            "--min-vcpus", parser=number(0, 1_000_000), metavar="N", help="At least so many."
        ),
    ] = None,
    min_memory: Annotated[
        int | None,
        typer.Option(
            "--min-memory", parser=parse_capacity, metavar="SIZE", help="At least, like 64GiB."
        ),
    ] = None,
    min_local_disk: Annotated[
        int | None,
        typer.Option(
            "--min-local-disk",
            parser=parse_capacity,
            metavar="SIZE",
            help="All local disks together at least, like 1TB.",
        ),
    ] = None,
    min_network: Annotated[
        int | None,
        typer.Option(
            "--min-network",
            parser=parse_rate,
            metavar="RATE",
            help="What the network lastingly has at least, like 10Gbit; bursts do not count.",
        ),
    ] = None,
    max_price: Annotated[
        float | None,
        typer.Option(
            "--max-price",
            parser=parse_usd,
            metavar="USD",
            help="At most by the hour, on demand, like 0.5 or 0.5USD.",
        ),
    ] = None,
    sort: Annotated[
        str | None,
        typer.Option("--sort", metavar="BY", help=f"One of {', '.join(SORTS)}. Default: price."),
    ] = None,
    as_json: Json = False,
) -> None:
    """List the catalogs, or those of their offers that are as wanted.

    An offer is left out where a figure that decides is unknown, and the last line counts those.
    """
    from tonnage.catalog import OfferFilter, load_catalog
    from tonnage.catalog import catalog_names as shipped
    from tonnage.cli.output.offers import print_catalogs, print_offers

    refuse_unknown("--sort", [sort] if sort else [], SORTS)
    wanted = OfferFilter(
        provider=provider,
        arch=arch,
        least_vcpus=min_vcpus,
        least_memory_bytes=min_memory,
        least_local_bytes=min_local_disk,
        least_network_bytes_per_second=None if min_network is None else min_network / 8,
        most_usd_per_hour=max_price,
    )
    if not names and not sort and wanted == OfferFilter():
        with _refusing():
            print_catalogs([load_catalog(name) for name in shipped()], as_json)
        return
    catalogs = _catalogs(names or [])
    refuse_unknown(
        "--provider", [provider] if provider else [], sorted({e.provider for e in catalogs})
    )
    if arch:
        known = {each.arch for catalog in catalogs for each in catalog.offers if each.arch}
        refuse_unknown("--arch", [arch], sorted(known))
    print_offers(catalogs, wanted, SORTS[sort or "price"], as_json)


def show(
    name: Annotated[
        str, typer.Argument(metavar="OFFER", help="A machine type: TYPE, or PROVIDER/TYPE.")
    ],
    catalog: Annotated[
        str | None,
        typer.Option(
            "--catalog",
            metavar="CATALOG",
            help="Its catalog, by name or as a CSV file. Default: the newest of each provider.",
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Show all that is known of an offer, where it is from, and what is unknown."""
    from tonnage.catalog import catalogs_with, find_offer
    from tonnage.cli.options.planning import catalogs_of
    from tonnage.cli.output.offers import print_offer, told

    with _refusing():
        where, offer = find_offer(catalogs_of([] if catalog is None else [catalog], ()), name)
    if as_json:
        about = dataclasses.asdict(dataclasses.replace(where, offers=()))
        del about["offers"]
        print(json.dumps({"offer": told(offer), "catalog": about}))
        return
    others = [each.name for each in catalogs_with(offer.type) if each.name != where.name]
    print_offer(where, offer, others)


def diff(
    before: Annotated[str, typer.Argument(metavar="BEFORE", help="A catalog's name, or a CSV.")],
    after: Annotated[str, typer.Argument(metavar="AFTER", help="Another of the same provider.")],
    as_json: Json = False,
) -> None:
    """Tell what is new, gone, dearer, cheaper or changed from one catalog to another, by type."""
    from tonnage.catalog import compare_catalogs, load_catalog
    from tonnage.cli.output.offers import print_difference

    with _refusing():
        found = compare_catalogs(load_catalog(before), load_catalog(after))
    if as_json:
        print(json.dumps(dataclasses.asdict(found)))
        return
    print_difference(found)


def refresh(
    provider: Annotated[
        str, typer.Argument(metavar="PROVIDER", help=f"One of {', '.join(REFRESHABLE)}.")
    ],
    region: Annotated[
        str, typer.Option("--region", metavar="NAME", help="The provider's region.")
    ] = "us-east-1",
    out: Annotated[
        Path | None,
        typer.Option(
            "--output",
            metavar="FILE.csv",
            help="Where it goes. Default: named after provider, region and day, here.",
        ),
    ] = None,
    endpoint_url: Annotated[
        str | None,
        typer.Option(
            "--endpoint-url", metavar="URL", help="What to ask in place of AWS, as for tests."
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Ask a provider for its offers, volumes and prices of today, and write a catalog.

    It takes credentials from where AWS' own tools do, and has to be allowed DescribeInstanceTypes,
    DescribeSpotPriceHistory and GetProducts. What is not told stays unknown.
    """
    refuse_without("aws", "tonnage catalog refresh")
    from tonnage.catalog.providers.aws_fetch import RefreshError, connect, refresh_aws

    if provider not in REFRESHABLE:
        raise core.UsageError(f"{provider}: only {', '.join(REFRESHABLE)} can be refreshed so far")
    if not re.fullmatch(r"[a-z]{2}(-[a-z]+)+-\d+", region):
        raise core.UsageError(f"--region {region}: write it like us-east-1")
    now = datetime.now(UTC)
    path = out or Path(f"{provider}-{region}-{now.date().isoformat()}.csv")
    if path.suffix != ".csv" or path.is_dir():
        raise core.UsageError(f"--output {path}: name a file that ends in .csv")
    try:
        done = refresh_aws(path, region, connect(region, endpoint_url), now, _tell())
    except RefreshError as why:
        raise core.RunError(str(why)) from None
    if as_json:
        print(json.dumps(dataclasses.asdict(done) | {"path": str(done.path)}))
        return
    stored = "has prices" if done.objects_priced else "has none"
    print(
        f"{formatting.several(done.types, 'instance type')}, {formatting.count(done.priced)} with a price on "
        f"demand, {formatting.count(done.spot_priced)} with a spot price. Of {done.volumes} kinds of "
        f"volumes {done.volumes_priced} have a price; S3 {stored}. The rest of the prices stay "
        f"unknown; limits of volumes are those of {done.limits_from}. Catalog: {done.path}"
    )


@contextmanager
def _refusing() -> Iterator[None]:
    from tonnage.catalog import CatalogError

    try:
        yield
    except CatalogError as why:
        raise core.UsageError(str(why)) from None


def _catalogs(names: list[str]) -> list[Catalog]:
    """The catalogs of these names; without any the newest of each provider."""
    from tonnage.catalog import load_catalog, newest_catalogs

    with _refusing():
        return [load_catalog(name) for name in dict.fromkeys(names)] if names else newest_catalogs()


def _tell() -> Callable[[str, int], None]:
    """Says on standard error how far a refresh is, now and then."""
    due = time.monotonic() + FIRST_AFTER_SECONDS

    def tell(what: str, count: int) -> None:
        nonlocal due
        if time.monotonic() >= due:
            due = time.monotonic() + EVERY_SECONDS
            print(f"asking AWS: {formatting.count(count)} {what} so far", file=sys.stderr)

    return tell


def _most_first(value: float | None) -> tuple[bool, float]:
    return value is None, -(value or 0.0)
