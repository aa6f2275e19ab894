"""What a provider charges for each public IPv4 address in use, as published.

Charges began on a day: a catalog of before has none.
"""

from tonnage.catalog.offer import Price
from tonnage.catalog.published.rows import read


def address_price(provider: str, date: str | None) -> Price | None:
    """The price at the date of a catalog's prices; ``None`` is unknown, or nothing was charged."""
    for row in read("public_addresses.csv"):
        if row["provider"] == provider and (date is None or date >= row["since"]):
            return Price(
                usd_per_hour=float(row["usd_per_hour"]), date=row["date"], source=row["source"]
            )
    return None
