"""Text that is sorted as it is: lines, and records of CSV files.

Only the fields of the key are looked at; what each is compared as (a whole number, a number, or
bytes) is inferred from the first MiB of the first file.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

from tonnage.base import core
from tonnage.run.sort.order import ColumnOrder

if TYPE_CHECKING:
    import pyarrow as pa

    from tonnage.run.sort.csv_beginning import CsvBeginning

FieldKind = Literal["bytes", "integer", "float"]
LINE = "line"
"""The name of a line's only column."""


def lines(order: Sequence[ColumnOrder]) -> dict[str, Any]:
    """Whole lines, by their bytes.

    Raises:
        UsageError: Another column than ``line``.
    """
    for column in order:
        if column.name != LINE:
            raise core.UsageError(
                f"lines have one column, {LINE!r}, not {column.name!r}", setting="by"
            )
    return _text([_key(column, None, "bytes") for column in order], "\n", None, "", ".txt")


def delimited(
    beginning: CsvBeginning, name: str, order: Sequence[ColumnOrder]
) -> dict[str, Any] | None:
    """Records of ``csv`` or ``tsv`` files; None if a key is of a type that needs columns.

    Raises:
        UsageError: There is no such column, or the file is not of this format.
    """
    schema = beginning.schema()
    keys = []
    for column in order:
        place = beginning.place(column.name)
        kind = _field_kind(schema.field(place).type)
        if kind is None:
            return None
        keys.append(_key(column, place, kind))
    header = beginning.header.decode("utf-8", "replace")
    return _text(keys, beginning.delimiter, '"', header, f".{name}")


def _field_kind(data_type: pa.DataType) -> FieldKind | None:
    """What values are compared as, which are not decoded."""
    import pyarrow as pa

    types = pa.types
    if types.is_int64(data_type):
        return "integer"
    if types.is_floating(data_type):
        return "float"
    # These are written with as many digits always, the most significant first.
    has_digits = types.is_date(data_type) or types.is_time(data_type)
    return "bytes" if has_digits or types.is_string(data_type) else None


def _text(
    keys: list[dict[str, Any]], delimiter: str, quote: str | None, header: str, suffix: str
) -> dict[str, Any]:
    return {
        "text": {
            "keys": keys,
            "delimiter": ord(delimiter),
            "quote": None if quote is None else ord(quote),
            "header": header,
            "suffix": suffix,
        }
    }


def _key(column: ColumnOrder, place: int | None, kind: FieldKind) -> dict[str, Any]:
    return {
        "place": place,
        "kind": kind,
        "descending": column.descending,
        "nulls_first": column.nulls_first,
    }
