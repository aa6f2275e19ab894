"""Catalog: what can be rented and at what price; each figure with its source and its date.

``load`` gives a catalog by name or from a file, ``names`` those that come with the package,
``find`` an offer; ``choose`` filters, ``difference`` compares. What is unknown is ``None``, and
`missing` says so. ``tonnage.catalog.providers.aws_fetch`` asks the provider for a new catalog, its price list
with ``price_list``; only these have effects.
"""

from tonnage.catalog.csv_rows import CatalogError
from tonnage.catalog.difference import (
    Difference,
    PriceChange,
    SpecificationChange,
    compare_catalogs,
)
from tonnage.catalog.filter import FilterResult, OfferFilter, filter_offers
from tonnage.catalog.load import (
    catalog_names,
    catalogs_with,
    find_offer,
    load_catalog,
    newest_catalogs,
)
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
    "Difference",
    "Disks",
    "FilterResult",
    "Grant",
    "Network",
    "ObjectStore",
    "Offer",
    "OfferFilter",
    "Price",
    "PriceChange",
    "SpecificationChange",
    "Spot",
    "VolumeKind",
    "VolumeLink",
    "catalog_names",
    "catalogs_with",
    "cautions",
    "compare_catalogs",
    "filter_offers",
    "find_offer",
    "load_catalog",
    "newest_catalogs",
    "unknown_figures",
]
