"""``tonnage catalog``: offers of providers, the source of their figures, and their changes."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Callable
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from msgspec import structs

from tonnage.base import core, formatting
from tonnage.base.records.base import to_builtins
from tonnage.cli.measure.net import parse_rate
from tonnage.cli.options.optional_dependencies import refuse_missing_extra
from tonnage.cli.options.planning import AWS_REGION
from tonnage.cli.options.types import (
    Argument,
    Json,
    Option,
    Size,
    Switch,
    number,
    parse_size,
    parse_usd,
)
from tonnage.cli.options.validate import refuse_suffix, refuse_unknown, usage_errors
from tonnage.cli.output import print_result

if TYPE_CHECKING:
    from tonnage.catalog import Catalog, Difference, Offer

REFRESHABLE = ("aws",)
FIRST_AFTER_SECONDS, EVERY_SECONDS = 1.0, 5.0
"""When a refresh first reports progress, and how often after that."""

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
"""Sort orders of offers; unknown figures come last."""
_DIFFERENCE_KEYS = {"costlier": "dearer"}
"""Keys of a difference's JSON that are not its fields' names."""
MIN_CAPACITY = 1_000_000
"""A smaller capacity probably lacks its unit."""


def parse_capacity(text: str) -> int:
    """A machine's memory or disks, in bytes; refuses a number without its unit."""
    size = parse_size(text)
    if size < MIN_CAPACITY:
        raise typer.BadParameter(f"{text!r} is less than any machine has; add a unit, like 64GiB")
    return size


def ls(
    names: Annotated[
        list[str] | None,
        Argument(
            "[CATALOG...]",
            "Catalogs: names, or CSV files. Default: with a filter, each provider's newest "
            "catalog; without filters, the catalogs themselves are listed.",
        ),
    ] = None,
    provider: Annotated[str | None, Option("NAME", "aws, azure, gcp or lab.")] = None,
    arch: Annotated[str | None, Option("NAME", "x86_64 or arm64.")] = None,
    min_vcpus: Annotated[
        float | None, Option("N", "Minimum number of vCPUs.", number(0, 1_000_000))
    ] = None,
    min_memory: Annotated[int | None, Size("Minimum memory.", parse_capacity)] = None,
    min_local_disk: Annotated[
        int | None, Size("Minimum total size of local disks.", parse_capacity)
    ] = None,
    min_network: Annotated[
        int | None,
        Option(
            "RATE",
            "Minimum sustained network bandwidth, like 10Gbit; burst bandwidth is ignored.",
            parse_rate,
        ),
    ] = None,
    max_price: Annotated[
        float | None, Option("USD", "Maximum on-demand price per hour.", parse_usd)
    ] = None,
    sort: Annotated[str | None, Option("BY", f"Order: {', '.join(SORTS)}. Default: price.")] = None,
    as_json: Json = False,
) -> None:
    """List catalogs, or the offers that match all filters.

    Offers are left out if a figure that a filter needs is unknown; the last line gives the number
    of these offers.

    Examples:
        tonnage catalog ls
        tonnage catalog ls --provider aws --min-local-disk 1TB --max-price 1USD
    """
    from tonnage.catalog import (
        CatalogError,
        OfferFilter,
        catalogs_here,
        load_catalog,
        newest_catalogs,
    )
    from tonnage.cli.output.offers import print_catalogs, print_offers

    refuse_unknown("--sort", [sort], SORTS)
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
        with usage_errors(CatalogError):
            print_catalogs(catalogs_here(), as_json)
        return
    with usage_errors(CatalogError):
        catalogs = list(map(load_catalog, dict.fromkeys(names or ()))) or newest_catalogs()
    refuse_unknown(
        "--provider", [provider] if provider else [], sorted({e.provider for e in catalogs})
    )
    if arch:
        known = {each.arch for catalog in catalogs for each in catalog.offers if each.arch}
        refuse_unknown("--arch", [arch], sorted(known))
    print_offers(catalogs, wanted, SORTS[sort or "price"], as_json)


