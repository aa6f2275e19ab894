"""Directories as input, and Hive's layout of them.

Folders ``NAME=VALUE`` below an input are columns of the rows of their files.
"""

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from tonnage.base import core
from tonnage.run.storage.object_store import HIDDEN, is_url

FOLDER = re.compile(r"([^=/._][^=/]*)=([^/]*)")
NULL = "__HIVE_DEFAULT_PARTITION__"
WHOLE_NUMBER = re.compile(r"-?\d{1,18}")


def input_paths(directory: Path) -> Iterator[Path]:
    """The files of a directory and of those below it, at any depth, in the order of names.

    A link to a directory that it is in itself is given as it is: no file.
    """
    for path in sorted(directory.iterdir()):
        if path.name.startswith(HIDDEN):
            continue
        if path.is_dir() and not _leads_above(path):
            yield from input_paths(path)
        else:
            yield path


def _leads_above(path: Path) -> bool:
    return path.is_symlink() and path.parent.resolve().is_relative_to(path.resolve())


def folder_values(place: str, name: str) -> dict[str, str | None]:
    """The columns by the folders from an input to one of its files, with their values as texts.

    Raises:
        UsageError: Two folders have different values of a column.
    """
    if is_url(place):
        place = place.rstrip("/")
    else:
        place, name = os.path.normpath(place), os.path.normpath(name)
    if not name.startswith(f"{place}/"):
        return {}
    folders = name[len(place) + 1 :].split("/")[:-1]
    pairs = [found.groups() for each in folders if (found := FOLDER.fullmatch(each))]
    values: dict[str, str | None] = {}
    for column, text in pairs:
        value = None if text == NULL else unquote(text)
        other = values.setdefault(unquote(column), value)
        if other != value:
            raise core.UsageError(
                f"input {name}: its folders say that its column {unquote(column)!r} is both "
                f"{other or NULL} and {text}; rename one of them, or specify the inner one as input"
            )
    return values


def hive_columns(place: str, name: str) -> dict[str, Any]:
    """The same, with their values: whole numbers are integers, others texts."""
    return {column: _value(text) for column, text in folder_values(place, name).items()}


def columns_by_file(places: Sequence[str], names: Iterable[str]) -> list[dict[str, Any]]:
    """The columns of each file of these inputs."""
    return [
        next(filter(None, (hive_columns(place, name) for place in places)), {}) for name in names
    ]


def _value(text: str | None) -> int | str | None:
    return int(text) if text is not None and WHOLE_NUMBER.fullmatch(text) else text
