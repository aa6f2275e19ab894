"""Text that is sorted as it is: lines, and records of CSV files.

Only the fields of the key are looked at; what each is compared as (a whole number, a number, or
bytes) is inferred from the first MiB of the first file.
"""

import csv
import io
from collections.abc import Sequence
from typing import Any, Literal

from tonnage.base import core
from tonnage.run.formats import compression
from tonnage.run.formats.integers import INTEGER
from tonnage.run.sort.order import ColumnOrder
from tonnage.run.storage.sources import InputFile, Sources

FieldKind = Literal["bytes", "integer", "float"]
LINE = "line"
"""The name of a line's only column."""
BEGINNING_BYTES = 1 << 20
DELIMITERS = {"csv": ",", "tsv": "\t"}


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
    first: InputFile, sources: Sources, name: str, order: Sequence[ColumnOrder]
) -> dict[str, Any]:
    """Records of ``csv`` or ``tsv`` files; the first record of ``first`` names the columns.

    Raises:
        UsageError: There is no such column, or the file is not of this format.
    """
    delimiter = DELIMITERS[name]
    beginning = compression.beginning(first, sources, BEGINNING_BYTES)
    header = _header(first.name, beginning)
    names = next(csv.reader([header.decode("utf-8-sig", "replace")], delimiter=delimiter), [])
    inferred = _inferred(first.name, beginning, delimiter)
    keys = []
    for column in order:
        if names.count(column.name) != 1:
            raise core.UsageError(
                f"there is no column {column.name!r}; the columns are {', '.join(names)}"
                if column.name not in names
                else f"several columns are named {column.name!r}",
                setting="by",
            )
        kind = inferred.get(column.name, "bytes")
        if kind == "float":
            _refuse_long_integers(first.name, beginning, delimiter, column.name)
        keys.append(_key(column, names.index(column.name), kind))
    return _text(keys, delimiter, '"', header.decode("utf-8", "replace"), f".{name}")


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


def _header(first: str, beginning: bytes) -> bytes:
    line, end, _ = beginning.partition(b"\n")
    if not end or b"\0" in line:
        raise core.UsageError(f"input {first}: its first line names no columns")
    return line + end


def _inferred(first: str, beginning: bytes, delimiter: str) -> dict[str, FieldKind]:
    """What each column is compared as, by the types that PyArrow infers."""
    import pyarrow as pa
    import pyarrow.csv as pa_csv

    whole = beginning[: beginning.rfind(b"\n") + 1]
    try:
        table = pa_csv.read_csv(
            io.BytesIO(whole),
            read_options=pa_csv.ReadOptions(use_threads=False, block_size=len(whole) + 1),
            parse_options=pa_csv.ParseOptions(delimiter=delimiter, newlines_in_values=True),
        )
    except pa.ArrowInvalid as why:
        raise core.UsageError(f"input {first}: {why}") from why
    kinds: dict[str, FieldKind] = {}
    for field in table.schema:
        if pa.types.is_integer(field.type):
            kinds[field.name] = "integer"
        elif pa.types.is_floating(field.type):
            kinds[field.name] = "float"
    return kinds


def _refuse_long_integers(first: str, beginning: bytes, delimiter: str, column: str) -> None:
    """Refuse whole numbers of more than 63 bits: as floats, different ones would be equal."""
    text = beginning[: beginning.rfind(b"\n") + 1].decode("utf-8-sig", "replace")
    for row in csv.DictReader(io.StringIO(text, newline=""), delimiter=delimiter):
        value = (row[column] or "").strip()
        if INTEGER.fullmatch(value) and not -(2**63) <= int(value) < 2**63:
            raise core.UsageError(
                f"input {first}: column {column!r} has {value}, which has more than 63 bits; use "
                "Parquet, whose whole numbers may be longer",
                setting="by",
            )
