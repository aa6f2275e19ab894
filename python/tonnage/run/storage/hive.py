"""Hive's layout: folders ``NAME=VALUE`` below an input are columns of the rows of their files."""

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from tonnage.run.storage.object_store import HIDDEN, is_url

FOLDER = re.compile(r"([^=/._][^=/]*)=([^/]+)")
NULL = "__HIVE_DEFAULT_PARTITION__"
WHOLE_NUMBER = re.compile(r"-?\d{1,18}")


def is_hive_folder(path: Path) -> bool:
    return FOLDER.fullmatch(path.name) is not None and path.is_dir()


def input_paths(directory: Path) -> Iterator[Path]:
    """What a directory has for input, and its folders of columns, in the order of names."""
    for path in sorted(directory.iterdir()):
        if path.name.startswith(HIDDEN):
            continue
        if is_hive_folder(path):
            yield from input_paths(path)
        else:
            yield path


def without_hive_folders(directory: str) -> Iterator[str]:
    """A directory, and those above it as long as only folders of columns are between."""
    yield directory
    while FOLDER.fullmatch(os.path.basename(directory)):
        directory = os.path.dirname(directory)
        yield directory


def hive_columns(place: str, name: str) -> dict[str, Any]:
    """The columns by the folders from an input to one of its files, with their values.

    Whole numbers are integers, other values texts.
    """
    if is_url(place):
        place = place.rstrip("/")
    else:
        place, name = os.path.normpath(place), os.path.normpath(name)
    if not name.startswith(f"{place}/"):
        return {}
    folders = name[len(place) + 1 :].split("/")[:-1]
    pairs = [found.groups() for each in folders if (found := FOLDER.fullmatch(each))]
    return {unquote(column): _value(unquote(value)) for column, value in pairs}


def columns_by_file(places: Sequence[str], names: Iterable[str]) -> list[dict[str, Any]]:
    """The columns of each file of these inputs."""
    return [
        next(filter(None, (hive_columns(place, name) for place in places)), {}) for name in names
    ]


def _value(text: str) -> int | str | None:
    if text == NULL:
        return None
    return int(text) if WHOLE_NUMBER.fullmatch(text) else text
