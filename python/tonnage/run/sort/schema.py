"""Schemas as text: ``user:int64,amount:decimal(10,2)``, with types by the names PyArrow prints.

A parser by recursive descent: what is between ``<`` and ``>`` is again a type, or are fields.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tonnage.base import core

if TYPE_CHECKING:
    import pyarrow as pa

NAME = re.compile(
    r'\s*(?:"((?:[^"]|"")+)"|([^\s:,"<>()\[\]](?:[^:,"<>()\[\]]*[^\s:,"<>()\[\]])?))\s*'
)
"""A name is quoted if it has a colon, a comma or a bracket."""
WORD = re.compile(r"\s*([a-z][a-z0-9_]*)\s*")
TIMESTAMP = re.compile(r"\s*timestamp\s*\[\s*(s|ms|us|ns)\s*(?:,\s*tz\s*=\s*([^\],\s]+)\s*)?\]\s*")
UNIT = re.compile(r"\s*\[\s*(day|s|ms|us|ns)\s*\]\s*")
NUMBER = re.compile(r"\s*(-?\d{1,9})\s*")
DICTIONARY = re.compile(r"\s*values\s*=")
INDICES = re.compile(r"\s*,\s*indices\s*=")
ORDERED = re.compile(r"\s*,\s*ordered\s*=\s*([01])\s*")
DECIMAL128_DIGITS = 38
NOT_NULL = re.compile(r"\s*not null\s*")


def parse_schema(text: str) -> pa.Schema:
    """Reads ``NAME:TYPE,...``.

    Types are those that PyArrow prints or has as an alias (``int64``, ``timestamp[ms, tz=UTC]``,
    ``decimal128(10, 2)``, ``struct<a: int64>``), and, shorter, ``decimal(10,2)``, ``list<int64>``.

    Raises:
        UsageError: It is no schema, or a column is named twice.
    """
    import pyarrow as pa

    parser = _Parser(text)
    try:
        fields = parser.fields()
        parser.end()
    except pa.ArrowException as why:
        raise parser.refusal(str(why)) from why
    names = [field.name for field in fields]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise core.UsageError(f"the column {twice!r} is named twice", setting="schema")
    return pa.schema(fields)


def schema_message(schema: pa.Schema) -> str:
    """The schema as the core takes it: Arrow's IPC message, in Base64."""
    return base64.b64encode(schema.serialize()).decode()


def read_schema(message: str) -> pa.Schema:
    """The schema of such a message."""
    import pyarrow as pa

    return pa.ipc.read_schema(pa.py_buffer(base64.b64decode(message)))


class _Parser:
    def __init__(self, text: str) -> None:
        import pyarrow

        self._arrow: Any = pyarrow
        self._text = text
        self._at = 0

    def fields(self) -> list[Any]:
        fields = [self._field()]
        while self._takes(","):
            fields.append(self._field())
        return fields

    def end(self) -> None:
        if self._at < len(self._text):
            raise self.refusal("unexpected text")

    def refusal(self, why: str) -> core.UsageError:
        rest = self._text[self._at :].strip()
        where = f" at {rest!r}" if rest else ""
        return core.UsageError(
            f"{self._text!r} is no schema{where}: {why}; write NAME:TYPE,... with types such as "
            "int64, string, timestamp[ms] or decimal(10,2)",
            setting="schema",
        )

    def _field(self) -> Any:
        name = self._match(NAME, "a column's name is missing")
        self._expect(":")
        data_type = self._type()
        may_be_null = self._takes_match(NOT_NULL) is None
        quoted = name[1]
        return self._arrow.field(
            name[2] if quoted is None else quoted.replace('""', '"'), data_type, may_be_null
        )

    def _type(self) -> Any:
        if moment := self._takes_match(TIMESTAMP):
            return self._arrow.timestamp(moment[1], moment[2])
        begin = self._at
        word: str = self._match(WORD, "a type is missing")[1]
        nested = {
            "list": self._list(self._arrow.list_),
            "large_list": self._list(self._arrow.large_list),
            "list_view": self._list(self._arrow.list_view),
            "large_list_view": self._list(self._arrow.large_list_view),
            "fixed_size_list": self._fixed_size_list,
            "struct": lambda: self._arrow.struct(self.fields()),
            "map": self._map,
            "dictionary": self._dictionary,
        }.get(word)
        if nested is not None:
            self._expect("<")
            data_type = nested()
            if word != "fixed_size_list":
                self._expect(">")
            return data_type
        if word in ("decimal", "decimal32", "decimal64", "decimal128", "decimal256"):
            return self._decimal(word)
        if word == "fixed_size_binary":
            return self._arrow.binary(self._length())
        unit = self._takes_match(UNIT)
        try:
            return self._arrow.type_for_alias(word if unit is None else f"{word}[{unit[1]}]")
        except ValueError as why:
            self._at = begin
            raise self.refusal("there is no such type") from why

    def _list(self, of: Callable[[Any], Any]) -> Callable[[], Any]:
        return lambda: of(self._item())

    def _fixed_size_list(self) -> Any:
        item = self._item()
        self._expect(">")
        return self._arrow.list_(item, self._length())

    def _item(self) -> Any:
        """The items of a list: ``item: int64``, or only their type."""
        begin = self._at
        name = self._takes_match(NAME)
        is_named = name is not None and self._takes(":")
        self._at = begin
        return self._field() if is_named else self._arrow.field("item", self._type())

    def _map(self) -> Any:
        key = self._type()
        self._expect(",")
        return self._arrow.map_(key, self._type())

    def _dictionary(self) -> Any:
        self._match(DICTIONARY, "the type of values is missing")
        values = self._type()
        self._match(INDICES, "the type of indices is missing")
        indices = self._type()
        is_ordered = self._takes_match(ORDERED)
        return self._arrow.dictionary(
            indices, values, is_ordered is not None and is_ordered[1] == "1"
        )

    def _decimal(self, word: str) -> Any:
        self._expect("(")
        digits = int(self._match(NUMBER, "the number of digits is missing")[1])
        scale = int(self._match(NUMBER, "the scale is missing")[1]) if self._takes(",") else 0
        self._expect(")")
        if word == "decimal":
            word = "decimal128" if digits <= DECIMAL128_DIGITS else "decimal256"
        try:
            decimal: Any = getattr(self._arrow, word)(digits, scale)
        except ValueError as why:
            raise self.refusal(str(why)) from why
        return decimal

    def _length(self) -> int:
        self._expect("[")
        length = int(self._match(NUMBER, "a length is missing")[1])
        self._expect("]")
        if length < 0:
            raise self.refusal("a length is below 0")
        return length

    def _expect(self, mark: str) -> None:
        if not self._takes(mark):
            raise self.refusal(f"{mark!r} is missing")

    def _takes(self, mark: str) -> bool:
        rest = self._text[self._at :]
        is_there = rest.lstrip().startswith(mark)
        if is_there:
            self._at += rest.index(mark) + len(mark)
        return is_there

    def _match(self, pattern: re.Pattern[str], why: str) -> re.Match[str]:
        found = self._takes_match(pattern)
        if found is None:
            raise self.refusal(why)
        return found

    def _takes_match(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        found = pattern.match(self._text, self._at)
        if found is not None:
            self._at = found.end()
        return found
