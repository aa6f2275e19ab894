"""Integers in text that have more than 63 bits, which Arrow would make floats: keys would merge."""

import re
from collections.abc import Iterable

import pyarrow as pa

LONG_INTEGER = re.compile(rb"\d{19}")
"""What text has if one of its integers has more than 63 bits."""
INTEGER = re.compile(r"[+-]?\d+")
DIGITS = 38
"""Of a decimal of 128 bits."""


def integer_type(texts: Iterable[str], widest: pa.DataType) -> pa.DataType | None:
    """The type that holds these numbers exactly; ``None`` if one is no integer.

    It is ``widest`` for those of more than 38 digits.
    """
    least = most = digits = 0
    for text in texts:
        if not INTEGER.fullmatch(text):
            return None
        digits = max(digits, len(text.lstrip("+-0")))
        if digits <= DIGITS:
            least, most = min(least, int(text)), max(most, int(text))
    if digits > DIGITS:
        return widest
    fits = least >= 0 and most < 1 << 64
    return pa.uint64() if fits else pa.decimal128(DIGITS, 0)
