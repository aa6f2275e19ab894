"""Optional dependencies: what each extra of the package brings, and who is refused without it."""

import importlib.util

from tonnage.base import core

EXTRAS = {"aws": ("boto3", "boto3"), "cluster": ("ray", "Ray"), "report": ("plotly", "Plotly")}
"""For each extra: the module that it installs, and its name."""


def refuse_missing_extra(extra: str, needed_by: str) -> None:
    """Refuses a flag or a command whose extra is not installed, before anything is done."""
    module, name = EXTRAS[extra]
    if importlib.util.find_spec(module) is None:
        raise core.UsageError(
            f"{needed_by} needs {name}; install it with pip install 'tonnage[{extra}]'"
        )
