"""What is installed only where it is asked for, and what is said where it is not there."""

from __future__ import annotations

import importlib.util

from tonnage.base import core

EXTRAS = {"aws": ("boto3", "boto3"), "cluster": ("ray", "Ray"), "report": ("plotly", "Plotly")}
"""Of each extra of the package: the module that it brings, and that one's name."""


def refuse_without(extra: str, what: str) -> None:
    """Refuses what needs an extra that is not installed, before anything is done.

    Args:
        extra: One of `EXTRAS`.
        what: The flag or the command that needs it.

    Raises:
        UsageError: It is not there; the message says what to install.
    """
    module, name = EXTRAS[extra]
    if importlib.util.find_spec(module) is None:
        raise core.UsageError(f"{what} needs {name}: pip install 'tonnage[{extra}]'")
