"""How text is written: its delimiter, whether it has a header, its encoding."""

import codecs
from dataclasses import dataclass
from typing import Any

from tonnage.base import core

DELIMITERS = {"csv": ",", "tsv": "\t"}
"""Formats of fields, and what is between these by default."""
WORDS = {"tab": "\t", "\\t": "\t"}
"""Words for delimiters that a shell does not like."""
NO_CHARACTER = "\N{REPLACEMENT CHARACTER}"
UTF_8 = ("utf-8", "utf-8-sig")


@dataclass(frozen=True, kw_only=True)
class Dialect:
    """How CSV and JSON are written.

    ``delimiter`` is that of the format by default; ``has_header`` tells whether the first record
    names the columns, which are ``f0``, ``f1`` and so on otherwise. ``encoding`` is that of the
    input, UTF-8 by default; output always has UTF-8.
    """

    delimiter: str | None = None
    has_header: bool = True
    encoding: str | None = None

    def delimiter_of(self, name: str) -> str:
        """The byte between fields of ``csv`` or ``tsv``.

        Raises:
            UsageError: It is not one byte, or has another meaning.
        """
        if self.delimiter is None:
            return DELIMITERS[name]
        delimiter = WORDS.get(self.delimiter, self.delimiter)
        if len(delimiter) != 1 or not delimiter.isascii() or delimiter in '"\r\n\0':
            raise core.UsageError(
                f"{self.delimiter!r} is no delimiter; use one character of ASCII, or tab",
                setting="delimiter",
            )
        return delimiter

    def output_config(self, name: str) -> str | dict[str, Any]:
        """A format of columns or text, as the core writes it.

        Raises:
            UsageError: The delimiter is none.
        """
        if name not in DELIMITERS:
            return name
        delimiter = self.delimiter_of(name)
        return {"csv": {"delimiter": ord(delimiter), "header": self.has_header}}

    def upper_half(self) -> str | None:
        """The characters of the bytes from 128 on; None for UTF-8.

        Raises:
            UsageError: The encoding is unknown, or not ASCII and one byte for each other character.
        """
        if self.encoding is None:
            return None
        try:
            codec = codecs.lookup(self.encoding)
            if codec.name in UTF_8:
                return None
            is_ascii = codec.decode(bytes(range(128)))[0] == bytes(range(128)).decode()
            characters = [_character(codec, byte) for byte in range(128, 256)]
        except (LookupError, UnicodeError, TypeError):
            is_ascii, characters = False, []
        if not is_ascii or not all(len(each) == 1 for each in characters):
            raise core.UsageError(
                f"{self.encoding} is not an encoding with one byte a character; use one like "
                "latin-1 or cp1252, or convert the files to UTF-8",
                setting="encoding",
            )
        return "".join(characters)


def _character(codec: codecs.CodecInfo, byte: int) -> str:
    """The character of a byte; none if more bytes belong to it."""
    if codec.incrementaldecoder is None:
        return ""
    try:
        return codec.incrementaldecoder().decode(bytes([byte]))
    except UnicodeDecodeError:
        return NO_CHARACTER
