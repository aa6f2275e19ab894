"""All formats, by their names and by the ends of file names."""

import re
from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath

from tonnage.base import core
from tonnage.run.formats.arrow import Arrow
from tonnage.run.formats.csv import Csv
from tonnage.run.formats.fixed_width import FixedWidth, Npy, Records
from tonnage.run.formats.format import ChunkFormat, Format, OutputFormat
from tonnage.run.formats.json import Json
from tonnage.run.formats.lines import Lines, LineSplits
from tonnage.run.formats.parquet import Parquet
from tonnage.run.formats.splittable import SplitFormat
from tonnage.run.storage.sources import InputFile, Sources

FORMATS: list[type[Format]] = [FixedWidth, Npy, Parquet, Arrow, Csv, Json, Lines, Records]
CHUNKS = {each.NAME: each for each in FORMATS if issubclass(each, ChunkFormat)}
SPLITS = {each.NAME: each for each in FORMATS if issubclass(each, SplitFormat)}
OUTPUTS = {each.NAME: each for each in FORMATS if issubclass(each, OutputFormat)}
SPLIT_NAMES = [*(name for name in SPLITS if name != Records.NAME), "records:N"]
AUTO = "auto"


def chunk_format(name: str, dtype: str | None = None) -> ChunkFormat:
    """The format of this name for reductions; `UsageError` if unknown, or in need of a dtype."""
    if name not in CHUNKS:
        raise core.UsageError(f"{name} is not one of {', '.join(CHUNKS)}", setting="input_format")
    return CHUNKS[name](dtype)


def detect_chunk_format(
    files: Sequence[InputFile], name: str | None, dtype: str | None, sources: Sources
) -> ChunkFormat:
    """The format of files, given or by their names; `UsageError` if they differ or do not tell."""
    names = {_by_suffix(file.name, CHUNKS) or FixedWidth.NAME for file in files}
    if name is None and len(names) > 1:
        raise core.UsageError(
            f"the inputs are of several formats ({', '.join(sorted(names))}); use inputs of one "
            "format, or specify it",
            setting="input_format",
        )
    chosen = name or next(iter(names), FixedWidth.NAME)
    row = CHUNKS[chosen].row_type(files[0], sources) if files and chosen in CHUNKS else None
    return chunk_format(chosen, dtype if row is None else row)


def split_format(name: str, file_name: str, encoding: str | None = None) -> SplitFormat:
    """The format of a MapReduce's input, given or by its name; `UsageError` if neither tells.

    ``encoding`` is that of text, by default UTF-8.
    """
    choices = ", ".join(SPLIT_NAMES)
    if found := re.fullmatch(r"records:([1-9]\d{0,8})", name):
        return Records(int(found[1]))
    if name == AUTO:
        by_suffix = _by_suffix(file_name, SPLITS)
        if by_suffix is None:
            raise core.UsageError(
                f"the format of {file_name} cannot be inferred from its name; specify one of "
                f"{choices}",
                setting="input_format",
            )
        name = by_suffix
    if name not in SPLITS or name == Records.NAME:
        raise core.UsageError(
            f"{name} is not one of {AUTO}, {choices} (N bytes in a record)", setting="input_format"
        )
    format = SPLITS[name]()
    if encoding is not None:
        if not isinstance(format, LineSplits):
            raise core.UsageError(
                f"{file_name} is {name}, which is no text; omit the encoding", setting="encoding"
            )
        format.encoding = _checked_encoding(encoding)
    return format


def _checked_encoding(name: str) -> str:
    """The encoding; `UsageError` if it is unknown, or lines would not end at the byte of LF."""
    try:
        if "a\n".encode(name) == b"a\n":
            return name
    except LookupError:
        pass
    raise core.UsageError(
        f"{name} is not an encoding that contains ASCII; use one like latin-1 or cp1252",
        setting="encoding",
    )


def output_suffix(name: str) -> str:
    """How the names of parts end; `UsageError` if there is no such format."""
    if name not in OUTPUTS:
        raise core.UsageError(f"{name} is not one of {', '.join(OUTPUTS)}", setting="output_format")
    return OUTPUTS[name].OUTPUT_SUFFIX


def _by_suffix(file_name: str, formats: Mapping[str, type[Format]]) -> str | None:
    end = PurePosixPath(file_name).suffix.lower()
    return next((name for name, each in formats.items() if end and end in each.SUFFIXES), None)
