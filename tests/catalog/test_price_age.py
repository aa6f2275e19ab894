"""Prices of long ago are marked; those whose date is unknown are not judged."""

from datetime import date

import pytest

from tonnage.catalog.price_age import is_stale

TODAY = date(2026, 7, 1)


@pytest.mark.parametrize(
    ("told", "stale"),
    [
        ("2026-07-01", False),
        ("2026-04-02", False),
        ("2026-04-01", True),
        # A month and a year end with their last day.
        ("2026-04", False),
        ("2026-03", True),
        ("2025", True),
        ("2026", False),
        (None, False),
    ],
)
def test_a_price_is_stale_after_ninety_days(told: str | None, stale: bool) -> None:
    assert is_stale(told, TODAY) is stale
    assert not is_stale(told, None)
