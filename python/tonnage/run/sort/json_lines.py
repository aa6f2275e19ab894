"""JSON lines that are sorted as they are, by members of their objects.

What a member is compared as (a string, a number, or a boolean) is inferred from the first MiB of
the first file that is not blank.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from tonnage.base import core
from tonnage.run.sort.order import ColumnOrder
from tonnage.run.sort.text import text_format

if TYPE_CHECKING:
    from tonnage.run.sort.table_input import TableInput

KINDS: dict[type, str] = {bool: "boolean", int: "decimal", float: "decimal", str: "bytes"}
"""What values are compared as."""
NAMED = {
    "boolean": "booleans",
    "decimal": "numbers",
    "bytes": "strings",
    "none": "lists or objects",
}


def json_lines(inputs: TableInput, order: Sequence[ColumnOrder]) -> dict[str, Any]:
    """Lines of JSON; ``user.id`` is the member ``id`` of the object ``user``.

    Raises:
        UsageError: There is no such member, or it has values of several kinds.
    """
    first, text = inputs.beginning()
    objects = list(_objects(text))
    keys = []
    for column in order:
        # A name may have a dot itself.
        is_name = any(column.name in each for each in objects)
        path = [column.name] if is_name else column.name.split(".")
        keys.append(
            {
                "name": column.name,
                "place": None,
                "path": path,
                "kind": _kind(first, column.name, path, objects),
                "descending": column.descending,
                "nulls_first": column.nulls_first,
            }
        )
    return text_format(keys, None, None, "", ".jsonl")


def _objects(text: str) -> Iterator[dict[str, Any]]:
    """The objects of lines; the core names those that are none."""
    for line in text.split("\n"):
        try:
            found = json.loads(line)
        except ValueError:
            continue
        if isinstance(found, dict):
            yield found


def _kind(first: str, name: str, path: list[str], objects: list[dict[str, Any]]) -> str:
    values = [_value(each, path) for each in objects]
    kinds = {KINDS.get(type(value), "none") for is_there, value in values if value is not None}
    if objects and not any(is_there for is_there, _ in values):
        names = dict.fromkeys(member for each in objects for member in each)
        raise core.UsageError(
            f"no object in the first MiB of {first} has a member {name!r}; there are "
            f"{', '.join(names)}",
            setting="by",
        )
    if len(kinds) > 1 or "none" in kinds:
        raise core.UsageError(
            f"input {first}: {name!r} has {' and '.join(sorted(NAMED[kind] for kind in kinds))}; "
            "a sort key has strings, numbers or booleans only",
            setting="by",
        )
    return next(iter(kinds), "bytes")


def _value(found: Any, path: list[str]) -> tuple[bool, Any]:
    """Whether there is a member of this path, and its value."""
    for name in path:
        if not isinstance(found, dict) or name not in found:
            return False, None
        found = found[name]
    return True, found
