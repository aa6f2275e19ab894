"""A user's own code, named as ``MODULE:NAME``."""

import importlib
import importlib.util
import sys
from pathlib import Path
from typing import Any

from tonnage.base import core


def load_object(place: str, kind: type, title: str) -> Any:
    """What ``MODULE:NAME`` names: an instance of ``kind``, or a subclass of it."""
    module, separator, name = place.rpartition(":")
    if not separator or not name:
        raise core.UsageError(f"{place}: use MODULE:NAME, like words.py:COUNT")
    try:
        loaded = _from_file(Path(module)) if module.endswith(".py") else _imported(module)
    except Exception as error:
        message = f"{module} cannot be loaded: {type(error).__name__}: {error}"
        raise core.UsageError(message) from error
    if not hasattr(loaded, name):
        others = [each for each, value in vars(loaded).items() if _is(value, kind)]
        plain = title.rpartition(".")[2]
        there = f"; it contains {', '.join(others)}" if others else f", nor any other {plain}"
        raise core.UsageError(f"{module} does not contain {name}{there}")
    found = getattr(loaded, name)
    if not _is(found, kind):
        raise core.UsageError(f"{place} is of type {type(found).__name__}; it must be a {title}")
    return found


def _is(value: Any, kind: type) -> bool:
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
