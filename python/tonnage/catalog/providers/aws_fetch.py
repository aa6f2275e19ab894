"""Fetch a new catalog from AWS: instance types, the price list and the spot price history.

Tables are written in the schema of the shipped catalogs, each atomically, with a date and a source
in each row. Figures that AWS does not publish stay blank.
"""

import csv
import io
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

from tonnage.base.records import write_atomically
from tonnage.catalog.aws_errors import TRIES, aws_errors_as, client_config
from tonnage.catalog.providers import aws, aws_price_list
from tonnage.catalog.providers.aws_price_list import OnProgress
from tonnage.catalog.providers.volumes import OBJECT_COLUMNS, PROVISIONING_COLUMNS, VOLUME_COLUMNS

SPOT_DAYS = 7  # How far back the range of spot prices goes
PRICING_REGION = "us-east-1"  # Few regions serve the price list; each has that of all regions
COLUMNS = (*aws.SCHEMA.columns, *aws.SCHEMA.optional)


class RefreshError(Exception):
    """AWS did not answer, or refused; the message is one line that says what to do."""


@dataclass(frozen=True)
class Clients:
    ec2: Any
    pricing: Any


@dataclass(frozen=True, kw_only=True)
class RefreshSummary:
    """What was written; the limits of volumes are copied from the catalog ``limits_from``."""

    path: Path
    types: int
    priced: int
    spot_priced: int
    volumes: int
    volumes_priced: int
    objects_priced: bool
    limits_from: str


def connect(region: str, endpoint_url: str | None = None) -> Clients:
    """Clients with the credentials of the environment; ``endpoint_url`` replaces both services."""
    import boto3

    config = client_config(TRIES)
    with aws_errors_as(RefreshError):
        # A new session: boto3's default one keeps the first credentials that it found.
        client = partial(boto3.Session().client, endpoint_url=endpoint_url, config=config)
        return Clients(
            ec2=client("ec2", region_name=region),
            pricing=client("pricing", region_name=PRICING_REGION),
        )


def refresh_aws(
    path: Path, region: str, clients: Clients, now: datetime, on_progress: OnProgress
) -> RefreshSummary:
    """Write all that AWS offers in a region as a catalog; nothing on a `RefreshError`."""

    def tell_tries(attempts: int, caught_exception: Exception | None, **asked: Any) -> None:
        if caught_exception:
            on_progress(f"attempts of {asked['operation'].name}", attempts)

    today = now.date().isoformat()
    for client in (clients.ec2, clients.pricing):
        client.meta.events.register("needs-retry", tell_tries)
    with aws_errors_as(RefreshError):
        types = list(_instance_types(clients.ec2, on_progress))
        prices = aws_price_list.machines(clients.pricing, region, on_progress)
        limits_from, volumes = aws_price_list.volumes(clients.pricing, region, today, on_progress)
        stored = aws_price_list.objects(clients.pricing, region, today, on_progress)
        spots = _spot_prices(clients.ec2, now, on_progress)
    rows = []
    for described in sorted(types, key=lambda each: str(each["InstanceType"])):
        name = described["InstanceType"]
        row = _specification(described) | {"spec_source": f"EC2 DescribeInstanceTypes {today}"}
        if name in prices:
            row |= {
                "price_od_hour": prices[name].usd,
                "price_od_date": today,
                "price_od_source": prices[name].source,
            }
        if name in spots:
            low, mean, high = spots[name]
            row |= {
                "spot_min_hour": low,
                "spot_avg_hour": mean,
                "spot_max_hour": high,
                "spot_date": today,
                "spot_source": f"EC2 DescribeSpotPriceHistory, {SPOT_DAYS} days",
            }
        rows.append(row)
    if not rows:
        raise RefreshError(f"AWS lists no instance types in {region}; check the region name")
    # Offers last: without them the other tables are not read.
    columns = (*VOLUME_COLUMNS, *PROVISIONING_COLUMNS)
    write_rows(path.with_suffix(".volumes.csv"), volumes, columns)
    write_rows(path.with_suffix(".objects.csv"), [stored], OBJECT_COLUMNS)
    write_rows(path, rows)
    return RefreshSummary(
        path=path,
        types=len(rows),
        priced=sum("price_od_hour" in row for row in rows),
        spot_priced=sum("spot_min_hour" in row for row in rows),
        volumes=len(volumes),
        volumes_priced=sum(row["price_gb_month"] is not None for row in volumes),
        objects_priced=stored["date"] is not None,
        limits_from=limits_from,
    )


def write_rows(
    path: Path, rows: Iterable[dict[str, Any]], columns: tuple[str, ...] = COLUMNS
) -> None:
    """Write a table of a catalog of AWS atomically; missing cells are blank."""
    text = io.StringIO()
    table = csv.DictWriter(text, columns, restval="", lineterminator="\n")
    table.writeheader()
    table.writerows(rows)
    write_atomically(path, text.getvalue().encode())


