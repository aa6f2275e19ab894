"""What every record has: a schema, JSON that is checked when it is read, and an atomic write.

msgspec checks each value's type and range; a mistake is one line that names the place in the file,
what belongs there and what is there: ``$.candidates[0].nodes: expected int >= 1, got "many"``.
"""

import codecs
import json
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar, Self, TypeVar

import msgspec

from tonnage.base.records.io import read_regular, write_atomically

Count = Annotated[int, msgspec.Meta(ge=0, le=2**62)]
PositiveCount = Annotated[int, msgspec.Meta(ge=1, le=2**62)]
Level = Annotated[int, msgspec.Meta(ge=-(2**62), le=2**62)]  # A whole number that may be negative
Amount = Annotated[float, msgspec.Meta(ge=0, le=1e21)]
"""Bytes, dollars, or one of them for each of another."""
Seconds = Annotated[float, msgspec.Meta(ge=0, le=1e11)]
SignedSeconds = Annotated[float, msgspec.Meta(ge=-1e11, le=1e11)]
Rate = Annotated[float, msgspec.Meta(ge=1e-12, le=1e21)]
"""Bytes or operations a second; or a share of such a rate."""
Spread = Annotated[float, msgspec.Meta(ge=0, lt=10)]
"""A standard deviation of a logarithm."""
Number = Annotated[float, msgspec.Meta(ge=-1e21, le=1e21)]
Share = Annotated[float, msgspec.Meta(ge=0, le=1)]

_T = TypeVar("_T")


class RecordError(Exception):
    """A file is no record, is one of another version, or has something wrong in it."""


class Struct(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A part of records."""


class Record(Struct, frozen=True):
    """A record with a schema. Subclasses name theirs and declare their fields."""

    SCHEMA: ClassVar[str]
    PRINTED_KEYS: ClassVar[frozenset[str]] = frozenset()
    """What commands add to the record's keys with ``--json``; skipped when it is read."""

    def to_json(self) -> dict[str, Any]:
        """JSON values, the schema first."""
        return {"schema": self.SCHEMA, **to_builtins(self)}

    def write(self, path: Path) -> Path:
        """Write the record to ``path``, whole or not at all."""
        write_atomically(path, json.dumps(self.to_json(), indent=1).encode() + b"\n")
        return path

    @classmethod
    def from_json(cls, values: Any) -> Self:
        """Build the record from JSON values; a `RecordError` says what is wrong in them."""
        schema = values.get("schema") if isinstance(values, Mapping) else None
        if schema != cls.SCHEMA:
            found = f"its schema is {schema}" if schema else "it has no schema"
            raise RecordError(f"expected {cls.SCHEMA}, but {found}")
        skipped = {"schema", *cls.PRINTED_KEYS}
        return convert({name: values[name] for name in values if name not in skipped}, cls)

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read the record from a file, which a `RecordError` names."""
        values = decode(read_regular(path), Any, path)
        try:
            return cls.from_json(values)
        except RecordError as why:
            raise RecordError(f"{path}: {why}") from why


class StoredFile(Struct, frozen=True):
    """A JSON file without a schema: the other files of its directory identify it."""


def to_builtins(value: Any) -> Any:
    return msgspec.to_builtins(value, enc_hook=_scalar)


def _scalar(value: Any) -> Any:
    if isinstance(value, str):
        return str(value)
    if hasattr(value, "item"):  # NumPy's
        return value.item()
    raise TypeError(f"{type(value).__name__} is not a JSON value")


def read_values(path: Path, kind: Any) -> Any:
    """Read a JSON file of this kind as JSON values; a `RecordError` names it."""
    content = read_regular(path)
    decode(content, kind, path)
    return json.loads(content)


def decode(content: bytes | str, kind: type[_T], path: object) -> _T:
    """Decode a JSON file of this kind; a `RecordError` names ``path``."""
    try:
        # A byte order mark is allowed at the start, as in CSV files.
        text = content if isinstance(content, str) else content.removeprefix(codecs.BOM_UTF8)
        values = msgspec.json.decode(text)
        if repeated := _repeated_key(text):
            raise RecordError(
                f"{path}: the key {repeated!r} appears twice in one object; remove one"
            )
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as why:
        place = _not_finite(content)
        raise RecordError(
            f"{path}: {place}" if place else f"{path} is not JSON: {_reason(why)}"
        ) from why
    if kind is Any:
        return values  # type: ignore[no-any-return]
    try:
        return convert(values, kind)
    except RecordError as why:
        raise RecordError(f"{path}: {why}") from why


def convert(values: Any, kind: type[_T]) -> _T:
    """Build a ``kind`` from JSON values; a `RecordError` says where, and what belongs there."""
    try:
        return msgspec.convert(values, kind)
    except msgspec.ValidationError as why:
        from tonnage.base.records.schema_errors import first_mistake

        raise RecordError(first_mistake(values, kind) or f"$: {why}") from why
    except (RecursionError, OverflowError) as why:
        raise RecordError(f"$: {why}") from why


def _repeated_key(text: bytes | str) -> str | None:
    """A key that an object of a JSON document has twice: readers would differ in which they use."""
    found: list[str] = []

    def check(pairs: list[tuple[str, object]]) -> None:
        if len({name for name, _ in pairs}) < len(pairs):
            names = [name for name, _ in pairs]
            found.append(next(name for name in names if names.count(name) > 1))

    json.loads(text, object_pairs_hook=check)
    return found[0] if found else None


def _reason(why: Exception) -> str:
    return str(why).removeprefix("JSON is malformed: ")


def _not_finite(content: bytes | str) -> str | None:
    """The path of a number that JSON does not have, or that is past 1e308."""
    try:
        return next(_places(json.loads(content), "$"), None)
    except (ValueError, RecursionError):
        return None


def _places(values: Any, path: str) -> Iterator[str]:
    from tonnage.base.records.schema_errors import member

    if isinstance(values, float) and not math.isfinite(values):
        yield f"{path}: expected a finite number, got {json.dumps(values)}"
    elif isinstance(values, dict):
        for name, value in values.items():
            yield from _places(value, member(path, name))
    elif isinstance(values, list):
        for at, value in enumerate(values):
            yield from _places(value, f"{path}[{at}]")