def show(
    name: Annotated[str, Argument("OFFER", "Machine type: TYPE, or PROVIDER/TYPE.")],
    catalog: Annotated[
        str | None,
        Option(
            "NAME",
            "The offer's catalog: a name, or a CSV file. Default: each provider's newest.",
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Show all known figures of an offer with their sources, and list the unknown ones.

    Examples:
        tonnage catalog show aws/i4i.4xlarge
    """
    from tonnage.catalog import CatalogError, catalogs_with, find_offer
    from tonnage.cli.options.planning import load_catalogs
    from tonnage.cli.output.offers import offer_lines, offer_values

    with usage_errors(CatalogError):
        where, offer = find_offer(load_catalogs([] if catalog is None else [catalog]), name)
    about = to_builtins(structs.replace(where, offers=()))
    del about["offers"]
    others = [each.name for each in catalogs_with(offer.type) if each.name != where.name]
    document = {"offer": offer_values(offer), "catalog": about}
    print_result(document, offer_lines(where, offer, others), as_json)


def diff(
    names: Annotated[
        list[str] | None,
        Argument(
            "[BEFORE] [CATALOG]",
            "Catalogs of one provider: names, or CSV files. Default of BEFORE: the last included "
            "catalog of the same provider and region that is not later. Default of CATALOG: each "
            "provider's newest.",
        ),
    ] = None,
    every: Annotated[bool, Switch("--all", "Print each type and each figure.")] = False,
    as_json: Json = False,
) -> None:
    """Compare catalogs: types that are new or gone, prices, and figures that changed.

    A catalog is compared with the one before it, if there is one, or with the one that you name.
    Catalogs need not be complete, so a new type may have existed before.

    Examples:
        tonnage catalog diff
        tonnage catalog diff aws-us-east-1-2026-12-01.csv
        tonnage catalog diff aws-us-east-1-2014 aws-us-east-1-2026 --all
    """
    from tonnage.catalog import CatalogError, compare_catalogs, load_catalog
    from tonnage.cli.output.offers import difference_lines

    given = names or []
    if len(given) > 2:
        raise core.UsageError(f"{given[2]}: a third catalog; specify at most two")
    if not given:
        _diff_newest(every, as_json)
        return
    with usage_errors(CatalogError):
        after = load_catalog(given[-1])
        before = load_catalog(given[0]) if len(given) > 1 else _earlier(after)
        found = compare_catalogs(before, after)
    print_result(_difference_values(found), difference_lines(found, every), as_json)


def _diff_newest(every: bool, as_json: bool) -> None:
    """Compares each provider's newest catalog with the one before it."""
    from tonnage.catalog import compare_catalogs, newest_catalogs, previous_catalog
    from tonnage.cli.output.offers import difference_lines

    differences, lines, first = [], [], []
    for after in newest_catalogs():
        before = previous_catalog(after)
        if before is None:
            first.append(after.name)
        else:
            differences.append(compare_catalogs(before, after))
            lines += [*difference_lines(differences[-1], every), ""]
    lines += [
        f"{name}: no earlier catalog of its provider and region is included." for name in first
    ]
    values = {"differences": list(map(_difference_values, differences)), "without_earlier": first}
    print_result(values, lines, as_json)


def _earlier(after: Catalog) -> Catalog:
    from tonnage.catalog import previous_catalog

    before = previous_catalog(after)
    if before is None:
        raise core.UsageError(
            f"{after.name}: no earlier catalog of its provider and region is included; specify one "
            f"to compare with: tonnage catalog diff BEFORE {after.name}"
        )
    return before


def _difference_values(found: Difference) -> dict[str, Any]:
    return {_DIFFERENCE_KEYS.get(key, key): each for key, each in asdict(found).items()}


def refresh(
    provider: Annotated[str, Argument("PROVIDER", f"Provider: {', '.join(REFRESHABLE)}.")],
    region: Annotated[str, Option("NAME", "Region of the provider.")] = "us-east-1",
    out: Annotated[
        Path | None,
        Option(
            "FILE.csv",
            "File for the catalog. Default: PROVIDER-REGION-DATE.csv in the current directory.",
            flag="--output",
        ),
    ] = None,
    endpoint_url: Annotated[
        str | None, Option("URL", "Address of a server to use instead of AWS, for tests.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Fetch a provider's current offers, volumes and prices, and write a catalog.

    The command uses the same credentials as the AWS CLI. They must allow DescribeInstanceTypes,
    DescribeSpotPriceHistory and GetProducts. Values that AWS does not publish are left unknown.

    Examples:
        tonnage catalog refresh aws --region us-east-1
    """
    refuse_missing_extra("aws", "tonnage catalog refresh")
    from tonnage.catalog.providers.aws_fetch import RefreshError, connect, refresh_aws

    if provider not in REFRESHABLE:
        raise core.UsageError(
            f"{provider}: this catalog cannot be refreshed; use {', '.join(REFRESHABLE)}"
        )
    if not re.fullmatch(AWS_REGION, region):
        raise core.UsageError(f"--region {region} is not valid; use a region like us-east-1")
    now = datetime.now(UTC)
    path = out or Path(f"{provider}-{region}-{now.date().isoformat()}.csv")
    refuse_suffix(path, ".csv")
    try:
        done = refresh_aws(path, region, connect(region, endpoint_url), now, _reporter())
    except RefreshError as error:
        raise core.RunError(str(error)) from None
    stored = "has prices" if done.objects_priced else "has no prices"
    line = (
        f"{formatting.several(done.types, 'instance type')}, {formatting.count(done.priced)} with "
        f"an on-demand price, {formatting.count(done.spot_priced)} with a spot price. Of "
        f"{done.volumes} kinds of volumes, {done.volumes_priced} have a price; S3 {stored}. Other "
        f"prices are unknown; limits of volumes come from {done.limits_from}. Catalog: {done.path}"
    )
    print_result(asdict(done) | {"path": str(done.path)}, [line], as_json)


def _reporter() -> Callable[[str, int], None]:
    due = time.monotonic() + FIRST_AFTER_SECONDS

    def report(what: str, count: int) -> None:
        nonlocal due
        if time.monotonic() >= due:
            due = time.monotonic() + EVERY_SECONDS
            print(f"fetching from AWS: {formatting.count(count)} {what} so far", file=sys.stderr)

    return report


def _most_first(value: float | None) -> tuple[bool, float]:
    return value is None, -(value or 0.0)
