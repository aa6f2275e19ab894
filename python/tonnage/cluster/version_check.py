"""What a node has of Tonnage, compared with the driver.

This module is sent to nodes as it is and imports nothing of the package, which they may not have.
"""

import hashlib
import importlib.util
import platform
from pathlib import Path
from typing import NamedTuple


class InstalledVersion(NamedTuple):
    """What is installed on a node; None for what is not there."""

    host: str
    tonnage: str | None
    core: str | None
    """The first digits of the compiled core's SHA-256."""


def installed_version() -> tuple[str, str | None, str | None]:
    """The fields of `InstalledVersion` of this node, as plain values."""
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


def difference(here: InstalledVersion, there: InstalledVersion) -> str | None:
    """What has to be installed on a node before it can work with this one; None: nothing."""
    if there.tonnage is None:
        return f"has no Tonnage; install it on the node (pip install tonnage=={here.tonnage})"
    if there.tonnage != here.tonnage:
        return (
            f"has Tonnage {there.tonnage}, but this machine has {here.tonnage}; install the same "
            f"version on the node (pip install tonnage=={here.tonnage})"
        )
    if there.core != here.core:
        return f"has another build of Tonnage {there.tonnage}; install the same wheel on the node"
    return None
