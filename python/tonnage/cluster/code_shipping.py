"""Sends a user's own code to nodes that do not have it.

Its modules are sent along unless they are installed; what they import has to be on the nodes.
"""

import hashlib
import sys
import sysconfig
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import Any

from tonnage.base import core
from tonnage.cluster.ray_adapter import pickle_with_modules

Called = Callable[..., Any] | None


class ShippedCode:
    """The modules of a user's functions and types, which are sent along with them."""

    def __init__(self, callables: Iterable[Called]) -> None:
        self._modules = list(_own_modules(callables))

    @property
    def module_names(self) -> list[str]:
        return [module.__name__ for module in self._modules]

    def pickled(self, thing: object) -> bytes:
        """An object as it is sent; pickle loads it; `UsageError` if it cannot be sent."""
        try:
            return pickle_with_modules(thing, self._modules)
        except Exception as why:
            raise core.UsageError(
                f"cannot send the functions to other nodes: {type(why).__name__}: {why}"
            ) from why

    @property
    def digest(self) -> str:
        found = hashlib.sha256()
        for module in self._modules:
            found.update(Path(str(module.__file__)).read_bytes())
        return found.hexdigest()[:16]


def _own_modules(callables: Iterable[Called]) -> Iterator[ModuleType]:
    """The modules of these callables, and of what they enclose, that are not installed."""
    names = dict.fromkeys(name for each in callables for name in _modules_of(each))
    installed = [sysconfig.get_path(name) for name in ("stdlib", "purelib", "platlib")]
    for name in names:
        module = sys.modules.get(name)
        path = getattr(module, "__file__", None)
        if module is None or path is None or name.partition(".")[0] == "tonnage":
            continue
        if not any(Path(path).is_relative_to(place) for place in installed):
            yield module


def _modules_of(function: Called) -> Iterator[str]:
    left: list[Any] = [function]
    known = set[int]()
    while left:
        each = left.pop()
        if not callable(each) or id(each) in known:
            continue
        known.add(id(each))  # A recursive function encloses itself.
        for of_it in (each, type(each)):
            yield getattr(of_it, "__module__", None) or "builtins"
        left += [getattr(each, "func", None), getattr(each, "__wrapped__", None)]
        for cell in getattr(each, "__closure__", None) or ():
            with suppress(ValueError):  # The cell is empty.
                left.append(cell.cell_contents)
