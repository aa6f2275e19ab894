"""What commands have in common: kinds of arguments, how they are read, and what is refused."""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tonnage.base import core, formatting
from tonnage.run.storage.object_store import HIDDEN

if TYPE_CHECKING:
    from tonnage.run.sort.local import Layout

LARGEST = (1 << 63) - 1
"""Sizes and counts beyond this are mistakes; the core could not hold them."""
LEAST_MEASURABLE = 1_000_000

DURATIONS = {"": 1, "s": 1, "min": 60, "h": 3600, "d": 86400}


def parse_size(text: str) -> int:
    """``4GB`` (decimal), ``1GiB`` (binary) or plain bytes, as a number of bytes."""
    size = formatting.bytes_of(text)
    if size is None:
        raise typer.BadParameter(f"{text!r} is no size: write it like 4GB, 512MiB or 1000000")
    if size > LARGEST:
        raise typer.BadParameter(f"{text!r} is too large: give less than 9EB")
    return size


def parse_memory(text: str) -> int:
    """A size of memory that this process may have."""
    size = parse_size(text)
    refuse_memory(f"--memory {text} is", size, "give less")
    return size


def parse_measurable(text: str) -> int:
    """A size of data that is not done with before anything could be seen."""
    size = parse_size(text)
    if size < LEAST_MEASURABLE:
        raise typer.BadParameter(f"{text!r}: give at least 1MB, less cannot be measured")
    return size


def whole_number(least: int, most: int) -> Callable[[str], int]:
    """A parser of whole numbers within these bounds."""

    def parse(text: str) -> int:
        if not re.fullmatch(r"-?[0-9]{1,39}", text) or not least <= int(text) <= most:
            raise typer.BadParameter(f"{text!r}: give a whole number from {least} to {most}")
        return int(text)

    return parse


def number(least: float, most: float) -> Callable[[str], float]:
    """A parser of numbers within these bounds."""

    def parse(text: str) -> float:
        try:
            found = float(text)
        except ValueError:
            found = math.nan
        if not least <= found <= most:
            raise typer.BadParameter(f"{text!r}: give a number from {least} to {most}")
        return found

    return parse


def parse_share(text: str) -> float:
    """``2%`` as 0.02."""
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*%\s*", text)
    if found is None or not 0 < float(found[1]) < 100:
        raise typer.BadParameter(f"{text!r}: give a percentage between 0% and 100%, like 2%")
    return float(found[1]) / 100


def parse_duration(text: str) -> float:
    """``10min``, ``24h`` or plain seconds, as a number of seconds."""
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([a-z]*)\s*", text.lower())
    if found is None or found[2] not in DURATIONS or not float(found[1]):
        raise typer.BadParameter(f"{text!r} is no time: write it like 30s, 10min, 24h or 7d")
    return float(found[1]) * DURATIONS[found[2]]


def parse_usd(text: str) -> float:
    """``300USD`` or ``300`` as a number of US dollars."""
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*(?:usd)?\s*", text.lower())
    if found is None or not float(found[1]):
        raise typer.BadParameter(f"{text!r} is no amount of money: write it like 300USD")
    return float(found[1])


Json = Annotated[bool, typer.Option("--json", help="Print one JSON document and nothing else.")]
Memory = Annotated[
    int,
    typer.Option(
        "--memory",
        parser=parse_memory,
        metavar="SIZE",
        help="Memory for all buffers and indexes, like 1GiB.",
    ),
]
RecordBytes = Annotated[
    int,
    typer.Option(
        "--record-bytes", parser=whole_number(1, LARGEST), metavar="N", help="Size of a record."
    ),
]
Key = Annotated[
    str, typer.Option("--key", metavar="OFFSET:LENGTH", help="Where the key is, in bytes.")
]


def parse_layout(record_bytes: int, key: str) -> Layout:
    """The layout that ``--record-bytes`` and ``--key OFFSET:LENGTH`` say."""
    from tonnage.run.sort.local import Layout

    found = re.fullmatch(r"(\d+):(\d+)", key)
    if found is None:
        raise core.UsageError(f"--key {key}: write OFFSET:LENGTH in bytes, like 0:10")
    offset, length = int(found[1]), int(found[2])
    if length < 1 or offset + length > record_bytes:
        raise core.UsageError(
            f"--key {offset}:{length} does not lie in a record of {record_bytes} bytes: give "
            "OFFSET:LENGTH within --record-bytes"
        )
    return Layout(record_bytes=record_bytes, key_offset=offset, key_bytes=length)


