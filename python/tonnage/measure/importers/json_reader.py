"""JSON as tools write it, and a way through it that names the place of whatever is not as expected.

Warnings ahead of a document, several documents in one file and duplicate keys (the last counts)
are all met in the field.
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
_SHORTEST_KEY_LIST = 5


class JsonValue:
    """A value of a JSON document and its path (``$.jobs[0].read``)."""

    def __init__(self, value: Any, path: str = "$") -> None:
        self.value, self.path = value, path

    def __contains__(self, name: str) -> bool:
        return isinstance(self.value, dict) and name in self.value

    def get(self, name: str) -> JsonValue | None:
        """A member of an object, or None where there is none or it is null."""
        members = self.object()
        return self._member(name) if members.get(name) is not None else None

    def member(self, *names: str) -> JsonValue:
        """A member of an object of objects, which must be there."""
        node = self
        for name in names:
            if name not in node.object():
                raise UnreadableFile(f'a member "{name}"', node.path)
            node = node._member(name)
        return node

    def object(self) -> dict[str, Any]:
        """The value, which must be an object."""
        if not isinstance(self.value, dict):
            raise UnreadableFile("an object", self.path)
        return self.value

    def members(self) -> Iterator[tuple[str, JsonValue]]:
        """An object's members."""
        for name in self.object():
            yield name, self._member(name)

    def items(self) -> list[JsonValue]:
        """A list's values."""
        if not isinstance(self.value, list):
            raise UnreadableFile("a list", self.path)
        return [JsonValue(value, f"{self.path}[{at}]") for at, value in enumerate(self.value)]

    def text(self) -> str:
        """The value, which must be a string."""
        if not isinstance(self.value, str):
            raise UnreadableFile("a string", self.path)
        return self.value.encode(errors="replace").decode()

    def number(self) -> float:
        """The value, which must be a finite number of zero or more; in quotes it counts too."""
        value = self.value
        if isinstance(value, str) and NUMBER.fullmatch(value.strip()):
            value = float(value)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise UnreadableFile("a number", self.path)
        if not 0 <= value < _LARGEST * 1e3 or not math.isfinite(value):
            raise UnreadableFile("a number of zero or more", self.path)
        return float(value)

    def integer(self) -> int:
        """The value, which must be a whole number of zero or more."""
        number = self.number()
        exact = self.value if isinstance(self.value, int) else int(number)
        if (exact != number and not isinstance(self.value, int)) or exact >= _LARGEST:
            raise UnreadableFile("a whole number", self.path)
        return exact

    def text_members(self) -> dict[str, str]:
        """An object of scalars, as texts."""
        return {
            name: str(node.value) if isinstance(node.value, int | float) else node.text()
            for name, node in self.members()
        }

    def optional_number(self, name: str) -> float | None:
        """The number that a member holds, or None without one."""
        node = self.get(name)
        return None if node is None else node.number()

    def optional_int(self, name: str) -> int | None:
        """The whole number that a member holds, or None without one."""
        node = self.get(name)
        return None if node is None else node.integer()

    def optional_text(self, name: str) -> str | None:
        """The string that a member holds, or None without one."""
        node = self.get(name)
        return None if node is None else node.text()

    def _member(self, name: str) -> JsonValue:
        plain = re.fullmatch(r"[\w-]+", name)
        return JsonValue(
            self.object()[name], f"{self.path}.{name}" if plain else f'{self.path}["{name}"]'
        )


def document_start(text: str, after: int = 0) -> int | None:
    """Where a JSON document may begin: at a brace that opens a line."""
    found = _BEGINNING.search(text, after)
    return found.end() if found else None


def parse_documents(text: str) -> list[JsonValue]:
    """The JSON documents of a text, whatever stands before, between and behind them.

    Raises:
        Unreadable: A document is not whole, or what opens with a brace is no JSON.
    """
    decoder = json.JSONDecoder()
    found: list[JsonValue] = []
    start = document_start(text)
    while start is not None:
        try:
            value, end = decoder.raw_decode(text, start)
        except json.JSONDecodeError as why:
            where = f"line {why.lineno} column {why.colno}"
            raise UnreadableFile(f"whole JSON ({why.msg})", where) from None
        except RecursionError:
            raise UnreadableFile("JSON of a reasonable depth") from None
        except ValueError:  # An integer of thousands of digits.
            raise UnreadableFile("JSON with numbers of a reasonable length") from None
        found.append(JsonValue(value, f"document {len(found) + 1}: $" if found else "$"))
        start = document_start(text, end)
    return found


def describe(node: JsonValue) -> str:
    """What a document is that no importer knows, by its first keys."""
    if not isinstance(node.value, dict):
        return "a JSON " + ("list" if isinstance(node.value, list) else "value")
    keys = ", ".join(list(node.value)[:_SHORTEST_KEY_LIST])
    return f"JSON with the keys {keys}" if keys else "an empty JSON object"
