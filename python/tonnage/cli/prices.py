"""What machines cost: prices as they are given, and catalogs of offers.

A catalog is a table (CSV) of one provider's machine types with their prices by the hour, and where
it has them from; a blank is unknown, never zero. Of several prices the one on demand is taken.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Sequence
from pathlib import Path

from tonnage import engine
from tonnage.model.analysis.money import Price

TYPES = ("instance_type", "machine_type", "vm_size")
"""Columns that name a type, each of another provider."""
PRICES = ("price_od_hour", "price_hour_linux_ondemand")
SOURCES = ("price_od_source", "source", "price_od_date", "price_date", "date")
"""Columns that say where a price is from, and of when it is."""


def prices(given: Sequence[str], catalog: Path | None) -> dict[str, Price]:
    """Prices by host or by machine type.

    Args:
        given: ``NAME=USD_PER_HOUR``, or ``HOST=TYPE`` of a type in the catalog.
        catalog: The table.

    Raises:
        Refused: One cannot be read.
    """
    found = read_catalog(catalog) if catalog else {}
    for each in given:
        name, separator, said = each.rpartition("=")
        if not separator or not name or not said:
            raise engine.Refused(
                f"--price {each}: write HOST_OR_TYPE=USD_PER_HOUR, like m5d.large=0.113"
            )
        found[name] = _price(each, said, found)
    return found


def read_catalog(path: Path) -> dict[str, Price]:
    """The types of a catalog that have a price.

    Raises:
        Refused: It is no catalog.
    """
    try:
        with path.open(newline="", encoding="utf-8") as file:
            table = csv.DictReader(file)
            columns = table.fieldnames or []
            kind = next((name for name in TYPES if name in columns), None)
            price = next((name for name in PRICES if name in columns), None)
            if kind is None or price is None:
                raise engine.Refused(
                    f"--catalog {path}: expected a CSV with a column {_either(TYPES)} and one "
                    f"{_either(PRICES)}"
                )
            return {row[kind]: made for row in table if (made := _offer(path, row, row[price]))}
    except (UnicodeDecodeError, csv.Error) as why:
        raise engine.Refused(f"--catalog {path}: expected a CSV in UTF-8 ({why})") from None
    except OSError as why:
        raise engine.Refused(f"--catalog {path}: {why.strerror}") from None


def _price(given: str, said: str, catalog: dict[str, Price]) -> Price:
    if said in catalog:
        return catalog[said]
    usd = _number(said)
    if usd is None:
        raise engine.Refused(
            f"--price {given}: {said} is no price and no type of the --catalog: write "
            "HOST_OR_TYPE=USD_PER_HOUR"
        )
    return Price(usd, "given with --price")


def _offer(path: Path, row: dict[str, str], said: str | None) -> Price | None:
    """A row's price; None where it is blank."""
    if not said or not said.strip():
        return None
    usd = _number(said)
    if usd is None:
        raise engine.Refused(f"--catalog {path}: {said!r} is no price")
    told = [row[name].strip() for name in SOURCES if row.get(name)]
    return Price(usd, ", ".join([path.name, *dict.fromkeys(told)]))


def _number(said: str) -> float | None:
    try:
        usd = float(said)
    except ValueError:
        return None
    return usd if math.isfinite(usd) and usd > 0 else None


def _either(names: Sequence[str]) -> str:
    return " or ".join(names)