def files_in(path: Path) -> list[Path]:
    """A file itself; of a directory the files that are taken for records."""
    try:
        if path.is_dir():
            return [each for each in path.iterdir() if not each.name.startswith(HIDDEN)]
    except OSError:
        pass  # What is unusable is refused by the job itself.
    return [path]


def bytes_in(paths: Iterable[Path]) -> int:
    """Bytes to be read, for progress only; what is unusable is refused by the job itself."""
    files = [file for path in paths for file in files_in(path)]
    return sum(file.stat().st_size for file in files if file.is_file())


def refuse_again(inputs: Iterable[Path]) -> None:
    """Refuses inputs that hold a file twice, under whatever names: it would be sorted twice."""
    holders: dict[Path, Path] = {}
    for path in inputs:
        for file in files_in(path):
            known = file.resolve()
            if known in holders:
                also = f", also by {holders[known]}" if holders[known] != file else ""
                raise core.UsageError(f"input {file} is given twice{also}: give each file once")
            holders[known] = path


def refuse_memory(what: str, needed: int, instead: str) -> None:
    """Refuses what needs more memory than this process may have, and says what to do instead."""
    from tonnage.measure.trial import environment

    most, whose = environment.physical_memory(), "this machine has"
    limit = environment.memory_limit()
    if limit is not None and limit < most:
        most, whose = limit, "this control group may have"
    if needed > most:
        raise core.UsageError(
            f"{what} more than the {formatting.memory(most)} that {whose}: {instead}"
        )


def refuse_unknown(flag: str, given: Iterable[str], known: Iterable[str]) -> None:
    """Refuses names that are not known."""
    names = list(known)
    for name in given:
        if name not in names:
            raise core.UsageError(f"{flag} {name}: there are {', '.join(names)}")


def refuse_missing(flag: str, directories: Iterable[Path]) -> None:
    """Refuses directories that are not there: a mistyped one would be on another device."""
    refuse_files(flag, directories)
    for directory in directories:
        if not directory.is_dir():
            raise core.UsageError(f"{flag} {directory}: there is no such directory; make it first")


def refuse_relative(directories: Iterable[Path]) -> None:
    """Refuses directories that are somewhere else on every machine of a fleet."""
    for directory in directories:
        if not directory.is_absolute():
            raise core.UsageError(
                f"--dir {directory}: with --cluster give a path from / on: it is each machine's own"
            )


def refuse_files(flag: str, paths: Iterable[Path]) -> None:
    """Refuses paths that cannot be directories, since a file is in the way."""
    for path in paths:
        nearest = next((each for each in (path, *path.parents) if each.exists()), Path())
        if not nearest.is_dir():
            raise core.UsageError(f"{flag} {path}: {nearest} is a file: give a directory")


def refuse_filled(flag: str, directories: list[Path]) -> None:
    """Refuses directories that hold what would be taken for the output's.

    Names of parts are left to the job: it knows those that a killed one left.
    """
    for directory in directories:
        for path in sorted(directory.iterdir()) if directory.is_dir() else []:
            if not path.name.startswith((*HIDDEN, "part-")):
                raise core.UsageError(
                    f"{flag} {directory} is not empty (it holds {path.name}): give an empty or "
                    "new directory"
                )


def refuse_twice(flag: str, directories: Iterable[Path]) -> None:
    """Refuses a directory that is given twice, under whatever names."""
    seen: set[Path] = set()
    for directory in directories:
        if directory.resolve() in seen:
            raise core.UsageError(f"{flag} {directory} is given twice: give each directory once")
        seen.add(directory.resolve())


def refuse_inside(flag: str, directories: Iterable[Path], records: Iterable[Path]) -> None:
    """Refuses directories that would be seen in directories of ``records``."""
    holders = [path.resolve() for path in records]
    for directory in directories:
        inside = directory.resolve()
        for holder in holders:
            if holder not in inside.parents:
                continue
            if not inside.relative_to(holder).parts[0].startswith(HIDDEN):
                raise core.UsageError(
                    f"{flag} {directory} lies in {holder} and would be taken for records there: "
                    "give a directory elsewhere"
                )


def new_directory(name: str) -> Path:
    """The first of ``name-1``, ``name-2``, ... here that is not there yet."""
    number = 1
    while (path := Path(f"{name}-{number}")).exists():
        number += 1
    return path


def command() -> list[str]:
    """The command as it was given, to be kept with its results."""
    return ["tonnage", *sys.argv[1:]]
