"""Which format files are of."""

from __future__ import annotations

import os
from collections.abc import Sequence

from tonnage.base import core
from tonnage.run.formats.arrow import Arrow
from tonnage.run.formats.fixed_width import FixedWidth, Npy
from tonnage.run.formats.format import Format
from tonnage.run.formats.lines import Csv, Json
from tonnage.run.formats.parquet import Parquet
from tonnage.run.storage.sources import InputFile, Sources

KINDS: dict[str, type[Format]] = {
    each.NAME: each for each in (FixedWidth, Npy, Parquet, Arrow, Csv, Json)
}
SUFFIXES = {
    ".arrow": "arrow",
    ".csv": "csv",
    ".feather": "arrow",
    ".ipc": "arrow",
    ".json": "json",
    ".jsonl": "json",
    ".ndjson": "json",
    ".npy": "npy",
    ".parquet": "parquet",
}
"""What a file is by the end of its name; any other is rows, of which --dtype says the type."""


def format_named(name: str, dtype: str | None = None) -> Format:
    """The format of a name, with what a row is.

    Raises:
        UsageError: There is none of the name, or its rows have no type.
    """
    if name not in KINDS:
        raise core.UsageError(f"--input-format {name}: there are {', '.join(KINDS)}")
    return KINDS[name](dtype)


def format_of(
    files: Sequence[InputFile], name: str | None, dtype: str | None, sources: Sources
) -> Format:
    """What files are: as is said, or as the ends of their names tell, and the first of them says.

    Raises:
        UsageError: They are several things, or what their rows are is not known.
    """
    ends = {os.path.splitext(file.name)[1] for file in files}
    told = {SUFFIXES.get(end.lower(), "rows") for end in ends}
    if name is None and len(told) > 1:
        raise core.UsageError(
            f"the inputs are {', '.join(sorted(told))}: give those of one format, or --input-format"
        )
    wanted = name or next(iter(told), "rows")
    row = KINDS[wanted].row_of(files[0], sources) if files and wanted in KINDS else None
    return format_named(wanted, dtype if row is None else row)
