"""Text that is sorted as it is: lines, and records of CSV files.

Only the fields of the key are looked at; what each column of a CSV file is compared as (a whole
number, a number, a date, a time, a timestamp, or bytes) is inferred from the first MiB of the first
file.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

from tonnage.base import core
from tonnage.run.sort.order import ColumnOrder

if TYPE_CHECKING:
    from tonnage.run.sort.csv_beginning import CsvBeginning

FieldKind = (
    Literal["bytes", "integer", "float", "decimal", "date", "time"]
    | dict[Literal["timestamp"], dict[str, bool]]
)
LINE = "line"
"""The name of a whole line."""
_FIELD = re.compile(rf"({LINE}|[1-9][0-9]{{0,5}})(:numeric)?")


def lines(order: Sequence[ColumnOrder], delimiter: str | None) -> dict[str, Any]:
    """Lines, by all of their bytes (``line``) or by fields (``2``, from 1 on).

    Fields are between delimiters, or without one between blanks. A field ``:numeric`` is compared
    as the number that it begins with, 0 without one. A field that a line lacks is empty.

    Raises:
        UsageError: Something else is named.
    """
    keys = []
    for column in order:
        field = _FIELD.fullmatch(column.name)
        if field is None or column.nulls_first:
            raise core.UsageError(
                f"lines are sorted by {LINE!r}, or by numbers of fields such as 2 or 2:numeric, "
                f"not by {column.name!r}{' with nulls' if column.nulls_first else ''}",
                setting="by",
            )
        kind: FieldKind = "decimal" if field[2] else "bytes"
        key = _key(column, None if field[1] == LINE else int(field[1]) - 1, kind)
        keys.append(key | {"nulls_first": not column.descending})
    return text_format(keys, delimiter, None, "", ".txt")


def delimited(
    beginning: CsvBeginning, name: str, order: Sequence[ColumnOrder]
) -> dict[str, Any] | None:
    """Records of ``csv`` or ``tsv`` files; None if a key can only be compared as a column.

    Raises:
        UsageError: There is no such column, or the file is not of this format.
    """
    keys = []
    for column in order:
        place = beginning.place(column.name)
        kind = _field_kind(beginning.types[place])
        if kind is None:
            return None
        keys.append(_key(column, place, kind))
    header = beginning.header.decode("utf-8", "replace")
    config = text_format(keys, beginning.delimiter, '"', header, f".{name}")
    config["text"]["columns"] = len(beginning.names)
    return config


def _field_kind(data_type: str) -> FieldKind | None:
    """What values are compared as, which are not decoded."""
    if data_type.startswith("timestamp["):
        has_fractions = data_type.startswith("timestamp[ns")
        return {"timestamp": {"has_fractions": has_fractions, "has_zone": "tz=" in data_type}}
    kinds: dict[str, FieldKind] = {
        "int64": "integer",
        "double": "float",
        "date32[day]": "date",
        "time32[s]": "time",
        "string": "bytes",
        "binary": "bytes",
    }
    return kinds.get(data_type)


def text_format(
    keys: list[dict[str, Any]], delimiter: str | None, quote: str | None, header: str, suffix: str
) -> dict[str, Any]:
    """The core's configuration of text; without a delimiter fields are between blanks."""
    return {
        "text": {
            "keys": keys,
            "delimiter": None if delimiter is None else ord(delimiter),
            "quote": None if quote is None else ord(quote),
            "header": header,
            "suffix": suffix,
        }
    }


def _key(column: ColumnOrder, place: int | None, kind: FieldKind) -> dict[str, Any]:
    return {
        "name": column.name,
        "place": place,
        "kind": kind,
        "descending": column.descending,
        "nulls_first": column.nulls_first,
    }
