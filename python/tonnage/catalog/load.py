"""Load catalogs by name or from files: a table of offers, its volumes and its object storage.

``aws-us-east-1-2026.csv`` names the provider, the region and the date. ``….volumes.csv`` and
``….objects.csv`` in the same folder belong to that catalog and are optional.
"""

import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator
from functools import partial
from pathlib import Path

from msgspec import structs

from tonnage.base import formatting
from tonnage.catalog.csv_rows import NOT_READABLE, CatalogError, CsvRow, read_rows, refuse_columns
from tonnage.catalog.offer import Catalog, ObjectStore, Offer
from tonnage.catalog.providers import aws, aws_2014, azure, gcp, lab
from tonnage.catalog.providers.schema import Schema
from tonnage.catalog.providers.volumes import (
    OBJECT_COLUMNS,
    PROVISIONING_COLUMNS,
    VOLUME_COLUMNS,
    object_store,
    volume_kind,
)
from tonnage.catalog.published.fill_in import fill_in
from tonnage.catalog.published.object_stores import store_limits
from tonnage.catalog.published.public_addresses import address_price

SCHEMAS: tuple[Schema, ...] = tuple(each.SCHEMA for each in (aws_2014, aws, gcp, azure, lab))
SNAPSHOTS = Path(__file__).parent / "snapshots"
NAMED = re.compile(r"(?:aws|gcp|azure)[-_](?P<region>[a-z0-9-]+?)[-_]\d{4}.*")

REFRESHED = re.compile(r"(?:aws|gcp|azure)-[a-z0-9-]+-\d{4}-\d\d-\d\d\.csv")
"""Names of files that a refresh writes."""


def catalog_names() -> list[str]:
    # Companion tables have a second suffix.
    return sorted(path.stem for path in SNAPSHOTS.glob("*.csv") if "." not in path.stem)


def load_catalog(name: str | Path) -> Catalog:
    """The catalog of this name, or in this file; `CatalogError`: none, or an invalid one."""
    if str(name) in catalog_names():
        return _read(SNAPSHOTS / f"{name}.csv")
    if (file := Path(f"{name}.csv")) in refreshed_catalogs():
        return _read(file)
    try:
        os.stat(name)
    except PermissionError:
        raise CatalogError(f"{name}: {NOT_READABLE}") from None
    except (OSError, ValueError):  # Also an empty or impossible file name.
        meant = formatting.did_you_mean(str(name), catalog_names())
        raise CatalogError(
            f"unknown catalog {str(name) or repr('')}{meant}; use one of "
            f"{', '.join(catalog_names())}, or a CSV file"
        ) from None
    return _read(Path(name))


def refreshed_catalogs() -> list[Path]:
    """The files in the current directory that ``tonnage catalog refresh`` names so."""
    return sorted(path for path in Path().glob("*.csv") if REFRESHED.fullmatch(path.name))


def catalogs_here() -> list[Catalog]:
    """The shipped catalogs, and those that were refreshed into the current directory."""
    names: list[str | Path] = [*catalog_names(), *refreshed_catalogs()]
    return list(map(load_catalog, names))


def newest_catalogs() -> list[Catalog]:
    return _newest(map(load_catalog, catalog_names()), lambda each: each.provider)


def newest_of_regions(regions: Collection[str]) -> list[Catalog]:
    """Each provider's newest catalog of these regions, shipped or in the current directory."""
    return _newest(
        (each for each in catalogs_here() if each.region in regions),
        lambda each: (each.provider, each.region),
    )


def _newest(catalogs: Iterable[Catalog], key: Callable[[Catalog], object]) -> list[Catalog]:
    """Of each key; of the same date, the last."""
    found: dict[object, Catalog] = {}
    for catalog in catalogs:
        known = found.get(key(catalog))
        if known is None or (catalog.date or "") >= (known.date or ""):
            found[key(catalog)] = catalog
    return list(found.values())


def previous_catalog(catalog: Catalog) -> Catalog | None:
    """The last shipped catalog of this provider and region whose prices are not of later dates.

    One with the same content is this one, whatever its name.
    """
    earlier = [
        each
        for each in map(load_catalog, catalog_names())
        if (each.provider, each.region) == (catalog.provider, catalog.region)
        and (each.date or "") <= (catalog.date or "")
        and structs.replace(each, name=catalog.name) != catalog
    ]
    return max(earlier, key=lambda each: each.date or "", default=None)


