"""Prices of machines: those of ``--price``, and the on-demand prices of a catalog."""

from collections.abc import Sequence
from contextlib import suppress

import typer

from tonnage.base import core, formatting
from tonnage.catalog import Catalog, CatalogError, load_catalog
from tonnage.cli.options.types import parse_usd
from tonnage.cli.options.validate import usage_errors
from tonnage.model.analysis.cost_efficiency import Price

GIVEN = "given with --price"


def prices(given: Sequence[str], catalog: str | None) -> dict[str, Price]:
    """Prices by host or by machine type.

    Args:
        given: ``NAME=USD_PER_HOUR``, or ``HOST=TYPE`` with a type of the catalog.
        catalog: A catalog's name, or a CSV file.
    """
    with usage_errors(CatalogError, prefix="--catalog: "):
        known = None if catalog is None else load_catalog(catalog)
    found = _listed(known) if known else {}
    priced: set[str] = set()
    for each in given:
        name, separator, value = each.rpartition("=")
        if not separator or not name or not value:
            raise core.UsageError(
                f"--price {each}: use HOST_OR_TYPE=USD_PER_HOUR, like m5d.large=0.113"
            )
        if name in priced:
            raise core.UsageError(f"--price {each}: {name} has a price already; specify one")
        priced.add(name)
        found[name] = found[value] if value in found else Price(_usd(each, value, known), GIVEN)
    return found


def _listed(catalog: Catalog) -> dict[str, Price]:
    """On-demand prices by type, with the catalog's name before their source."""
    return {
        offer.type: Price(
            price.usd_per_hour,
            ", ".join(filter(None, (catalog.name, price.date, price.source, price.caution))),
        )
        for offer in catalog.offers
        if (price := offer.on_demand)
    }


def _usd(given: str, value: str, catalog: Catalog | None) -> float:
    with suppress(typer.BadParameter):
        return parse_usd(value)
    types = [offer.type for offer in catalog.offers] if catalog else []
    if catalog and value in types:
        raise core.UsageError(
            f"--price {given}: {value} has no price in {catalog.name}; use "
            "HOST_OR_TYPE=USD_PER_HOUR"
        )
    if catalog is None:
        raise core.UsageError(
            f"--price {given}: {value} is not a price; use HOST_OR_TYPE=USD_PER_HOUR, or add "
            "--catalog to look up a machine type"
        )
    close = formatting.did_you_mean(value, types)
    raise core.UsageError(
        f"--price {given}: {value} is neither a price nor a machine type in {catalog.name}{close}; "
        "use HOST_OR_TYPE=USD_PER_HOUR"
    )
