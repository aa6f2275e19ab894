"""Tonnage: how much a machine, or a fleet of them, can carry, and at what price.

The loop is in the packages: ``measure`` gives a `Measurement`, ``model`` turns measurements into a
`Prediction`, ``run`` does the job and gives a `RunRecord`, ``report`` shows one beside the other.
``artifacts`` holds those records; ``study`` is the whole loop on one machine. `MapReduce` is a job
of one's own functions.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tonnage.map_reduce import Fleet, MapReduce
    from tonnage.run.map_reduce import Input, counts, groups, per_record, sums
    from tonnage.run.volumes import Volumes

__all__ = ["Fleet", "Input", "MapReduce", "Volumes", "counts", "groups", "per_record", "sums"]
__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    """Public names, imported when they are asked for: a command that needs no Arrow loads none."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from tonnage import map_reduce
    from tonnage.run import map_reduce as helpers

    return getattr(map_reduce if name in ("Fleet", "MapReduce", "Volumes") else helpers, name)