def find_offer(catalogs: Iterable[Catalog], name: str) -> tuple[Catalog, Offer]:
    """The offer called ``TYPE`` or ``PROVIDER/TYPE``, and the first catalog that has it.

    `CatalogError`: there is none, or several providers have one; suggests similar names.
    """
    catalogs = list(catalogs)
    found: dict[str, tuple[Catalog, Offer]] = {}
    for catalog in catalogs:
        for offer in catalog.offers:
            if name in offer_names(offer):
                found.setdefault(offer_names(offer)[1], (catalog, offer))
    if len(found) == 1:
        return next(iter(found.values()))
    if found:
        raise CatalogError(f"several providers have an offer {name}; specify {' or '.join(found)}")
    searched = ", ".join(each.name for each in catalogs)
    others = [each.name for each in catalogs_with(name)]
    if others:
        raise CatalogError(
            f"offer {name} is not in {searched}; use {' or '.join(others)}, which has it"
        )
    known = {
        each for catalog in catalogs for offer in catalog.offers for each in offer_names(offer)
    }
    said = f"unknown offer {name or repr('')}{formatting.did_you_mean(name, known)} in {searched}"
    raise CatalogError(
        f"{said}; specify TYPE or PROVIDER/TYPE, like aws/m5d.large, or another catalog"
    )


def offer_names(offer: Offer) -> tuple[str, str]:
    """The names of an offer: ``TYPE``, and ``PROVIDER/TYPE``."""
    return offer.type, f"{offer.provider}/{offer.type}"


def catalogs_with(name: str) -> list[Catalog]:
    """The shipped catalogs that have an offer of this name."""
    return [
        catalog
        for catalog in map(load_catalog, catalog_names())
        if any(name in offer_names(offer) for offer in catalog.offers)
    ]


def _read(path: Path) -> Catalog:
    # Refuse another kind of file before any of its rows.
    header, rows = read_rows(path, partial(_schema, path))
    schema = _schema(path, header)
    refuse_columns(path, header, schema.columns, schema.optional)
    named = NAMED.fullmatch(path.stem)
    region = named["region"] if named else None
    offers = tuple(fill_in(schema.offer(row, region)) for row in _once(schema.key, rows))
    if not offers:
        raise CatalogError(f"{path}: the file has a header but no offers")
    volumes = read_companion(path, "volumes", VOLUME_COLUMNS, PROVISIONING_COLUMNS)
    dates = [offer.on_demand.date for offer in offers if offer.on_demand]
    date = max(filter(None, dates), default=None)
    return Catalog(
        name=path.stem,
        provider=schema.provider,
        region=offers[0].region,
        date=date,
        offers=offers,
        volume_kinds=tuple(map(volume_kind, _once("volume_type", volumes))),
        object_store=_object_store(
            read_companion(path, "objects", OBJECT_COLUMNS), schema.provider
        ),
        billing=schema.billing,
        sources=tuple(
            dict.fromkeys(
                source
                for offer in offers
                for source in (offer.spec_source, offer.on_demand and offer.on_demand.source)
                if source
            )
        ),
        address=address_price(schema.provider, date),
    )


def _schema(path: Path, header: list[str]) -> Schema:
    schema = max(SCHEMAS, key=lambda each: len({*each.columns} & {*header}))
    if schema.key not in header:
        keys = dict.fromkeys(each.key for each in SCHEMAS)
        raise CatalogError(
            f"{path}: not a catalog of offers: column {' or '.join(keys)} is missing in row 1; "
            "specify the name or the CSV file of a catalog"
        )
    return schema


def _once(column: str, rows: Iterable[CsvRow]) -> Iterator[CsvRow]:
    """The rows; raises if two have the same name."""
    seen: dict[str, int] = {}
    for row in rows:
        name = row.required(column)
        if name in seen:
            raise row.error(column, f"{name} occurs already in row {seen[name]}")
        seen[name] = row.number_in_file
        yield row


def _object_store(rows: list[CsvRow], provider: str) -> ObjectStore | None:
    if len(rows) > 1:
        raise rows[1].error("name", "a second object store; a catalog can have only one")
    if not rows:
        return None
    return structs.replace(object_store(rows[0]), limits=store_limits(provider))


def read_companion(
    path: Path, part: str, columns: tuple[str, ...], optional: tuple[str, ...] = ()
) -> list[CsvRow]:
    """The rows of a companion table; none if it does not exist."""
    other = path.with_suffix(f".{part}.csv")
    if not other.exists():
        return []
    header, rows = read_rows(other)
    refuse_columns(other, header, columns, optional)
    return rows
