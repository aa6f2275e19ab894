"""The input of a job, found once: files, directories at any depth, objects, and globs of these."""

import glob
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from tonnage.base import core
from tonnage.run.storage.earlier_output import (
    manifest_parts,
    refuse_incomplete,
    refuse_unfinished,
)
from tonnage.run.storage.hive import folder_values
from tonnage.run.storage.object_store import HIDDEN, is_url
from tonnage.run.storage.sources import InputFile, Sources, refuse_twice, with_content

WILDCARDS = frozenset("*?[")


@dataclass(frozen=True)
class PlacedFile:
    """A file or object, and the columns that the folders below its input say (`hive`)."""

    file: InputFile
    folders: dict[str, str | None]


@dataclass(frozen=True)
class _InputPlace:
    """A path or URL that is read; folders below ``root`` are columns."""

    name: str
    root: str
    files: list[InputFile]


def find_input(given: Sequence[str], sources: Sources) -> list[PlacedFile]:
    """The files of paths, URLs and globs, in their order; of a directory by name.

    Empty files are passed over, as are objects that mark folders, unless all files are empty.
    Directories of one output, which was written to several devices, are one sequence.

    Raises:
        UsageError: One has no files, is there twice, or contains only a part of an output.
    """
    places = [place for each in given for place in _places(each, sources)]
    directories = [place.name for place in places if os.path.isdir(place.name)]
    for each in directories:
        refuse_unfinished(each, os.listdir(each))
    refuse_incomplete(directories)
    refuse_twice([place.name for place in places], [place.files for place in places])
    folders = {
        file: folder_values(place.root, file.name) for place in places for file in place.files
    }
    files = with_content(folders)
    outputs = [tuple(manifest_parts(each)) for each in directories]
    if len(places) == len(directories) and outputs[0] and len({*outputs}) == 1:
        files.sort(key=lambda file: os.path.basename(file.name))
    return [PlacedFile(file, folders[file]) for file in files]


def _places(given: str, sources: Sources) -> Iterator[_InputPlace]:
    """What a path, URL or glob names; a name that exists stands for itself."""
    if not is_glob(given):
        yield _InputPlace(given, given, list(sources.find(given)))
        return
    pattern, root = given.rstrip("/"), input_root(given)
    if is_url(given):
        # As a pattern it also matches a key of just this name.
        files = [
            file
            for file in sources.find(root)
            if file.name == given or _matches(file.name.split("/"), pattern.split("/"), True)
        ]
        if files:
            yield _InputPlace(given, root, files)
            return
    else:
        names = matching_paths(given)
        for name in names:
            yield _InputPlace(name, root, list(sources.find(name)))
        if names:
            return
    raise core.UsageError(
        f"input {given}: nothing has a name like this (names that begin with . or _ are ignored); "
        "check the pattern"
    )


def is_glob(given: str) -> bool:
    """Whether it is a pattern; a path that exists stands for itself."""
    return bool(WILDCARDS.intersection(given)) and (is_url(given) or not os.path.lexists(given))


def matching_paths(pattern: str) -> list[str]:
    """The paths that match, in the order of names; no hidden ones."""
    pattern = pattern.rstrip("/")
    names = sorted(glob.glob(pattern, recursive=True))
    return [each for each in names if _matches(each.split("/"), pattern.split("/"))]


def input_root(given: str) -> str:
    """The folder below which folders are columns: the input, or what is before a wildcard."""
    parts = given.split("/")
    if not is_glob(given):
        return given
    first = next(place for place, part in enumerate(parts) if WILDCARDS.intersection(part))
    return "/".join(parts[:first]) or ("/" if given.startswith("/") else ".")


def _matches(parts: Sequence[str], pattern: Sequence[str], below: bool = False) -> bool:
    """Whether parts of a name match those of a pattern; with ``below``, or the first of them do.

    Hidden names match only themselves.
    """
    if not pattern:
        return below or not parts
    if pattern[0] == "**":
        return _matches(parts, pattern[1:], below) or (
            bool(parts) and not parts[0].startswith(HIDDEN) and _matches(parts[1:], pattern, below)
        )
    if not parts or not fnmatchcase(parts[0], pattern[0]):
        return False
    is_hidden = parts[0] != pattern[0] and parts[0].startswith(HIDDEN)
    return not is_hidden and _matches(parts[1:], pattern[1:], below)
