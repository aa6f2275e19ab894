"""What a user pays in place of a catalog's prices: that of a file, or less a discount."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.data.copies import replace
from support.data.offers import catalog, offer
from tonnage.catalog import Catalog, CatalogError
from tonnage.catalog.own_prices import OwnPrices, read_own_prices, with_own_prices

WORLD = catalog([offer("m", 2.0), offer("n", 4.0), offer("o", None)])
"""Of aws, in the region "here"."""


def read(path: Path, *rows: str, header: str = "provider,machine_type,region,usd_per_hour") -> Path:
    path.write_text("\n".join([header, *rows]) + "\n")
    return path


def usd(world: Catalog) -> dict[str, float | None]:
    return {
        each.type: each.on_demand.usd_per_hour if each.on_demand else None for each in world.offers
    }


def test_own_prices_replace_those_of_the_catalog(tmp_path: Path) -> None:
    rows = ("aws,m,there,1.1", "aws,m,,1.5", "aws,m,here,1.2", "aws,o,,7", "gcp,m,,9")
    prices = read_own_prices(read(tmp_path / "own.csv", *rows), [WORLD])
    own = OwnPrices(prices=prices)
    assert usd(with_own_prices(WORLD, own)) == {"m": 1.2, "n": 4.0, "o": 7.0}
    assert usd(with_own_prices(replace(WORLD, region="elsewhere"), own))["m"] == 1.5
    assert usd(with_own_prices(replace(WORLD, provider="azure"), own)) == usd(WORLD)
    price = with_own_prices(WORLD, own).offers[0].on_demand
    assert price and price.source == "own.csv, row 4"


def test_a_discount_is_of_the_other_prices(tmp_path: Path) -> None:
    prices = read_own_prices(read(tmp_path / "own.csv", "aws,m,,1.5"), [WORLD])
    own = OwnPrices(discount_percent=25.0, prices=prices)
    assert usd(with_own_prices(WORLD, own)) == {"m": 1.5, "n": 3.0, "o": None}
    price = with_own_prices(WORLD, own).offers[1].on_demand
    assert price and price.source == "made up, less 25 %"


def test_settings_keep_them(tmp_path: Path) -> None:
    prices = read_own_prices(read(tmp_path / "own.csv", "aws,m,,1.5"), [WORLD])
    for own in (OwnPrices(), OwnPrices(discount_percent=3.0, prices=prices)):
        assert OwnPrices.of_settings(own.to_settings()) == own
    assert OwnPrices.of_settings({}) == OwnPrices()


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        (("aws,mm,,1",), "row 2, machine_type: mm is not in made-up (did you mean m?)"),
        (("aws,m,,1", "aws,m,,2"), "row 3, machine_type: m has a price already"),
        (("amazon,m,,1",), "row 2, provider: amazon is not one of aws, gcp, azure, lab"),
        (("aws,m,,cheap",), "row 2, usd_per_hour: 'cheap' is not a number"),
        (("aws,m,,",), "row 2, usd_per_hour: is blank"),
        (("aws,m,,-1",), "row 2, usd_per_hour: -1 is negative"),
        (("aws,,,1",), "row 2, machine_type: is blank"),
        (("aws,m,there,1", "gcp,m,,1"), "has no price of a provider and region of made-up"),
        ((), "has no price of a provider and region of made-up"),
    ],
)
def test_a_mistake_is_named_with_its_place(
    tmp_path: Path, rows: tuple[str, ...], said: str
) -> None:
    path = read(tmp_path / "own.csv", *rows)
    with pytest.raises(CatalogError) as why:
        read_own_prices(path, [WORLD])
    assert str(why.value).startswith(str(path)) and said in str(why.value)


def test_a_file_without_a_column_is_refused(tmp_path: Path) -> None:
    path = read(tmp_path / "own.csv", "aws,m,1", header="provider,type,usd_per_hour")
    with pytest.raises(CatalogError, match="row 1: missing column machine_type"):
        read_own_prices(path, [WORLD])
