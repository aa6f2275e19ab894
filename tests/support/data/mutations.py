"""One wrong value at a time in a JSON document, and what the document's type says of that place."""

from __future__ import annotations

import copy
import json
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from msgspec import inspect

HUGE = (1e300, 2**70)
"""Seconds, bytes: more than there ever were."""
NOT_FINITE = (math.nan, math.inf)

Path = tuple[str | int, ...]


@dataclass(frozen=True)
class Mutation:
    """A document with one wrong value."""

    what: str
    path: Path
    document: Any

    @property
    def name(self) -> str:
        return f"{self.what} at {shown(self.path)}"


def shown(path: Path) -> str:
    """The path as errors have it."""
    text = "$"
    for each in path:
        if isinstance(each, int):
            text += f"[{each}]"
        else:
            plain = re.fullmatch(r"[A-Za-z_][A-Za-z0-9_-]*", each)
            text += f".{each}" if plain else f"[{json.dumps(each)}]"
    return text


def mutations(document: Any) -> Iterator[Mutation]:
    """All of a document; of lists that are alike in all but numbers only one entry counts."""
    done: set[tuple[Any, ...]] = set()
    for path, value in _values(document, ()):
        shape = tuple("*" if isinstance(each, int) else each for each in path), type(value)
        if shape in done or not path:
            continue
        done.add(shape)
        for what, wrong in _wrong(value):
            yield Mutation(what, path, _with(document, path, wrong))
        if isinstance(path[-1], str):
            yield Mutation("deleted", path, _without(document, path))
        if isinstance(value, dict):
            added = (*path, "no_such_field")
            yield Mutation("added", added, _with(document, added, 1))
    if isinstance(document, dict):
        yield Mutation("added", ("no_such_field",), document | {"no_such_field": 1})


def _wrong(value: Any) -> Iterator[tuple[str, Any]]:
    yield "type", {str: 17, dict: [], list: {}, bool: "yes"}.get(type(value), "many")
    yield "type", [value]
    if value is not None:
        yield "null", None
    if isinstance(value, int | float) and not isinstance(value, bool):
        yield "sign", -value if value else -1
        yield from (("huge", each) for each in HUGE)
        yield from (("not finite", each) for each in NOT_FINITE)
        if isinstance(value, int):
            yield "part", value + 0.5


def _values(value: Any, path: Path) -> Iterator[tuple[Path, Any]]:
    yield path, value
    if isinstance(value, dict):
        for name, each in value.items():
            yield from _values(each, (*path, name))
    elif isinstance(value, list):
        for at, each in enumerate(value):
            yield from _values(each, (*path, at))


def _with(document: Any, path: Path, value: Any) -> Any:
    """A copy, of what lies on the path alone."""
    if not path:
        return value
    changed = copy.copy(document)
    changed[path[0]] = _with(document[path[0]] if len(path) > 1 else None, path[1:], value)
    return changed


def _without(document: Any, path: Path) -> Any:
    changed = copy.copy(document)
    if len(path) == 1:
        del changed[path[0]]
    else:
        changed[path[0]] = _without(document[path[0]], path[1:])
    return changed


def types_at(kind: inspect.Type, path: Path) -> list[inspect.Type]:
    """The types that a value at this place of a document may have; none: there is no such place."""
    kinds = list(kind.types) if isinstance(kind, inspect.UnionType) else [kind]
    if not path:
        return kinds
    found: list[inspect.Type] = []
    for each in kinds:
        match each:
            case inspect.AnyType():
                found.append(each)
            case inspect.StructType():
                fields = {field.encode_name: field.type for field in each.fields}
                if path[0] in fields:
                    found += types_at(fields[str(path[0])], path[1:])
            case inspect.DictType():
                found += types_at(each.value_type, path[1:])
            case inspect.ListType():
                found += types_at(each.item_type, path[1:])
            case inspect.TupleType():
                found += types_at(each.item_types[int(path[0])], path[1:])
    return found
