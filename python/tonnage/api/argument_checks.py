"""Checks of what users pass to the Python API; messages name parameters."""

from collections.abc import Collection

from tonnage.base import core
from tonnage.base.formatting import bytes_of


def size(value: str | int, name: str) -> int:
    """A size as bytes: a number, or a text like ``256MiB``."""
    found = bytes_of(value) if isinstance(value, str) else value
    if found is None or found < 1:
        raise core.UsageError(f"{value!r} is not a size; write it like 256MiB", setting=name)
    return found


def count(value: int | None, name: str) -> int | None:
    """A number of at least 1, or None for the default."""
    if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 1):
        raise core.UsageError(f"{value!r} is not a whole number of at least 1", setting=name)
    return value


def one_of(value: str, choices: Collection[str], name: str) -> str:
    if value not in choices:
        raise core.UsageError(f"{value!r} is not one of {', '.join(choices)}", setting=name)
    return value
