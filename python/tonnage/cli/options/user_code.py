"""One's own code, as ``MODULE:NAME`` names it."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from pathlib import Path
from typing import Any

from tonnage.base import core


def held_by(place: str, kind: type, called: str) -> Any:
    """What ``MODULE:NAME`` says: one of a kind, or a class of it.

    Args:
        place: A module's name and what it holds, or a file ``x.py`` and that.
        kind: What it has to be.
        called: What users know that as.

    Raises:
        UsageError: There is none; the message says what is there.
    """
    module, separator, name = place.rpartition(":")
    if not separator or not name:
        raise core.UsageError(f"{place}: write MODULE:NAME, like words.py:COUNT")
    try:
        held = _from_file(Path(module)) if module.endswith(".py") else _imported(module)
    except Exception as why:
        raise core.UsageError(f"{module} cannot be loaded: {type(why).__name__}: {why}") from why
    plain = called.rpartition(".")[2]
    if not hasattr(held, name):
        own = [each for each, value in vars(held).items() if _is(value, kind)]
        there = f"it has {', '.join(own)}" if own else f"nor any other {plain}"
        raise core.UsageError(f"{module} has no {name}; {there}")
    found = getattr(held, name)
    if not _is(found, kind):
        raise core.UsageError(f"{place} is a {type(found).__name__}: name a {called}")
    return found


def _is(value: Any, kind: type) -> bool:
    """Whether it is one, or a class of them that somebody wrote."""
    if isinstance(value, type):
        return issubclass(value, kind) and value is not kind
    return isinstance(value, kind)


def _imported(module: str) -> Any:
    sys.path.insert(0, str(Path.cwd()))  # as `python -m` has it
    return importlib.import_module(module)


def _from_file(path: Path) -> Any:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None  # Its name ends with .py.
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module
