"""Whether a price is stale: too old to be relied on.

Spot prices move with the load, list prices a few times a year. EC2 tells the spot prices of the
last 90 days (DescribeSpotPriceHistory), so older ones cannot even be compared with what was paid.
"""

from datetime import date, timedelta

from tonnage.catalog.offer import Catalog

STALE_DAYS = 90


def is_stale(told: str | None, today: date | None) -> bool:
    """Whether a year, month or day is past by more than `STALE_DAYS`; nothing is if unknown."""
    if told is None or today is None:
        return False
    return today - _last_day(told) > timedelta(days=STALE_DAYS)


def age_note(catalog: Catalog, today: date | None) -> str | None:
    """What to say of a catalog whose prices are stale."""
    if not is_stale(catalog.date, today):
        return None
    return f"the prices of {catalog.name} are of {catalog.date}, more than {STALE_DAYS} days ago"


def _last_day(told: str) -> date:
    if len(told) == len("2026"):
        return date.fromisoformat(f"{told}-12-31")
    if len(told) == len("2026-02"):
        first = date.fromisoformat(f"{told}-01")
        return (first + timedelta(days=31)).replace(day=1) - timedelta(days=1)
    return date.fromisoformat(told)