def _instance_types(ec2: Any, on_progress: OnProgress) -> Iterator[dict[str, Any]]:
    seen = 0
    for page in ec2.get_paginator("describe_instance_types").paginate():
        yield from page["InstanceTypes"]
        seen += len(page["InstanceTypes"])
        on_progress("instance types", seen)


def _specification(described: dict[str, Any]) -> dict[str, Any]:
    """A type's columns; ``None`` where AWS states nothing."""
    vcpus, network = described.get("VCpuInfo", {}), described.get("NetworkInfo", {})
    link = described.get("EbsInfo", {}).get("EbsOptimizedInfo", {})
    memory = described.get("MemoryInfo", {}).get("SizeInMiB")
    archs = described.get("ProcessorInfo", {}).get("SupportedArchitectures", [])
    strategies = described.get("PlacementGroupInfo", {}).get("SupportedStrategies")
    words, cards = network.get("NetworkPerformance"), network.get("NetworkCards", [])
    return {
        "instance_type": described["InstanceType"],
        "vcpu": vcpus.get("DefaultVCpus"),
        "cores": vcpus.get("DefaultCores"),
        "memory_gib": None if memory is None else memory / 1024,
        "arch": "|".join(sorted(archs)),
        **_disks(described),
        "net_desc": words,
        "net_baseline_gbps": _bandwidth(cards, "BaselineBandwidthInGbps", words),
        "net_peak_gbps": _bandwidth(cards, "PeakBandwidthInGbps", words),
        "net_cards": len(cards) or None,
        "ebs_base_mbytes_s": link.get("BaselineThroughputInMBps"),
        "ebs_max_mbytes_s": link.get("MaximumThroughputInMBps"),
        "ebs_base_iops": link.get("BaselineIops"),
        "ebs_max_iops": link.get("MaximumIops"),
        "placement_cluster": None if strategies is None else "cluster" in strategies,
        "current_gen": described.get("CurrentGeneration"),
    }


def _disks(described: dict[str, Any]) -> dict[str, Any]:
    supported = described.get("InstanceStorageSupported")
    store = described.get("InstanceStorageInfo", {})
    disks = store.get("Disks", [])
    if not disks:
        return {"disk_count": 0} if supported is False else {}
    sizes = {disk["SizeInGB"] for disk in disks}
    nvme = store.get("NvmeSupport") in ("required", "supported")
    return {
        "disk_count": sum(disk["Count"] for disk in disks),
        "disk_gb_each": sizes.pop() if len(sizes) == 1 else None,
        "disk_total_gb": sum(disk["Count"] * disk["SizeInGB"] for disk in disks),
        "disk_kind": "nvme" if nvme else disks[0].get("Type"),
    }


def _bandwidth(cards: list[dict[str, Any]], figure: str, words: str | None) -> float | None:
    """The sum of the cards' figures, at most the advertised total: some sums overstate it."""
    stated = [card[figure] for card in cards if card.get(figure) is not None]
    if not stated or len(stated) < len(cards):
        return None
    advertised = re.search(r"(?:(\d+)x )?([\d.]+) Gigabit", words or "")
    most = int(advertised[1] or 1) * float(advertised[2]) if advertised else float("inf")
    return min(float(sum(stated)), most)


def _spot_prices(
    ec2: Any, now: datetime, on_progress: OnProgress
) -> dict[str, tuple[float, float, float]]:
    """Lowest, mean over time and zones, and highest of the last days, by type."""
    since = now - timedelta(days=SPOT_DAYS)
    told: dict[str, dict[str, list[tuple[datetime, float]]]] = defaultdict(
        lambda: defaultdict(list)
    )
    seen = 0
    pages = ec2.get_paginator("describe_spot_price_history").paginate(
        ProductDescriptions=["Linux/UNIX"], StartTime=since, EndTime=now
    )
    for page in pages:
        for each in page["SpotPriceHistory"]:
            usd = float(each["SpotPrice"])
            if usd > 0 and each["Timestamp"] <= now:
                zone = told[each["InstanceType"]][each["AvailabilityZone"]]
                zone.append((max(each["Timestamp"], since), usd))
        seen += len(page["SpotPriceHistory"])
        on_progress("spot prices", seen)
    found = {}
    for name, zones in told.items():
        every = [usd for changes in zones.values() for _, usd in changes]
        mean = sum(_mean(changes, now) for changes in zones.values()) / len(zones)
        # A rounded mean of equal prices can lie slightly outside them.
        found[name] = (min(every), min(max(round(mean, 6), min(every)), max(every)), max(every))
    return found


def _mean(changes: list[tuple[datetime, float]], until: datetime) -> float:
    """The mean over time of a price that holds until its next change."""
    changes = sorted(changes)
    ends = [*(began for began, _ in changes[1:]), until]
    spans = [(end - began).total_seconds() for (began, _), end in zip(changes, ends, strict=True)]
    if not sum(spans):
        return changes[-1][1]
    weighed = zip(changes, spans, strict=True)
    return sum(usd * span for (_, usd), span in weighed) / sum(spans)
