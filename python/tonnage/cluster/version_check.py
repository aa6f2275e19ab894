"""What a machine has of Tonnage, and a process there for what is to be made of it.

It is sent there as it is, and imports nothing of the package: that may not be there, or another.
"""

from __future__ import annotations

import hashlib
import importlib.util
import platform
from pathlib import Path
from typing import Any, NamedTuple


class InstalledVersion(NamedTuple):
    """What is there; ``None`` for what is not."""

    host: str
    tonnage: str | None
    core: str | None
    """The first digits of the compiled core's SHA-256."""


def look() -> tuple[str, str | None, str | None]:
    """What this machine has, as the fields of `Found`."""
    try:
        import tonnage
    except ImportError:
        return platform.node(), None, None
    version = getattr(tonnage, "__version__", None)
    core = importlib.util.find_spec("tonnage._core")
    if core is None or core.origin is None:
        return platform.node(), version, None
    digest = hashlib.sha256(Path(core.origin).read_bytes()).hexdigest()
    return platform.node(), version, digest[:16]


class ActorShell:
    """A process on a machine: tells what is there, then becomes an object whose methods it calls.

    One process does both: each that Python starts in costs seconds.
    """

    def __init__(self) -> None:
        self._made: Any = None
        self._why = "there is no agent"

    def look(self) -> tuple[str, str | None, str | None]:
        """What this machine has."""
        return look()

    def become(self, kind: type[Any]) -> None:
        """Makes the object."""
        try:
            self._made = kind()
        except Exception as why:
            self._why = f"could not start an agent: {type(why).__name__}: {why}"

    def call(self, method: str, *arguments: Any) -> Any:
        """Calls a method of the object."""
        if self._made is None:
            raise RuntimeError(self._why)
        return getattr(self._made, method)(*arguments)


def difference(here: InstalledVersion, there: InstalledVersion) -> str | None:
    """What has to be mended on a machine before it can measure with this one; None: nothing."""
    if there.tonnage is None:
        return f"has no Tonnage: install it there (pip install tonnage=={here.tonnage})"
    if there.tonnage != here.tonnage:
        return (
            f"has Tonnage {there.tonnage}, this machine {here.tonnage}: install the same there "
            f"(pip install tonnage=={here.tonnage})"
        )
    if there.core != here.core:
        return f"has another build of Tonnage {there.tonnage}: install the same wheel there"
    return None
