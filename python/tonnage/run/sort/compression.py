"""How files of a sort's output are compressed: a codec that their format has, and its level."""

import re
from typing import Any

from tonnage.base import core

CODECS = {
    "parquet": ("none", "snappy", "zstd", "lz4", "gzip", "brotli"),
    "arrow": ("none", "lz4", "zstd"),
    "text": ("none", "gzip", "zstd", "bzip2"),
}
"""Codecs of each format of the output."""
LEVELS = {
    "parquet": ("zstd", "gzip", "brotli"),
    "arrow": (),
    "text": ("gzip", "zstd", "bzip2"),
}
"""Codecs that have levels from 1 to 9 there."""
_PATTERN = re.compile(r"([a-z0-9]+)(?::([1-9]))?")


def parse_compression(text: str | None, output_format: str) -> dict[str, Any] | None:
    """Reads ``zstd`` or ``zstd:9`` for the core; `None`, the format's default, stays so.

    Raises:
        UsageError: The format has no such codec or level.
    """
    if text is None:
        return None
    codecs, levels = CODECS[output_format], LEVELS[output_format]
    found = _PATTERN.fullmatch(text)
    if found is None or found[1] not in codecs or (found[2] and found[1] not in levels):
        with_levels = ", ".join(levels)
        if with_levels:
            with_levels = f"; {with_levels} with a level of 1 to 9, too, as zstd:9"
        raise core.UsageError(
            f"{text} is no compression of {output_format}; use one of {', '.join(codecs)}"
            f"{with_levels}",
            setting="compression",
        )
    return {"codec": found[1], "level": None if found[2] is None else int(found[2])}
