"""What to change first about a run, with what that could save at most."""

from tonnage.base.records.base import Seconds, Struct


class Finding(Struct, frozen=True, kw_only=True):
    """Something to change. What several findings could save may overlap: it does not add up."""

    name: str
    fact: str
    change: str
    settings: list[str]
    """Of the engine, that govern it."""
    core_seconds: Seconds | None
    """That it could save at most; ``None`` where seconds are not those of slots."""
    seconds: Seconds
    """Of the run's time that it could save at most."""
    formula: str
