"""Compare two catalogs: types that are new, gone, changed, or have another price."""

import math
from dataclasses import dataclass

from tonnage.catalog.csv_rows import CatalogError
from tonnage.catalog.offer import Catalog, Offer


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
class SpecificationChange:
    """An offer with figures that differ, or that only one of the catalogs has."""

    type: str
    others: tuple[str, ...]
    known_in_one: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Difference:
    before: str
    after: str
    new: tuple[str, ...]
    gone: tuple[str, ...]
    costlier: tuple[PriceChange, ...]
    cheaper: tuple[PriceChange, ...]
    changed: tuple[SpecificationChange, ...]


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
    moved = [
        PriceChange(
            type=name, before_usd_per_hour=old.usd_per_hour, after_usd_per_hour=new.usd_per_hour
        )
        for name in both
        if (old := was[name].on_demand) and (new := now[name].on_demand)
    ]
    return Difference(
        before=before.name,
        after=after.name,
        new=tuple(sorted(now.keys() - was.keys())),
        gone=tuple(sorted(was.keys() - now.keys())),
        costlier=tuple(each for each in moved if each.by_share > 0),
        cheaper=tuple(each for each in moved if each.by_share < 0),
        changed=tuple(
            changed
            for changed in (_changed(was[name], now[name]) for name in both)
            if changed.others or changed.known_in_one
        ),
    )


def _changed(was: Offer, now: Offer) -> SpecificationChange:
    before, after = _compared_figures(was), _compared_figures(now)
    others, known_in_one = {}, {}
    for (what, old), new in zip(before, (figure for _, figure in after), strict=True):
        if (old is None) != (new is None):
            known_in_one[what] = True
        elif old is not None and what != "on-demand price" and not _is_same(old, new):
            others[what] = True
    return SpecificationChange(
        type=was.type, others=tuple(others), known_in_one=tuple(known_in_one)
    )


def _compared_figures(offer: Offer) -> list[tuple[str, object]]:
    """By name; several may share one."""
    network, link, spot = offer.network, offer.volume_link, offer.spot
    return [
        ("on-demand price", offer.on_demand),
        ("spot price", spot and spot.low_usd_per_hour),
        ("spot price", spot and spot.high_usd_per_hour),
        ("architecture", offer.arch),
        ("vCPUs", offer.vcpus),
        ("memory", offer.memory_bytes),
        ("local disks", offer.local_bytes),
        ("network", network.baseline_bytes_per_second),
        ("network", network.peak_bytes_per_second),
        ("link to volumes", link.baseline_bytes_per_second),
        ("link to volumes", link.most_bytes_per_second),
        ("link to volumes", link.baseline_iops),
        ("link to volumes", link.most_iops),
        ("placement groups", offer.placement_groups),
    ]


def _is_same(was: object, now: object) -> bool:
    """Whether figures are equal up to rounding: sources have 1.7 and 1.699 GiB."""
    if isinstance(was, (int, float)) and isinstance(now, (int, float)):
        return math.isclose(was, now, rel_tol=0.001)
    return was == now
