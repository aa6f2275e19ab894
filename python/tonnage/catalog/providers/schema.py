"""What the tables of all providers share: the schema, and cells that several of them have.

Each provider's file has its columns, how a row becomes an offer, and corrections of its source.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass

from tonnage.catalog.csv_rows import CsvRow
from tonnage.catalog.offer import Billing, Disks, Offer, Price, Spot

GIGABIT = 1e9 / 8  # Bytes per second
MB, MIB, GB = 1e6, 1 << 20, 1e9
DEDICATED = re.compile(r"\(Dedicated tenancy; may be \+(\d+)-(\d+)%\)")


@dataclass(frozen=True)
class Schema:
    """A known table of offers; ``offer`` gets the region, which the table may not state."""

    provider: str
    columns: tuple[str, ...]
    optional: tuple[str, ...]
    billing: Billing
    offer: Callable[[CsvRow, str | None], Offer]

    @property
    def key(self) -> str:
        return self.columns[0]


def local_disks(
    kind: str | None, count: int | None, bytes_each: int | None, total: int | None = None
) -> tuple[Disks, ...] | None:
    """Identical disks: an empty tuple where the table says 0, ``None`` where it says nothing."""
    if count == 0:
        return ()
    if count is None and total is None:
        return None
    if total is None and count is not None and bytes_each is not None:
        total = count * bytes_each
    return (Disks(kind=kind, count=count, bytes_each=bytes_each, total_bytes=total),)


def on_demand_price(row: CsvRow, price: str, date: str, source: str) -> Price | None:
    usd = row.price(price)
    if usd is None:
        return None
    stated = row.required(source)
    dedicated = DEDICATED.search(stated)
    return Price(
        usd_per_hour=usd,
        date=row.date(date),
        source=DEDICATED.sub("", stated).strip(),
        caution=f"that of dedicated tenancy, which may be {dedicated[1]} to {dedicated[2]} % "
        "too high"
        if dedicated
        else None,
    )


def single_spot_price(row: CsvRow) -> Spot | None:
    usd = row.price("price_spot_hour")
    if usd is None:
        return None
    return Spot(
        low_usd_per_hour=usd,
        typical_usd_per_hour=usd,
        high_usd_per_hour=usd,
        date=row.text("price_date"),
        source=row.required("source"),
    )
