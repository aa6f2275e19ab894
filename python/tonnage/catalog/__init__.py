"""Catalog: what can be rented and at what price; each figure with its source and its date.

``load`` gives a catalog by name or from a file, ``names`` those that come with the package,
``find`` an offer; ``choose`` filters, ``difference`` compares. What is unknown is ``None``, and
`missing` says so. ``tonnage.catalog.providers.aws_fetch`` asks the provider for a new catalog, its price list
with ``price_list``; only these have effects.
"""

from tonnage.catalog.csv_rows import CatalogError
from tonnage.catalog.difference import SpecificationChange, Difference, PriceChange, difference
from tonnage.catalog.filter import FilterResult, OfferFilter, filter_offers
from tonnage.catalog.load import find_offer, catalogs_with, load_catalog, catalog_names, newest_catalogs
from tonnage.catalog.offer import (
    Billing,
    Burst,
    Catalog,
    Disks,
    Grant,
    Network,
    ObjectStore,
    Offer,
    Price,
    Spot,
    VolumeKind,
    VolumeLink,
    cautions,
    unknown_figures,
)

__all__ = [
    "Billing",
    "Burst",
    "Catalog",
    "CatalogError",
    "SpecificationChange",
    "FilterResult",
    "Difference",
    "Disks",
    "Grant",
    "Network",
    "ObjectStore",
    "Offer",
    "Price",
    "PriceChange",
    "Spot",
    "VolumeKind",
    "VolumeLink",
    "OfferFilter",
    "cautions",
    "filter_offers",
    "difference",
    "find_offer",
    "catalogs_with",
    "load_catalog",
    "unknown_figures",
    "catalog_names",
    "newest_catalogs",
]
