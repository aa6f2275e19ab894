"""Encode a finished round's result so that reading it runs no code: MessagePack, never pickle.

Extensions hold what MessagePack lacks: tuples, sets, dictionaries with any keys, NumPy arrays
(without Python objects), Arrow tables and batches, dates and decimals (by Arrow), and instances of
classes that the job's own modules define, as the class's name and the values of its attributes. The
class is looked up among the loaded modules; no constructor runs. Anything else is `NotStorable`: a
job with such a result starts at its first round when it is resumed.
"""

import datetime
import decimal
import io
import sys
from collections.abc import Callable, Collection
from types import SimpleNamespace
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
from msgspec.msgpack import Ext

TUPLE, DICT, SET, FROZEN_SET, LONG, ARRAY, SCALAR, BATCH, TABLE, SINGLE, INSTANCE, NAMED_TUPLE = (
    range(1, 13)
)
OWN_MODULES = ("tonnage.run.reduce.builtin.", "tonnage.api.aggregates.")
_PLAIN = (type(None), bool, float, str, bytes)
_BY_ARROW = (datetime.datetime, datetime.date, datetime.time, datetime.timedelta, decimal.Decimal)


class NotStorable(Exception):
    """A value has a part that this format has no place for."""


class RoundStateCodec:
    """Encodes and decodes values of a job whose classes are defined in ``modules``."""

    def __init__(self, modules: Collection[str]) -> None:
        self._modules = frozenset(modules)

    def encode(self, value: Any) -> bytes:
        """Encode a value; `NotStorable` if a part of it is of a class that cannot be read back."""
        try:
            return msgspec.msgpack.encode(self._to_tree(value))
        except (RecursionError, msgspec.MsgspecError, pa.ArrowException, ValueError) as why:
            raise NotStorable(str(why)) from why

    def decode(self, content: bytes) -> Any:
        """Decode what `encode` made; `ValueError` if it is something else."""
        try:
            return self._from_tree(msgspec.msgpack.decode(content))
        except Exception as why:  # Whatever NumPy, Arrow or a class says of damaged content.
            raise ValueError(f"{type(why).__name__}: {why}") from why

    def _to_tree(self, value: Any) -> Any:
        kind = type(value)
        if kind in _PLAIN:
            return value
        if kind is int:
            fits = -(2**63) <= value < 2**64
            return value if fits else Ext(LONG, str(value).encode())
        if kind is list:
            return [self._to_tree(each) for each in value]
        if kind in (tuple, set, frozenset):
            code = TUPLE if kind is tuple else SET if kind is set else FROZEN_SET
            return self._extension(code, list(value))
        if kind is dict:
            return self._extension(DICT, [[key, each] for key, each in value.items()])
        if kind is np.ndarray or isinstance(value, np.generic):
            return Ext(ARRAY if kind is np.ndarray else SCALAR, _array_to_bytes(np.asarray(value)))
        if kind is pa.RecordBatch or kind is pa.Table:
            return Ext(BATCH if kind is pa.RecordBatch else TABLE, _arrow_to_bytes(value))
        if kind in _BY_ARROW:
            batch = pa.record_batch({"": pa.array([value])})
            if batch.column(0)[0].as_py() != value:
                raise NotStorable(f"Arrow would round {value!r}")
            return Ext(SINGLE, _arrow_to_bytes(batch))
        if isinstance(value, tuple) and self._find_class(*_name_of(kind)) is kind:
            return self._extension(NAMED_TUPLE, [*_name_of(kind), list(value)])
        return self._extension(INSTANCE, [*_name_of(kind), self._attributes(value)])

    def _extension(self, code: int, value: Any) -> Ext:
        return Ext(code, msgspec.msgpack.encode(self._to_tree(value)))

    def _attributes(self, value: Any) -> dict[str, Any]:
        kind = type(value)
        if self._find_class(*_name_of(kind)) is not kind:
            raise NotStorable(f"{kind.__module__}.{kind.__qualname__} is not of the job's modules")
        attributes = value.__getstate__()
        if attributes is not None and type(attributes) is not dict:
            raise NotStorable(f"{kind.__qualname__} has its own __getstate__ or __slots__")
        return attributes or {}

    def _from_tree(self, tree: Any) -> Any:
        if isinstance(tree, list):
            return [self._from_tree(each) for each in tree]
        if not isinstance(tree, Ext):
            if type(tree) in (*_PLAIN, int):
                return tree
            raise ValueError(f"unexpected {type(tree).__name__} in the saved state")
        content = bytes(tree.data)
        if (read := _READERS.get(tree.code)) is not None:
            return read(content)
        values = self._from_tree(msgspec.msgpack.decode(content))
        if (build := _BUILDERS.get(tree.code)) is not None:
            return build(values)
        module, name, state = values
        kind = self._find_class(module, name)
        if kind is None:
            raise ValueError(f"{module}.{name} is not a class in the job's modules")
        if tree.code == NAMED_TUPLE and issubclass(kind, tuple):
            return tuple.__new__(kind, state)
        if tree.code != INSTANCE or issubclass(kind, tuple):
            raise ValueError(f"unknown extension {tree.code} in the saved state")
        made: Any = SimpleNamespace() if kind is SimpleNamespace else object.__new__(kind)
        made.__dict__.update(state)
        return made

    def _find_class(self, module: str, name: str) -> type | None:
        """Find a class that can be made of its attributes alone."""
        if (module, name) == _name_of(SimpleNamespace):
            return SimpleNamespace
        if module not in self._modules and not module.startswith(OWN_MODULES):
            return None
        found: Any = sys.modules.get(module)
        for part in name.split("."):
            found = getattr(found, part, None)
        if not isinstance(found, type) or found.__module__ != module:
            return None
        if issubclass(found, tuple):
            return found if hasattr(found, "_fields") else None
        # Nothing that has a say in how it is made, read or removed; and no child of a built-in.
        has_say = any(
            name in vars(base)
            for base in found.__mro__[:-1]
            for name in ("__new__", "__reduce__", "__reduce_ex__", "__setstate__", "__del__")
        )
        plain = "__dict__" in dir(found) and found.__basicsize__ <= _LARGEST_PLAIN
        return None if has_say or not plain else found


