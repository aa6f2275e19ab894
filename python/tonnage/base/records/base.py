"""What every record has: a schema, JSON, and a file that is whole or not there."""

from __future__ import annotations

import dataclasses
import json
import types
import typing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Self

from tonnage.base.records.io import write_atomically


class RecordError(Exception):
    """A file that is no artifact, or one of a version that this Tonnage does not know."""


@dataclass(frozen=True, kw_only=True)
class Record:
    """A record with a schema. Subclasses name theirs and declare their fields."""

    SCHEMA: ClassVar[str]

    def to_json(self) -> dict[str, Any]:
        """The record as JSON values, its schema first."""
        return {"schema": self.SCHEMA, **_plain(self)}

    def write(self, path: Path) -> Path:
        """Writes the record to ``path``, whole or not at all."""
        write_atomically(path, json.dumps(self.to_json(), indent=1).encode() + b"\n")
        return path

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> Self:
        """The record in ``values``.

        Raises:
            RecordError: The values have another schema, or lack a field of this one.
        """
        schema = values.get("schema") if isinstance(values, dict) else None
        if schema != cls.SCHEMA:
            raise RecordError(f"expected {cls.SCHEMA}, found {schema!r}")
        try:
            artifact: Self = _build(cls, values)
        except TypeError as why:
            raise RecordError(f"no whole {cls.SCHEMA}: {why}") from why
        return artifact

    @classmethod
    def read(cls, path: Path) -> Self:
        """The record that ``path`` holds.

        Raises:
            RecordError: The file is not JSON, has another schema, or lacks a field; the message
                names it.
            OSError: It cannot be read.
        """
        try:
            values = json.loads(path.read_bytes())
        except ValueError as why:
            raise RecordError(f"{path} is not JSON: {why}") from why
        try:
            return cls.from_json(values)
        except RecordError as why:
            raise RecordError(f"{path}: {why}") from why


def _plain(value: Any) -> Any:
    """A record's values as JSON has them.

    `dataclasses.asdict` would copy each single value, which takes most of its time.
    """
    if isinstance(value, (list, tuple)):
        return [_plain(each) for each in value]
    if isinstance(value, dict):
        return {name: _plain(each) for name, each in value.items()}
    if dataclasses.is_dataclass(value):
        return {name: _plain(each) for name, each in vars(value).items()}
    return value


def _build(kind: Any, values: Any) -> Any:
    """``values`` as the declared type ``kind``; fields that it does not know are left out."""
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin in (typing.Union, types.UnionType):
        some = next(argument for argument in arguments if argument is not types.NoneType)
        return None if values is None else _build(some, values)
    if origin is list:
        return [_build(arguments[0], value) for value in values]
    if origin is tuple:
        return tuple(values)
    if isinstance(kind, type) and dataclasses.is_dataclass(kind):
        hints = typing.get_type_hints(kind)
        names = [known.name for known in dataclasses.fields(kind) if known.name in values]
        return kind(**{name: _build(hints[name], values[name]) for name in names})
    return values
