"""AWS' price list: on-demand prices of machines, volumes and object storage in a region.

A page of the list is JSON within JSON: a product's attributes, and under its terms the dimensions
of its price, each with a unit (AWS Price List API, GetProducts). The first tier that is not free
counts. An item with several prices counts as having none.
"""

import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

from tonnage.catalog.load import SNAPSHOTS, newest_catalogs, read_companion
from tonnage.catalog.providers.volumes import OBJECT_COLUMNS, PROVISIONING_COLUMNS, VOLUME_COLUMNS

OnProgress = Callable[[str, int], None]
"""Called with the name of a download and the number of items so far."""
Key = TypeVar("Key")

MACHINES = {
    "operatingSystem": "Linux",
    "tenancy": "Shared",
    "preInstalledSw": "NA",
    "capacitystatus": "Used",
}
VOLUMES = ("Storage", "System Operation", "Provisioned Throughput")
OBJECTS = ("Storage", "API Request")  # Families of products

# Usage types of all regions but the first have a prefix: EUC1-EBS:VolumeUsage.gp3. Local zones, and
# the cheaper operations of io2 above 32,000, have longer names and do not match.
VOLUME = re.compile(r"(?:[A-Z0-9]+-)?EBS:(Volume(?:Usage|P-IOPS|P-Throughput))\.([a-z0-9]+)")
OBJECT = re.compile(r"(?:[A-Z0-9]+-)?(TimedStorage-ByteHrs|Requests-Tier[12])")
NAMES = {"piops": "io1"}
VOLUME_FIGURES = {
    ("VolumeUsage", "gb-mo"): ("price_gb_month", 1.0),
    ("VolumeUsage", "gb-month"): ("price_gb_month", 1.0),
    ("VolumeP-IOPS", "iops-mo"): ("price_iops_month", 1.0),
    ("VolumeP-Throughput", "mibps-mo"): ("price_mibps_month", 1.0),
    ("VolumeP-Throughput", "gibps-mo"): ("price_mibps_month", 1 / 1024),
}
OBJECT_FIGURES = {
    ("TimedStorage-ByteHrs", "gb-mo"): ("price_gb_month", 1.0),
    ("Requests-Tier1", "requests"): ("price_1000_puts", 1000.0),
    ("Requests-Tier2", "requests"): ("price_1000_gets", 1000.0),
}
"""Usage and unit in lower case: the column, and the number of units that its price is for."""


@dataclass(frozen=True)
class ListPrice:
    usd: float
    published: str

    @property
    def source(self) -> str:
        return f"AWS price list, published {self.published}"


def machines(pricing: Any, region: str, on_progress: OnProgress) -> dict[str, ListPrice]:
    """Linux on demand, shared tenancy: US dollars an hour by type."""
    found: dict[str, set[ListPrice]] = defaultdict(set)
    for attributes, unit, listed in _products(pricing, "AmazonEC2", region, MACHINES):
        if unit == "hrs":
            found[attributes.get("instanceType", "")].add(listed)
            on_progress("prices", len(found))
    return _unambiguous(found)


def volumes(
    pricing: Any, region: str, today: str, on_progress: OnProgress
) -> tuple[str, list[dict[str, Any]]]:
    """Volumes as rows of `VOLUME_COLUMNS`, and the catalog from which their limits are copied.

    The list has no limits, so they come from the newest shipped catalog; kinds that it lacks are
    omitted. None of its prices is kept, since they are of another time.
    """
    found = _figures(pricing, "AmazonEC2", region, VOLUMES, VOLUME, VOLUME_FIGURES, on_progress)
    shipped = next(each.name for each in newest_catalogs() if each.provider == "aws")
    rows = []
    path = SNAPSHOTS / f"{shipped}.csv"
    for row in read_companion(path, "volumes", VOLUME_COLUMNS, PROVISIONING_COLUMNS):
        name = row.required("volume_type")
        prices = {column: found.get((name, column)) for column, _ in VOLUME_FIGURES.values()}
        rows.append(
            {
                **row.cells,
                **_cells(prices, today, "price_evidence"),
                "limit_evidence": f"{shipped}: {row.required('limit_evidence')}",
            }
        )
    return shipped, rows


def objects(pricing: Any, region: str, today: str, on_progress: OnProgress) -> dict[str, Any]:
    """S3's standard storage as a row of `OBJECT_COLUMNS`, without the price of egress."""
    found = _figures(pricing, "AmazonS3", region, OBJECTS, OBJECT, OBJECT_FIGURES, on_progress)
    prices = {column: found.get(("", column)) for column, _ in OBJECT_FIGURES.values()}
    blank = dict.fromkeys(OBJECT_COLUMNS)
    return blank | {"name": "S3 Standard"} | _cells(prices, today, "source")


def _cells(prices: dict[str, ListPrice | None], today: str, evidence: str) -> dict[str, Any]:
    known = [listed for listed in prices.values() if listed]
    return {
        **{column: listed and listed.usd for column, listed in prices.items()},
        "date": today if known else None,
        evidence: known[0].source if known else "AWS price list, which has no price for it",
    }


def _figures(
    pricing: Any,
    service: str,
    region: str,
    families: Iterable[str],
    usage: re.Pattern[str],
    figures: dict[tuple[str, str], tuple[str, float]],
    on_progress: OnProgress,
) -> dict[tuple[str, str], ListPrice]:
    found: dict[tuple[str, str], set[ListPrice]] = defaultdict(set)
    for family in families:
        for attributes, unit, listed in _products(
            pricing, service, region, {"productFamily": family}
        ):
            used = usage.fullmatch(attributes.get("usagetype", ""))
            column, factor = figures.get((used[1], unit), ("", 0.0)) if used else ("", 0.0)
            if used and column:
                name = used[2] if usage.groups > 1 else ""
                usd = round(listed.usd * factor, 9)  # 0.000005 * 1,000 has a rounding error.
                found[NAMES.get(name, name), column].add(ListPrice(usd, listed.published))
            on_progress(f"prices of {service}", len(found))
    return _unambiguous(found)


def _unambiguous(found: dict[Key, set[ListPrice]]) -> dict[Key, ListPrice]:
    return {key: next(iter(listed)) for key, listed in found.items() if len(listed) == 1}


def _products(
    pricing: Any, service: str, region: str, wanted: dict[str, str]
) -> Iterator[tuple[dict[str, str], str, ListPrice]]:
    """Matching products of the list: attributes, the unit in lower case, the price."""
    pages = pricing.get_paginator("get_products").paginate(
        ServiceCode=service,
        Filters=[
            {"Type": "TERM_MATCH", "Field": field, "Value": value}
            for field, value in {"regionCode": region, **wanted}.items()
        ],
    )
    for page in pages:
        for product in map(json.loads, page["PriceList"]):
            published = str(product.get("publicationDate", "at an unknown time"))[:10]
            for term in product.get("terms", {}).get("OnDemand", {}).values():
                for unit, usd in _lowest_tier(term.get("priceDimensions", {}).values()):
                    yield product["product"]["attributes"], unit, ListPrice(usd, published)


def _lowest_tier(dimensions: Iterable[dict[str, Any]]) -> Iterator[tuple[str, float]]:
    """The lowest tier that is not free; items without a price have a zero, too."""
    tiers = []
    for each in dimensions:
        usd = float(each.get("pricePerUnit", {}).get("USD") or 0)
        if usd > 0:
            tiers.append((float(each.get("beginRange") or 0), str(each.get("unit")).lower(), usd))
    lowest = min((begins for begins, *_ in tiers), default=0.0)
    return ((unit, usd) for begins, unit, usd in tiers if begins == lowest)
