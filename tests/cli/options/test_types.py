"""How sizes, times and money are read."""

import pytest
import typer

from tonnage.cli.options.types import duration, parse_duration, parse_size, parse_usd


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("0", 0),
        ("1000000", 1_000_000),
        ("4GB", 4_000_000_000),
        ("1GiB", 1 << 30),
        ("1.5 kB", 1500),
        ("0.5kib", 512),
        ("2TiB", 2 << 40),
        ("8EB", 8 * 10**18),
        ("20T", 20 * 10**12),
        ("20TB", 20 * 10**12),
        ("20TiB", 20 << 40),
        ("4k", 4000),
        ("1.5g", 1_500_000_000),
        ("9007199254740993", 9007199254740993),  # More than a float holds.
    ],
)
def test_sizes(text: str, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize("text", ["", "4XB", "1 2", "-1", "TB", "1e3", "4kk", "0x10"])
def test_what_is_no_size(text: str) -> None:
    with pytest.raises(typer.BadParameter, match="is not a size; use a value like 20TB"):
        parse_size(text)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("5", 5),
        ("0.5", 0.5),
        ("90s", 90),
        ("120m", 7200),
        ("120min", 7200),
        ("2h", 7200),
        ("1.5 h", 5400),
        ("7d", 604_800),
        ("1h30m", 5400),
        ("1H30Min", 5400),
        ("1d2h3m4s", 93_784),
        ("2:00:00", 7200),
        ("0:01:30.5", 90.5),
    ],
)
def test_times(text: str, seconds: float) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize(
    "text", ["", "soon", "-5", "1h30", "2:00", "1:60:00", "5 6", "1e3", "inf", "²s"]
)
def test_what_is_no_time(text: str) -> None:
    with pytest.raises(typer.BadParameter, match="is not a time; use a value like 90s, 2h, 1h30m"):
        parse_duration(text)


def test_no_time_at_all_and_centuries_are_refused() -> None:
    with pytest.raises(typer.BadParameter, match="'0s' must be more than 0 seconds"):
        parse_duration("0s")
    with pytest.raises(
        typer.BadParameter, match="'999999999999h' is too long; use at most 115740d"
    ):
        parse_duration("999999999999h")


def test_times_have_bounds() -> None:
    parse = duration(0.1, 60)
    assert parse("1m") == 60
    for text in ("0.01", "61", "soon"):
        with pytest.raises(typer.BadParameter, match=r"is not a time from 0\.1s to 60s"):
            parse(text)


@pytest.mark.parametrize(("text", "usd"), [("300", 300), ("0.5USD", 0.5), ("$20", 20)])
def test_money(text: str, usd: float) -> None:
    assert parse_usd(text) == usd
