"""Catalog: what can be rented and at what price; each figure with its source and its date.

``load`` gives a catalog by name or from a file, ``names`` those that come with the package,
``find`` an offer; ``choose`` filters, ``difference`` compares. What is unknown is ``None``, and
`missing` says so. ``tonnage.catalog.providers.aws_fetch`` asks the provider for a new catalog, its price list
with ``price_list``; only these have effects.
"""

from tonnage.catalog.csv_rows import CatalogError
from tonnage.catalog.difference import Changed, Difference, Repriced, difference
from tonnage.catalog.filter import Chosen, Wanted, choose
from tonnage.catalog.load import find, having, load, names, newest
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
    missing,
)

__all__ = [
    "Billing",
    "Burst",
    "Catalog",
    "CatalogError",
    "Changed",
    "Chosen",
    "Difference",
    "Disks",
    "Grant",
    "Network",
    "ObjectStore",
    "Offer",
    "Price",
    "Repriced",
    "Spot",
    "VolumeKind",
    "VolumeLink",
    "Wanted",
    "cautions",
    "choose",
    "difference",
    "find",
    "having",
    "load",
    "missing",
    "names",
    "newest",
]
