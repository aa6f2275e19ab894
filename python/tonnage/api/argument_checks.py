"""Checks of what users pass to the Python API; messages name parameters."""

import textwrap
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

from tonnage.base import core
from tonnage.base.byte_sizes import bytes_of


def size(value: str | int, name: str) -> int:
    """A size as bytes: a number, or a text like ``256MiB``."""
    found = bytes_of(value) if isinstance(value, str) else value
    if isinstance(found, bool) or not isinstance(found, int) or found < 1:
        raise core.UsageError(f"{value!r} is not a size; write it like 256MiB", setting=name)
    return found


def count(value: int | None, name: str) -> int | None:
    """A number of at least 1, or None for the default."""
    if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 1):
        raise core.UsageError(f"{value!r} is not a whole number of at least 1", setting=name)
    return value


def paths(value: Any, name: str) -> list[str]:
    """One path or several, as texts."""
    several = [value] if isinstance(value, (str, Path)) else value
    if not isinstance(several, Sequence) or isinstance(several, bytes):
        raise core.UsageError(f"{value!r} is neither a path nor a list of paths", setting=name)
    for each in several:
        instance(each, (str, Path), name, "a path")
    return [str(each) for each in several]


def text(value: str | None, name: str) -> str | None:
    """A text, or None for the default."""
    if value is not None:
        instance(value, str, name, "a string")
    return value


def texts(value: str | Sequence[str], name: str) -> list[str]:
    """One text or several."""
    several = [value] if isinstance(value, str) else value
    if not isinstance(several, Sequence) or isinstance(several, bytes):
        raise core.UsageError(f"{value!r} is neither a string nor a list of them", setting=name)
    for each in several:
        instance(each, str, name, "a string")
    return list(several)


def instance(value: Any, kinds: type | tuple[type, ...], name: str, what: str) -> None:
    if not isinstance(value, kinds):
        shown = textwrap.shorten(repr(value), 80, placeholder="...")
        raise core.UsageError(f"{shown} is not {what}", setting=name)


def one_of(value: str, choices: Collection[str], name: str) -> str:
    if value not in choices:
        raise core.UsageError(f"{value!r} is not one of {', '.join(choices)}", setting=name)
    return value
