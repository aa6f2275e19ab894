"""Catalog: what can be rented and at what price; each figure with its source and its date.

`load_catalog` reads a catalog by name or from a file, `catalog_names` lists the shipped ones,
`find_offer` finds an offer; `filter_offers` filters, `compare_catalogs` compares. Unknown figures
are ``None``, and `unknown_figures` lists them. ``providers.aws_fetch`` downloads a new catalog from
AWS; only it has effects.
"""

from tonnage.catalog.csv_rows import CatalogError
from tonnage.catalog.difference import Change, Difference, FigureChange, compare_catalogs
from tonnage.catalog.filter import OfferFilter, filter_offers
from tonnage.catalog.load import (
    catalog_names,
    catalogs_here,
    catalogs_with,
    find_offer,
    load_catalog,
    newest_catalogs,
    newest_of_regions,
    previous_catalog,
)
from tonnage.catalog.offer import (
    OFFER_KINDS,
    Billing,
    Burst,
    Catalog,
    Disks,
    Grant,
    Network,
    NetworkBurst,
    ObjectStore,
    Offer,
    OfferKind,
    Price,
    Spot,
    StoreLimits,
    VolumeKind,
    VolumeLink,
    cautions,
    disk_rate_source,
    unknown_figures,
)

__all__ = [
    "OFFER_KINDS",
    "Billing",
    "Burst",
    "Catalog",
    "CatalogError",
    "Change",
    "Difference",
    "Disks",
    "FigureChange",
    "Grant",
    "Network",
    "NetworkBurst",
    "ObjectStore",
    "Offer",
    "OfferFilter",
    "OfferKind",
    "Price",
    "Spot",
    "StoreLimits",
    "VolumeKind",
    "VolumeLink",
    "catalog_names",
    "catalogs_here",
    "catalogs_with",
    "cautions",
    "compare_catalogs",
    "disk_rate_source",
    "filter_offers",
    "find_offer",
    "load_catalog",
    "newest_catalogs",
    "newest_of_regions",
    "previous_catalog",
    "unknown_figures",
]
