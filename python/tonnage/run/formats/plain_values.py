"""Columns as values that JSON has: numbers, texts, lists and objects.

Moments are ISO 8601 (RFC 3339 up to year 9999), from Arrow's integers: Python's own types have no
nanoseconds, and no year beyond 9999. Bytes are Base64. NaN and infinities, which JSON lacks, are
null.
"""

import base64
import math
from typing import Any

import numpy as np
import pyarrow as pa

UNITS_IN_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}


def plain_values(column: Any) -> list[Any]:
    """The values of an Arrow column; ``None`` for nulls."""
    kind, types = column.type, pa.types
    if types.is_temporal(kind) and not types.is_interval(kind):
        return _moments(column)
    if types.is_struct(kind):
        fields = [plain_values(each) for each in column.flatten()]
        names = [field.name for field in kind]
        rows = [dict(zip(names, row, strict=True)) for row in zip(*fields, strict=True)]
        return _with_nulls(column, rows or [{}] * len(column))
    if types.is_map(kind):  # As pairs, since its keys need not be texts.
        pair = pa.struct([("key", kind.key_type), ("value", kind.item_type)])
        lists = plain_values(column.cast(pa.list_(pair)))
        return [each and [[*one.values()] for one in each] for each in lists]
    if types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        inner = iter(plain_values(column.flatten()))
        lengths = column.value_lengths().to_pylist()
        return [None if size is None else [next(inner) for _ in range(size)] for size in lengths]
    return [_plain(each) for each in column.to_pylist()]


def _plain(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    is_plain = value is None or isinstance(value, (bool, int, float, str))
    return value if is_plain else str(value)


def _with_nulls(column: Any, values: list[Any]) -> list[Any]:
    if not column.null_count:
        return values
    valid = column.is_valid().to_pylist()
    return [value if is_valid else None for value, is_valid in zip(values, valid, strict=True)]


def _moments(column: Any) -> list[Any]:
    kind = column.type
    numbers = column.view(pa.int64() if kind.bit_width == 64 else pa.int32()).fill_null(0)
    counts = numbers.to_numpy(zero_copy_only=False).astype(np.int64)
    if pa.types.is_duration(kind):
        texts = [_duration(count, UNITS_IN_SECOND[kind.unit]) for count in counts.tolist()]
    elif pa.types.is_date32(kind):
        texts = _iso(counts, "D")
    elif pa.types.is_date64(kind):
        texts = _iso(counts // 86_400_000, "D")
    elif pa.types.is_time(kind):
        texts = [each.partition("T")[2] for each in _iso(counts, kind.unit)]
    else:
        zone = "" if kind.tz is None else "Z"  # Arrow counts in UTC, whichever the zone.
        texts = [each + zone for each in _iso(counts, kind.unit)]
    return _with_nulls(column, texts)


def _iso(counts: Any, unit: str) -> list[str]:
    """Moments since 1970, with a fraction of seconds unless it is 0."""
    texts: list[str] = np.datetime_as_string(counts.view(f"M8[{unit}]")).tolist()
    if unit not in ("D", "s"):
        ends = np.flatnonzero(counts % UNITS_IN_SECOND[unit] == 0)
        for place in ends.tolist():
            texts[place] = texts[place].partition(".")[0]
    # ISO 8601 has signs before years of more than four digits.
    return [f"+{each}" if each.find("-") > 4 else each for each in texts]


def _duration(count: int, in_second: int) -> str:
    seconds, rest = divmod(abs(count), in_second)
    fraction = f".{rest:0{len(str(in_second)) - 1}}" if rest else ""
    return f"{'-' if count < 0 else ''}PT{seconds}{fraction}S"
