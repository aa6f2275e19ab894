"""The input of a table sort, as the core takes it: every file, and the columns of its folders."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tonnage.base import core
from tonnage.run.storage.input_places import PlacedFile, find_input
from tonnage.run.storage.object_store import ObjectStoreOptions, is_url, split_url
from tonnage.run.storage.sources import InputFile, Sources
from tonnage.run.storage.suffixes import without_suffix

AUTO = "auto"
FORMATS = {
    "parquet": (".parquet", ".pq"),
    "arrow": (".arrow", ".arrows", ".feather", ".ipc"),
    "csv": (".csv",),
    "tsv": (".tsv",),
    "json": (".json", ".jsonl", ".ndjson"),
    "lines": (".txt", ".log"),
}
"""Formats, and how names of their files end."""


@dataclass(frozen=True)
class TableInput:
    """Files and objects in their order, and how to open them."""

    files: list[PlacedFile]
    sources: Sources
    store: ObjectStoreOptions

    @property
    def names(self) -> list[str]:
        return [each.file.name for each in self.files]

    @property
    def bytes(self) -> int:
        return sum(each.file.bytes for each in self.files)

    @property
    def requests(self) -> list[dict[str, Any]]:
        """What was requested to find and open them."""
        return [*self.sources.list_requests, self.sources.requests]

    def to_json(self) -> list[dict[str, Any]]:
        """The files as the core takes them."""
        return [
            {"file": self._extent(each.file), "folders": list(each.folders.items())}
            for each in self.files
        ]

    def beginning(self, upper_half: str | None = None) -> tuple[str, str]:
        """The first file whose text is not blank, and the whole lines in its first MiB.

        Bytes from 128 on are these characters; UTF-8 by default.

        Raises:
            UsageError: It cannot be read, or decompressed.
        """
        config = {"inputs": self.to_json(), "upper_half": upper_half}
        found = core.run("text_beginning", config | {"volumes": self.store.to_json()})
        self.sources.list_requests.append(found["requests"])
        return found["file"], found["text"]

    @property
    def folder_columns(self) -> list[str]:
        """The columns that folders are."""
        return [*dict.fromkeys(name for each in self.files for name in each.folders)]

    def refuse_folders(self, what: str) -> None:
        """Refuse folders of columns where ``what`` has no place for their values."""
        placed = next((each for each in self.files if each.folders), None)
        if placed is not None:
            name = next(iter(placed.folders))
            raise core.UsageError(
                f"input {placed.file.name}: its folder says what its column {name!r} is, and "
                f"{what} stays as it is; specify the files themselves"
            )

    def _extent(self, file: InputFile) -> dict[str, Any]:
        if not is_url(file.name):
            return {"path": file.name, "offset": 0, "bytes": file.bytes}
        bucket, key = split_url(file.name)
        place = {"store": self.store.store(bucket), "key": key, "etag": file.version}
        return place | {"offset": 0, "bytes": file.bytes}


def find_tables(given: Sequence[Path | str], store: ObjectStoreOptions) -> TableInput:
    """The files of paths, URLs and globs.

    Raises:
        UsageError: What cannot be input (`storage.input_places.find_input`).
    """
    sources = Sources(store, core.workers())
    return TableInput(find_input([str(each) for each in given], sources), sources, store)


def input_format(names: Sequence[str], given: str) -> str:
    """The format of all files of these names: one of `FORMATS`.

    Raises:
        UsageError: The name of one does not tell it, or those of two tell different ones.
    """
    if given != AUTO:
        if given not in FORMATS:
            known = ", ".join((AUTO, *FORMATS))
            raise core.UsageError(f"{given} is not one of {known}", setting="input_format")
        return given
    first_of = {_by_suffix(name): name for name in reversed(names)}
    first, *others = sorted(first_of, key=lambda each: (each is None, names.index(first_of[each])))
    if first is None:
        raise core.UsageError(
            f"the format of {first_of[first]} cannot be inferred from its name; specify one of "
            f"{', '.join(FORMATS)}",
            setting="input_format",
        )
    for other in others:
        what = "has a name that tells no format" if other is None else f"is {other} by its name"
        raise core.UsageError(
            f"input {first_of[other]} {what}, but {first_of[first]} is {first}; specify the files "
            "of one format, for example by a glob, or the format of all"
        )
    return first


def _by_suffix(name: str) -> str | None:
    suffix = without_suffix(Path(name)).suffix.lower()
    return next((each for each, suffixes in FORMATS.items() if suffix in suffixes), None)
