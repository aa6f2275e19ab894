"""How names of compressed files end."""

from pathlib import Path

SUFFIXES = {"gzip": ".gz", "zstd": ".zst", "bzip2": ".bz2"}
"""Codecs of text, and how names of files compressed with them end."""


def without_suffix(file: Path) -> Path:
    """The name without the suffix of a codec: ``a.csv`` of ``a.csv.gz``."""
    return file.with_suffix("") if file.suffix.lower() in SUFFIXES.values() else file
