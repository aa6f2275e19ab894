"""Prices that a user pays instead of a catalog's: ``--discount`` and ``--prices``."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tonnage.cli.options.types import Option
from tonnage.cli.options.validate import usage_errors

if TYPE_CHECKING:
    from tonnage.catalog import Catalog
    from tonnage.catalog.own_prices import OwnPrices


def parse_discount(text: str) -> float:
    """``12.5`` or ``12.5%``, as a number of percent."""
    try:
        percent = float(text.strip().removesuffix("%"))
    except ValueError:
        percent = math.nan
    if not 0 < percent < 100:
        raise typer.BadParameter(f"{text!r} is not a percentage between 0 and 100; use like 10")
    return percent


@dataclass(frozen=True, kw_only=True)
class PriceOptions:
    discount: Annotated[
        float | None,
        Option(
            "PERCENT",
            "Discount on the on-demand prices of machines, as of a savings plan or an enterprise "
            "agreement. Spot prices, volumes, addresses and requests stay as they are.",
            parse_discount,
        ),
    ] = None
    prices: Annotated[
        Path | None,
        Option(
            "FILE.csv",
            "Your own prices of machines, reserved or negotiated, in place of their on-demand "
            "prices: columns provider, machine_type, usd_per_hour and, if prices differ, region. "
            "--discount does not apply to them.",
        ),
    ] = None

    def own_prices(self, catalogs: Sequence[Catalog]) -> OwnPrices:
        from tonnage.catalog import CatalogError
        from tonnage.catalog.own_prices import OwnPrices, read_own_prices

        with usage_errors(CatalogError, prefix="--prices "):
            read = read_own_prices(self.prices, catalogs) if self.prices else ()
        return OwnPrices(discount_percent=self.discount or 0.0, prices=read)
