"""Compressed text: which codec a file has, and the beginning of its text."""

from typing import Literal

import pyarrow as pa

from tonnage.base import core
from tonnage.run.formats.lines import COMPRESSED
from tonnage.run.storage.sources import InputFile, Sources
from tonnage.run.storage.suffixes import SUFFIXES

_ARROW_NAMES: dict[str, Literal["gzip", "zstd", "bz2"]] = {
    "gzip": "gzip",
    "zstd": "zstd",
    "bzip2": "bz2",
}
_MAGIC_BYTES = 16
_STEP_BYTES = 64 << 10


def codec_of(file: InputFile, sources: Sources) -> str | None:
    """The codec that a file begins with; its name tells nothing.

    Raises:
        UsageError: Text of this codec is not read.
    """
    with sources.open(file) as opened:
        magic = opened.read(_MAGIC_BYTES)
    codec = next((name for name, pattern in COMPRESSED.items() if pattern.match(magic)), None)
    if codec is not None and codec not in SUFFIXES:
        raise core.UsageError(
            f"input {file.name} is compressed with {codec}; decompress it, or use one of "
            f"{', '.join(SUFFIXES)}"
        )
    return codec


def beginning(file: InputFile, sources: Sources, size: int) -> bytes:
    """The first ``size`` bytes of a file's text, whether it is compressed or not.

    Raises:
        UsageError: It cannot be decompressed.
    """
    codec = codec_of(file, sources)
    if codec is None:
        with sources.open(file) as opened:
            return opened.read(size)
    text = b""
    with pa.CompressedInputStream(sources.arrow(file), _ARROW_NAMES[codec]) as stream:
        while len(text) < size:
            try:
                step = stream.read(min(_STEP_BYTES, size - len(text)))
            except OSError as why:
                if text:  # The reader of the whole file reports what is wrong behind the beginning.
                    break
                raise core.UsageError(f"input {file.name} cannot be decompressed: {why}") from why
            if not step:
                break
            text += step
    return text
