"""Compare two catalogs: what is in only one of them, what has another price, what figures differ.

Offers, kinds of volumes and the object store are compared by their names. Catalogs need not be
complete: what is in the later one only may have existed before.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from tonnage.catalog.csv_rows import CatalogError
from tonnage.catalog.offer import Catalog, ObjectStore, Offer, VolumeKind
from tonnage.catalog.providers.schema import MIB

Unit = Literal["usd", "bytes", "bytes per second", "per second", ""]
Value = float | str | None
"""A figure; ``None`` is unknown."""
ON_DEMAND = "on-demand price"
STORE_PRICES = {
    "price per GB and month": "usd_per_gb_month",
    "price per 1,000 puts": "usd_per_1000_puts",
    "price per 1,000 gets": "usd_per_1000_gets",
    "price per GB to the internet": "usd_per_gb_to_internet",
    "price per GB within the region": "usd_per_gb_in_region",
}
ROUNDING = 0.001
"""Figures that differ by less are the same: sources have 1.7 and 1.699 GiB."""


@dataclass(frozen=True, kw_only=True)
class PriceChange:
    type: str
    before_usd_per_hour: float
    after_usd_per_hour: float

    @property
    def by_share(self) -> float:
        """The relative change: 0.1 is 10 % more."""
        return self.after_usd_per_hour / self.before_usd_per_hour - 1


@dataclass(frozen=True, kw_only=True)
class FigureChange:
    """A figure that differs, or that only one of the catalogs has."""

    figure: str
    unit: Unit
    before: Value
    after: Value

    @property
    def by_share(self) -> float | None:
        """The relative change of a price; ``None`` of other figures."""
        if self.unit != "usd" or not self.before or not isinstance(self.after, float | int):
            return None
        assert isinstance(self.before, float | int)
        return self.after / self.before - 1


@dataclass(frozen=True, kw_only=True)
class Change:
    """An offer, a kind of volumes or an object store with changed figures."""

    name: str
    figures: tuple[FigureChange, ...]


@dataclass(frozen=True, kw_only=True)
class Side:
    """A catalog that is compared."""

    name: str
    provider: str
    region: str | None
    date: str | None
    """Of its latest price."""
    offers: int


@dataclass(frozen=True, kw_only=True)
class Difference:
    before: Side
    after: Side
    new: tuple[str, ...]
    gone: tuple[str, ...]
    costlier: tuple[PriceChange, ...]
    cheaper: tuple[PriceChange, ...]
    changed: tuple[Change, ...]
    """Of offers, apart from on-demand prices that both catalogs have."""
    new_volumes: tuple[str, ...]
    gone_volumes: tuple[str, ...]
    changed_storage: tuple[Change, ...]
    """Of kinds of volumes, and of the object store."""

    @property
    def is_forward(self) -> bool:
        """Whether both are of one region, and the second is of a later date, or of the same."""
        before, after = self.before, self.after
        return before.region == after.region and _dates(before.date) <= _dates(after.date)


Figure = tuple[str, Unit, Value]


def compare_catalogs(before: Catalog, after: Catalog) -> Difference:
    """The differences of two catalogs of one provider; of several it raises a `CatalogError`."""
    if before.provider != after.provider:
        raise CatalogError(
            f"{before.name} is from {before.provider} and {after.name} from {after.provider}; "
            "compare catalogs of the same provider"
        )
    was = {offer.type: offer for offer in before.offers}
    now = {offer.type: offer for offer in after.offers}
    both = sorted(was.keys() & now.keys())
    prices = [
        PriceChange(
            type=name, before_usd_per_hour=old.usd_per_hour, after_usd_per_hour=new.usd_per_hour
        )
        for name in both
        if (old := was[name].on_demand) and (new := now[name].on_demand)
    ]
    volumes_before = {f"volume {each.name}": each for each in before.volume_kinds}
    volumes_after = {f"volume {each.name}": each for each in after.volume_kinds}
    storage = [
        (name, _volume_figures(volumes_before[name]), _volume_figures(volumes_after[name]))
        for name in sorted(volumes_before.keys() & volumes_after.keys())
    ]
    if before.object_store or after.object_store:
        stores = before.object_store, after.object_store
        storage.append(("object storage", _store_figures(stores[0]), _store_figures(stores[1])))
    return Difference(
        before=_side(before),
        after=_side(after),
        new=tuple(sorted(now.keys() - was.keys())),
        gone=tuple(sorted(was.keys() - now.keys())),
        costlier=tuple(each for each in prices if each.by_share > 0),
        cheaper=tuple(each for each in prices if each.by_share < 0),
        changed=_changes(
            (name, _offer_figures(was[name]), _offer_figures(now[name])) for name in both
        ),
        new_volumes=tuple(sorted(volumes_after.keys() - volumes_before.keys())),
        gone_volumes=tuple(sorted(volumes_before.keys() - volumes_after.keys())),
        changed_storage=_changes(storage),
    )


def _side(catalog: Catalog) -> Side:
    return Side(
        name=catalog.name,
        provider=catalog.provider,
        region=catalog.region,
        date=catalog.date,
        offers=len(catalog.offers),
    )


def _dates(date: str | None) -> str:
    """Years, months and days in order; an unknown date is not later than another."""
    return date or ""


def _changes(
    pairs: Iterable[tuple[str, Sequence[Figure], Sequence[Figure]]],
) -> tuple[Change, ...]:
    found = (Change(name=name, figures=tuple(_changed(*both))) for name, *both in pairs)
    return tuple(each for each in found if each.figures)


def _changed(before: Sequence[Figure], after: Sequence[Figure]) -> Iterator[FigureChange]:
    for (name, unit, old), (_, _, new) in zip(before, after, strict=True):
        repriced = name == ON_DEMAND and old is not None and new is not None
        if not repriced and not _is_same(old, new):
            yield FigureChange(figure=name, unit=unit, before=old, after=new)


def _is_same(old: Value, new: Value) -> bool:
    if isinstance(old, int | float) and isinstance(new, int | float):
        return math.isclose(old, new, rel_tol=ROUNDING)
    return old == new


def _offer_figures(offer: Offer) -> list[Figure]:
    network, link, spot = offer.network, offer.volume_link, offer.spot
    return [
        (ON_DEMAND, "usd", offer.on_demand.usd_per_hour if offer.on_demand else None),
        ("lowest spot price", "usd", spot.low_usd_per_hour if spot else None),
        ("highest spot price", "usd", spot.high_usd_per_hour if spot else None),
        ("architecture", "", offer.arch),
        ("vCPUs", "", offer.vcpus),
        ("memory", "bytes", offer.memory_bytes),
        ("local disks", "bytes", offer.local_bytes),
        ("baseline network", "bytes per second", network.baseline_bytes_per_second),
        ("peak network", "bytes per second", network.peak_bytes_per_second),
        ("baseline link to volumes", "bytes per second", link.baseline_bytes_per_second),
        ("peak link to volumes", "bytes per second", link.most_bytes_per_second),
        ("baseline operations on volumes", "per second", link.baseline_iops),
        ("peak operations on volumes", "per second", link.most_iops),
        ("placement groups", "", _yes_or_no(offer.placement_groups)),
        ("current generation", "", _yes_or_no(offer.current)),
    ]


def _volume_figures(kind: VolumeKind) -> list[Figure]:
    operations, throughput = kind.operations, kind.throughput
    faster = throughput.usd_each_month
    return [
        ("price per GiB and month", "usd", kind.usd_per_gib_month),
        ("price per operation/s and month", "usd", operations.usd_each_month),
        ("price per MiB/s and month", "usd", None if faster is None else faster * MIB),
        ("operations included", "per second", operations.included),
        ("operations per GiB", "per second", operations.per_gib),
        ("most operations", "per second", operations.most),
        ("throughput included", "bytes per second", throughput.included),
        ("throughput per GiB", "bytes per second", throughput.per_gib),
        ("most throughput", "bytes per second", throughput.most),
        ("smallest size", "bytes", kind.least_bytes),
        ("largest size", "bytes", kind.most_bytes),
    ]


def _store_figures(store: ObjectStore | None) -> list[Figure]:
    return [(name, "usd", getattr(store, price, None)) for name, price in STORE_PRICES.items()]


def _yes_or_no(value: bool | None) -> str | None:
    return None if value is None else "yes" if value else "no"
