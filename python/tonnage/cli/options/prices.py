"""What machines cost: prices as they are given, and those on demand of a catalog."""

from __future__ import annotations

import math
from collections.abc import Sequence

from tonnage.base import core, formatting
from tonnage.catalog import Catalog, CatalogError, load_catalog
from tonnage.model.analysis.cost_efficiency import Price

GIVEN = "given with --price"


def prices(given: Sequence[str], catalog: str | None) -> dict[str, Price]:
    """Prices by host or by machine type.

    Args:
        given: ``NAME=USD_PER_HOUR``, or ``HOST=TYPE`` of a type in the catalog.
        catalog: The name of a catalog that comes with the package, or a CSV file.

    Raises:
        UsageError: One cannot be read.
    """
    try:
        known = None if catalog is None else load_catalog(catalog)
    except CatalogError as why:
        raise core.UsageError(f"--catalog: {why}") from None
    found = _listed(known) if known else {}
    for each in given:
        name, separator, said = each.rpartition("=")
        if not separator or not name or not said:
            raise core.UsageError(
                f"--price {each}: write HOST_OR_TYPE=USD_PER_HOUR, like m5d.large=0.113"
            )
        found[name] = found[said] if said in found else Price(_usd(each, said, known), GIVEN)
    return found


def _listed(catalog: Catalog) -> dict[str, Price]:
    """The types that have a price on demand, with the catalog's name before its source."""
    return {
        offer.type: Price(
            price.usd_per_hour,
            ", ".join(filter(None, (catalog.name, price.date, price.source, price.caution))),
        )
        for offer in catalog.offers
        if (price := offer.on_demand)
    }


def _usd(given: str, said: str, catalog: Catalog | None) -> float:
    """What was said as an amount above zero."""
    try:
        usd = float(said)
    except ValueError:
        usd = math.nan
    if math.isfinite(usd) and usd > 0:
        return usd
    types = [offer.type for offer in catalog.offers] if catalog else []
    if catalog and said in types:
        raise core.UsageError(f"--price {given}: {said} has no price in {catalog.name}")
    of = f"{catalog.name}{formatting.did_you_mean(said, types)}" if catalog else "the --catalog"
    raise core.UsageError(
        f"--price {given}: {said} is no price and no type of {of}: write HOST_OR_TYPE=USD_PER_HOUR"
    )
