"""Says in a line where JSON values are not of a type, what belongs there, and what is there.

msgspec tells neither the key of a dictionary nor the wrong value. So refused values are walked once
more, along with their type.
"""

import functools
import json
import re
from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import inspect

LONGEST = 40  # Characters of a wrong value that are shown
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")


def first_mistake(values: Any, kind: Any) -> str | None:
    """Describe the first value that is not of type ``kind``, as ``$.path: expected X, got Y``."""
    return next(_mistakes(_type_info(kind), values, "$"), None)


_type_info = functools.cache(inspect.type_info)


def _mistakes(kind: inspect.Type, value: Any, path: str) -> Iterator[str]:
    match kind:
        case inspect.AnyType():
            return
        case inspect.StructType() if isinstance(value, dict):
            yield from _in_struct(kind, value, path)
        case inspect.DictType() if isinstance(value, dict):
            for name, each in value.items():
                yield from _mistakes(kind.key_type, name, member(path, name))
                yield from _mistakes(kind.value_type, each, member(path, name))
        case inspect.ListType() | inspect.VarTupleType() if isinstance(value, list | tuple):
            for at, each in enumerate(value):
                yield from _mistakes(kind.item_type, each, f"{path}[{at}]")
            yield from _wrong_length(kind, value, path)
        case inspect.TupleType() if isinstance(value, list | tuple):
            if len(value) != len(kind.item_types):
                wanted = f"an array of {len(kind.item_types)}"
                yield f"{path}: expected {wanted}, got one of {len(value)}"
            for at, (of, each) in enumerate(zip(kind.item_types, value, strict=False)):
                yield from _mistakes(of, each, f"{path}[{at}]")
        case inspect.UnionType():
            yield from _in_union(kind, value, path)
        case _ if not _fits(kind, value):
            yield f"{path}: expected {_expected(kind, value)}, got {_render_value(value)}"


def _in_struct(kind: inspect.StructType, value: dict[Any, Any], path: str) -> Iterator[str]:
    fields = {each.encode_name: each for each in kind.fields}
    for name in value:
        if kind.forbid_unknown_fields and name not in fields and name != kind.tag_field:
            yield f"{member(path, name)}: unknown field"
    for name, field in fields.items():
        if name in value:
            yield from _mistakes(field.type, value[name], member(path, name))
        elif field.required:
            yield f"{member(path, name)}: missing"
    if not hasattr(kind.cls, "__post_init__"):
        return
    try:
        msgspec.convert(value, kind.cls)
    except msgspec.ValidationError as why:
        text = str(why).partition(" - at `")[0]
        yield f"{path}{text}" if text.startswith(".") else f"{path}: {text}"


def _in_union(kind: inspect.UnionType, value: Any, path: str) -> Iterator[str]:
    if any(next(_mistakes(each, value, path), None) is None for each in kind.types):
        return
    tagged = [each for each in kind.types if isinstance(each, inspect.StructType) and each.tag]
    if tagged and isinstance(value, dict):
        name = str(tagged[0].tag_field)
        of_tag = [each for each in tagged if each.tag == value.get(name)]
        if of_tag:
            yield from _mistakes(of_tag[0], value, path)
        else:
            tags = " or ".join(_render_value(each.tag) for each in tagged)
            yield f"{member(path, name)}: expected {tags}, got {_render_value(value.get(name))}"
        return
    others = [each for each in kind.types if not isinstance(each, inspect.NoneType)]
    likely = [each for each in others if _is_container(each, value)] or others
    if len(likely) == 1:
        yield from _mistakes(likely[0], value, path)
    else:
        wanted = " or ".join(dict.fromkeys(_expected(each, value) for each in kind.types))
        yield f"{path}: expected {wanted}, got {_render_value(value)}"


def _is_container(kind: inspect.Type, value: Any) -> bool:
    if isinstance(value, dict):
        return isinstance(kind, inspect.StructType | inspect.DictType)
    arrays = inspect.ListType | inspect.VarTupleType | inspect.TupleType
    return isinstance(value, list | tuple) and isinstance(kind, arrays)


def _wrong_length(
    kind: inspect.ListType | inspect.VarTupleType, value: Any, path: str
) -> Iterator[str]:
    if kind.min_length is not None and len(value) < kind.min_length:
        wanted = f"{kind.min_length} {'entry' if kind.min_length == 1 else 'entries'}"
        yield f"{path}: expected at least {wanted}, got {len(value)}"
    if kind.max_length is not None and len(value) > kind.max_length:
        yield f"{path}: expected at most {kind.max_length} entries, got {len(value)}"


def _fits(kind: inspect.Type, value: Any) -> bool:
    match kind:
        case inspect.NoneType():
            return value is None
        case inspect.BoolType():
            return isinstance(value, bool)
        case inspect.IntType():
            return isinstance(value, int) and not isinstance(value, bool) and _in_range(kind, value)
        case inspect.FloatType():
            number = isinstance(value, int | float) and not isinstance(value, bool)
            return number and _in_range(kind, value)
        case inspect.StrType():
            if not isinstance(value, str):
                return False
            matches = kind.pattern is None or re.search(kind.pattern, value)
            return bool(matches) and len(value) >= (kind.min_length or 0)
        case inspect.LiteralType():
            return any(each == value and type(each) is type(value) for each in kind.values)
        case inspect.AnyType():
            return True
    return False


def _in_range(kind: inspect.IntType | inspect.FloatType, value: float) -> bool:
    return (
        (kind.ge is None or value >= kind.ge)
        and (kind.gt is None or value > kind.gt)
        and (kind.le is None or value <= kind.le)
        and (kind.lt is None or value < kind.lt)
    )


def _expected(kind: inspect.Type, value: Any) -> str:
    match kind:
        case inspect.StructType() | inspect.DictType():
            return "an object"
        case inspect.ListType() | inspect.VarTupleType() | inspect.TupleType():
            return "an array"
        case inspect.LiteralType():
            return " or ".join(_render_value(each) for each in kind.values)
        case inspect.NoneType():
            return "null"
        case inspect.BoolType():
            return "true or false"
        case inspect.StrType():
            if kind.pattern and isinstance(value, str):
                return f"a string that matches {kind.pattern}"
            return "a string" if not kind.min_length else "a string that is not empty"
        case inspect.IntType() | inspect.FloatType():
            name = "int" if isinstance(kind, inspect.IntType) else "number"
            number = isinstance(value, int | float) and not isinstance(value, bool)
            if number and kind.le is not None and value > kind.le:
                return f"{name} <= {_figure(kind.le)}"
            if number and kind.lt is not None and value >= kind.lt:
                return f"{name} < {_figure(kind.lt)}"
            for sign, bound in ((">=", kind.ge), (">", kind.gt)):
                if bound is not None and bound > -(2**62):
                    return f"{name} {sign} {_figure(bound)}"
            return name
    return type(kind).__name__.removesuffix("Type").lower()


def _figure(bound: float) -> str:
    return str(bound) if isinstance(bound, int) else f"{bound:g}"


def member(path: str, name: object) -> str:
    plain = isinstance(name, str) and _PLAIN.fullmatch(name)
    return f"{path}.{name}" if plain else f"{path}[{_render_value(name)}]"


def _render_value(value: Any) -> str:
    if isinstance(value, dict):
        return "an object"
    if isinstance(value, list | tuple):
        return "an array"
    text: str = json.dumps(value, ensure_ascii=True, default=repr)
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 3]}..."
