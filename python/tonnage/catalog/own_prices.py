"""Prices that a user pays instead of a catalog's: from a file, or less a discount.

Both are of machines, and of their on-demand prices, which they replace. A discount does not apply
to a price from the file, which is what is paid.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from msgspec import structs

from tonnage.base import formatting
from tonnage.catalog.csv_rows import CatalogError, CsvRow, read_rows, refuse_columns
from tonnage.catalog.load import SCHEMAS
from tonnage.catalog.offer import Catalog, Offer, Price
from tonnage.catalog.published.rows import key_of

COLUMNS = ("provider", "machine_type", "usd_per_hour")
REGION = "region"


@dataclass(frozen=True, kw_only=True)
class OwnPrice:
    """Of a machine type in a region, or in all."""

    provider: str
    machine_type: str
    region: str | None
    usd_per_hour: float
    source: str


@dataclass(frozen=True, kw_only=True)
class OwnPrices:
    """As a plan's settings keep them."""

    discount_percent: float = 0.0
    prices: tuple[OwnPrice, ...] = ()

    @classmethod
    def of_settings(cls, settings: Mapping[str, Any]) -> "OwnPrices":
        """Those that a plan was made with; none of a plan of before."""
        return cls(
            discount_percent=settings.get("discount_percent", 0.0),
            prices=tuple(OwnPrice(**each) for each in settings.get("prices", ())),
        )

    def to_settings(self) -> dict[str, Any]:
        return {
            "discount_percent": self.discount_percent,
            "prices": [asdict(each) for each in self.prices],
        }


LIST_PRICES = OwnPrices()


def with_own_prices(catalog: Catalog, own: OwnPrices) -> Catalog:
    """The catalog with the on-demand prices that are paid."""
    if own == LIST_PRICES:
        return catalog
    # The price of a region is found before that of all.
    prices = {
        key_of(each.provider, each.machine_type): each
        for each in sorted(own.prices, key=lambda each: each.region is not None)
        if _applies(each, catalog)
    }
    offers = (
        _repriced(offer, prices.get(key_of(offer.provider, offer.type)), own.discount_percent)
        for offer in catalog.offers
    )
    return structs.replace(catalog, offers=tuple(offers))


def _applies(price: OwnPrice, catalog: Catalog) -> bool:
    return price.provider == catalog.provider and price.region in (None, catalog.region)


def _repriced(offer: Offer, own: OwnPrice | None, discount_percent: float) -> Offer:
    listed = offer.on_demand
    if own is not None:
        paid = Price(usd_per_hour=own.usd_per_hour, date=None, source=own.source)
    elif listed is None or not discount_percent:
        return offer
    else:
        paid = structs.replace(
            listed,
            usd_per_hour=listed.usd_per_hour * (1 - discount_percent / 100),
            source=f"{listed.source}, less {discount_percent:g} %",
        )
    return structs.replace(offer, on_demand=paid)


def read_own_prices(path: Path, catalogs: Sequence[Catalog]) -> tuple[OwnPrice, ...]:
    """Read a table with the columns provider, machine_type, usd_per_hour and, if given, region.

    Prices of providers and regions that no catalog has are kept, but not checked.

    Raises:
        CatalogError: The file is unusable, or names a machine type that its catalog lacks.
    """
    header, rows = read_rows(path)
    refuse_columns(path, header, COLUMNS, (REGION,))
    found: dict[tuple[str, str, str | None], OwnPrice] = {}
    for row in rows:
        price = _own_price(row, path)
        key = (*key_of(price.provider, price.machine_type), price.region)
        if key in found:
            raise row.error("machine_type", f"{price.machine_type} has a price already")
        _refuse_unknown_type(row, price, catalogs)
        found[key] = price
    if not any(_applies(price, catalog) for price in found.values() for catalog in catalogs):
        names = formatting.listing(each.name for each in catalogs)
        raise CatalogError(f"{path} has no price of a provider and region of {names}")
    return tuple(found.values())


def _own_price(row: CsvRow, path: Path) -> OwnPrice:
    usd = row.price("usd_per_hour")
    if usd is None:
        raise row.error("usd_per_hour", "is blank")
    return OwnPrice(
        provider=row.required("provider"),
        machine_type=row.required("machine_type"),
        region=row.text(REGION),
        usd_per_hour=usd,
        source=f"{path.name}, row {row.number_in_file}",
    )


def _refuse_unknown_type(row: CsvRow, price: OwnPrice, catalogs: Iterable[Catalog]) -> None:
    known = dict.fromkeys(each.provider for each in SCHEMAS)
    if price.provider not in known:
        raise row.error("provider", f"{price.provider} is not one of {', '.join(known)}")
    its = [each for each in catalogs if _applies(price, each)]
    types = [offer.type for each in its for offer in each.offers]
    kinds = {key_of(price.provider, each) for each in types}
    if its and key_of(price.provider, price.machine_type) not in kinds:
        close = formatting.did_you_mean(price.machine_type, types)
        names = formatting.listing(each.name for each in its)
        raise row.error("machine_type", f"{price.machine_type} is not in {names}{close}")
