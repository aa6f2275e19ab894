"""Read JSON as tools write it, with the path of anything unexpected in error messages.

Real files have warnings before a document, several documents in one file, and duplicate keys (the
last one counts).
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from typing import Any

from tonnage.measure.importers.metric import UnreadableFile
from tonnage.measure.importers.text import NUMBER

_BEGINNING = re.compile(r"^[ \t]*(?={)", re.MULTILINE)
_LARGEST = 1 << 63
_SHOWN_KEYS = 5


class JsonValue:
    """A value of a JSON document and its path (``$.jobs[0].read``)."""

    def __init__(self, value: Any, path: str = "$") -> None:
        self.value, self.path = value, path

    def __contains__(self, name: str) -> bool:
        return isinstance(self.value, dict) and name in self.value

    def get(self, name: str) -> JsonValue | None:
        """A member of an object, or None if it is missing or null."""
        members = self.object()
        return self._member(name) if members.get(name) is not None else None

    def member(self, *names: str) -> JsonValue:
        value = self
        for name in names:
            if name not in value.object():
                raise UnreadableFile(f'a member "{name}"', value.path)
            value = value._member(name)
        return value

    def object(self) -> dict[str, Any]:
        if not isinstance(self.value, dict):
            raise UnreadableFile("an object", self.path)
        return self.value

    def members(self) -> Iterator[tuple[str, JsonValue]]:
        for name in self.object():
            yield name, self._member(name)

    def items(self) -> list[JsonValue]:
        if not isinstance(self.value, list):
            raise UnreadableFile("a list", self.path)
        return [JsonValue(value, f"{self.path}[{at}]") for at, value in enumerate(self.value)]

    def text(self) -> str:
        if not isinstance(self.value, str):
            raise UnreadableFile("a string", self.path)
        return self.value.encode(errors="replace").decode()

    def number(self) -> float:
        """The value, if it is a finite number of zero or more, perhaps in quotes."""
        value = self.value
        if isinstance(value, str) and NUMBER.fullmatch(value.strip()):
            value = float(value)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise UnreadableFile("a number", self.path)
        if not 0 <= value < _LARGEST * 1e3 or not math.isfinite(value):
            raise UnreadableFile("a number of zero or more", self.path)
        return float(value)

    def integer(self) -> int:
        """The value, if it is a whole number of zero or more."""
        number = self.number()
        exact = self.value if isinstance(self.value, int) else int(number)
        if (exact != number and not isinstance(self.value, int)) or exact >= _LARGEST:
            raise UnreadableFile("a whole number", self.path)
        return exact

    def text_members(self) -> dict[str, str]:
        return {
            name: str(node.value) if isinstance(node.value, int | float) else node.text()
            for name, node in self.members()
        }

    def optional_number(self, name: str) -> float | None:
        value = self.get(name)
        return None if value is None else value.number()

    def optional_int(self, name: str) -> int | None:
        value = self.get(name)
        return None if value is None else value.integer()

    def optional_text(self, name: str) -> str | None:
        value = self.get(name)
        return None if value is None else value.text()

    def _member(self, name: str) -> JsonValue:
        plain = re.fullmatch(r"[\w-]+", name)
        return JsonValue(
            self.object()[name], f"{self.path}.{name}" if plain else f'{self.path}["{name}"]'
        )


def document_start(text: str, after: int = 0) -> int | None:
    """Where a JSON document may start: at a brace that opens a line."""
    match = _BEGINNING.search(text, after)
    return match.end() if match else None


def parse_documents(text: str) -> list[JsonValue]:
    """The JSON documents in a text, whatever is around them; `UnreadableFile` if incomplete."""
    decoder = json.JSONDecoder()
    result: list[JsonValue] = []
    start = document_start(text)
    while start is not None:
        try:
            value, end = decoder.raw_decode(text, start)
        except json.JSONDecodeError as why:
            where = f"line {why.lineno} column {why.colno}"
            raise UnreadableFile(f"complete JSON ({why.msg})", where) from None
        except RecursionError:
            raise UnreadableFile("less deeply nested JSON") from None
        except ValueError:  # An integer with thousands of digits.
            raise UnreadableFile("JSON with shorter numbers") from None
        result.append(JsonValue(value, f"document {len(result) + 1}: $" if result else "$"))
        start = document_start(text, end)
    return result


def describe(document: JsonValue) -> str:
    if not isinstance(document.value, dict):
        return "a JSON " + ("list" if isinstance(document.value, list) else "value")
    keys = ", ".join(list(document.value)[:_SHOWN_KEYS])
    return f"JSON with the keys {keys}" if keys else "an empty JSON object"
