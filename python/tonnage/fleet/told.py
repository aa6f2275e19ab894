"""What a machine tells of a step, as the core told it. Pure."""

from __future__ import annotations

from typing import Any


def brief(outcome: dict[str, Any]) -> dict[str, Any]:
    """An outcome without its samples over time, which are most of it."""
    phases = [{**phase, "timeline": []} for phase in outcome["phases"]]
    return outcome | {"phases": phases}