class _Plain:
    pass


_LARGEST_PLAIN = _Plain.__basicsize__


def _name_of(kind: type) -> tuple[str, str]:
    return kind.__module__, kind.__qualname__


def _array_to_bytes(array: np.ndarray[Any, Any]) -> bytes:
    sink = io.BytesIO()
    np.lib.format.write_array(sink, array, allow_pickle=False)
    return sink.getvalue()


def _bytes_to_array(content: bytes) -> np.ndarray[Any, Any]:
    found: np.ndarray[Any, Any] = np.lib.format.read_array(io.BytesIO(content), allow_pickle=False)
    return found


def _arrow_to_bytes(value: pa.RecordBatch | pa.Table) -> bytes:
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, value.schema) as stream:
        stream.write(value)
    return sink.getvalue()


def _bytes_to_table(content: bytes) -> pa.Table:
    table = pa.ipc.open_stream(content).read_all()
    table.validate(full=True)
    return table


def _bytes_to_batch(content: bytes) -> pa.RecordBatch:
    batch = pa.ipc.open_stream(content).read_next_batch()
    batch.validate(full=True)
    return batch


_BUILDERS: dict[int, Callable[[Any], Any]] = {
    TUPLE: tuple,
    DICT: dict,
    SET: set,
    FROZEN_SET: frozenset,
}
_READERS: dict[int, Callable[[bytes], Any]] = {
    LONG: int,
    ARRAY: _bytes_to_array,
    SCALAR: lambda content: _bytes_to_array(content)[()],
    BATCH: _bytes_to_batch,
    TABLE: _bytes_to_table,
    SINGLE: lambda content: _bytes_to_batch(content).column(0)[0].as_py(),
}
