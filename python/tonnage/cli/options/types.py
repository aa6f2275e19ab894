"""Types of option values: how sizes, times, numbers and money are read, and shared options."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.models import ArgumentInfo, OptionInfo

from tonnage.base import core
from tonnage.base.byte_sizes import bytes_of
from tonnage.cli.options.validate import refuse_memory

if TYPE_CHECKING:
    from tonnage.run.sort.local import Layout

LARGEST = (1 << 63) - 1
"""Sizes and counts beyond this are mistakes; the core could not represent them."""
MIN_MEASURABLE = 1_000_000
MAX_SECONDS = 10_000_000_000
"""The longest time that an option accepts: 317 years."""
MAX_USD = 10**12
MAX_NODES = 100_000
"""No larger cluster is planned."""
TIMES = {"": 1, "s": 1, "m": 60, "min": 60, "h": 3600, "d": 86400}


def parse_size(text: str) -> int:
    """``4GB`` (decimal), ``1GiB`` (binary), ``4k`` or plain bytes, as a number of bytes."""
    size = bytes_of(text)
    if size is None:
        raise typer.BadParameter(
            f"{text!r} is not a size; use a value like 20TB, 4GiB, 4k or 1000000"
        )
    if size > LARGEST:
        raise typer.BadParameter(f"{text!r} is too large; use less than 9EB")
    return size


def parse_memory(text: str) -> int:
    size = parse_size(text)
    refuse_memory(f"--memory {text} is", size, "lower --memory")
    return size


def parse_measurable(text: str) -> int:
    size = parse_size(text)
    if size < MIN_MEASURABLE:
        raise typer.BadParameter(f"{text!r} is too small to measure; use at least 1MB")
    return size


def whole_number(least: int, most: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        if not re.fullmatch(r"-?[0-9]{1,39}", text) or not least <= int(text) <= most:
            raise typer.BadParameter(f"{text!r} is not an integer from {least} to {most}")
        return int(text)

    return parse


def number(least: float, most: float) -> Callable[[str], float]:
    def parse(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not least <= value <= most:
            raise typer.BadParameter(f"{text!r} is not a number from {least} to {most}")
        return value

    return parse


def parse_share(text: str) -> float:
    """``2%`` as 0.02."""
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*%\s*", text)
    if match is None or not 0 < float(match[1]) < 100:
        raise typer.BadParameter(
            f"{text!r} is not a percentage between 0% and 100%; use a value like 2%"
        )
    return float(match[1]) / 100


def parse_duration(text: str) -> float:
    """``90s``, ``2h``, ``1h30m``, ``2:00:00`` or plain seconds, as a number of seconds."""
    written = text.strip().lower()
    if clock := re.fullmatch(r"(\d+):([0-5]\d):([0-5]\d(?:\.\d+)?)", written):
        seconds = Decimal(clock[1]) * 3600 + Decimal(clock[2]) * 60 + Decimal(clock[3])
    elif re.fullmatch(
        r"\d+(?:\.\d+)?\s*(?:s|m|min|h|d)?|(?:\d+(?:\.\d+)?(?:s|m|min|h|d))+", written
    ):
        parts = re.findall(r"(\d+(?:\.\d+)?)\s*(min|[smhd]?)", written)
        seconds = sum((Decimal(amount) * TIMES[unit] for amount, unit in parts), Decimal(0))
    else:
        raise typer.BadParameter(
            f"{text!r} is not a time; use a value like 90s, 2h, 1h30m or 2:00:00"
        )
    if seconds > MAX_SECONDS:
        raise typer.BadParameter(f"{text!r} is too long; use at most {MAX_SECONDS // 86400}d")
    if not seconds:
        raise typer.BadParameter(
            f"{text!r} must be more than 0 seconds; use a value like 90s or 2h"
        )
    return float(seconds)


def duration(least: float, most: float) -> Callable[[str], float]:
    """A parser of times within these bounds, in seconds."""

    def parse(text: str) -> float:
        try:
            seconds = parse_duration(text)
        except typer.BadParameter:
            seconds = math.nan
        if not least <= seconds <= most:
            raise typer.BadParameter(
                f"{text!r} is not a time from {least:g}s to {most:.12g}s; use a value like 5 or "
                "2min"
            )
        return seconds

    return parse


def parse_usd(text: str) -> float:
    """``300USD``, ``$300`` or ``300`` as a number of US dollars."""
    match = re.fullmatch(r"\s*\$?(\d+(?:\.\d+)?)\s*(?:usd)?\s*", text.lower())
    if match is None or not float(match[1]):
        raise typer.BadParameter(f"{text!r} is not an amount of money; use a value like 300USD")
    if float(match[1]) > MAX_USD:
        raise typer.BadParameter(f"{text!r} is too much; use at most {MAX_USD}USD")
    return float(match[1])


def parse_layout(record_bytes: int, key: str) -> Layout:
    """The layout that ``--record-bytes`` and ``--key OFFSET:LENGTH`` describe."""
    from tonnage.run.sort.local import Layout

    match = re.fullmatch(r"(\d+):(\d+)", key)
    if match is None:
        raise core.UsageError(f"--key {key}: use OFFSET:LENGTH in bytes, like 0:10")
    offset, length = int(match[1]), int(match[2])
    if length < 1:
        raise core.UsageError(f"--key {offset}:{length}: the length must be at least 1 byte")
    if offset + length > record_bytes:
        raise core.UsageError(
            f"--key {offset}:{length} extends past the end of a {record_bytes}-byte record; use "
            "OFFSET:LENGTH within --record-bytes"
        )
    return Layout(record_bytes=record_bytes, key_offset=offset, key_bytes=length)


def Option(
    metavar: str, text: str, parser: Callable[[str], Any] | None = None, flag: str | None = None
) -> OptionInfo:
    """An option with a value; its flag is the parameter's name, unless it is given."""
    flags = [flag] if flag else []
    option: OptionInfo = typer.Option(*flags, metavar=metavar, help=text, parser=parser)
    return option


def Size(
    text: str, parser: Callable[[str], int] = parse_size, flag: str | None = None
) -> OptionInfo:
    return Option("SIZE", text, parser, flag)


def Time(
    text: str, parser: Callable[[str], float] = parse_duration, flag: str | None = None
) -> OptionInfo:
    return Option("TIME", text, parser, flag)


def Count(text: str, least: int, most: int) -> OptionInfo:
    return Option("N", text, whole_number(least, most))


def Switch(flags: str, text: str) -> OptionInfo:
    option: OptionInfo = typer.Option(flags, help=text)
    return option


def Argument(metavar: str, text: str, parser: Callable[[str], Any] | None = None) -> ArgumentInfo:
    argument: ArgumentInfo = typer.Argument(metavar=metavar, help=text, parser=parser)
    return argument


Json = Annotated[bool, Switch("--json", "Print one JSON document and nothing else.")]
Scratch = Annotated[
    list[Path], Option("DIR...", "Directories for temporary data, one on each device.")
]
Memory = Annotated[
    int, Size("Memory for all buffers and indexes; with --cluster, on each node.", parse_memory)
]
RecordBytes = Annotated[int, Count("Length of a record in bytes.", 1, LARGEST)]
Key = Annotated[str, Option("OFFSET:LENGTH", "Offset and length of the key in a record, in bytes.")]
