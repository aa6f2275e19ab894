"""Tonnage: how much a machine, or a fleet of them, can carry, and at what price.

The loop is in the packages: ``measure`` gives a `Measurement`, ``model`` turns measurements into a
`Prediction`, ``run`` does the job and gives a `RunRecord`, ``report`` shows one beside the other.
``artifacts`` holds those records; ``study`` is the whole loop on one machine. `MapReduce` and
`reduce` are jobs of one's own functions; ``combine`` is what those of `reduce` are made of.
Whatever cannot be done raises `UsageError` (nothing was begun) or `RunError`.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tonnage.api.mapreduce import Fleet, MapReduce
    from tonnage.api.reduce import OnFleet, reduce
    from tonnage.base.core import RunError, UsageError
    from tonnage.run.formats import as_points
    from tonnage.run.mapreduce import Input, counts, groups, per_record, sums
    from tonnage.run.reduce import Combined, Reduction
    from tonnage.run.storage.object_store import ObjectStoreOptions

_WHERE = {
    "Combined": "run.reduce",
    "RunError": "base.core",
    "Fleet": "api.mapreduce",
    "Input": "run.mapreduce",
    "MapReduce": "api.mapreduce",
    "OnFleet": "api.reduce",
    "Reduction": "run.reduce",
    "UsageError": "base.core",
    "Volumes": "run.storage.object_store",
    "as_points": "run.formats",
    "counts": "run.mapreduce",
    "groups": "run.mapreduce",
    "per_record": "run.mapreduce",
    "reduce": "api.reduce",
    "sums": "run.mapreduce",
}
__all__ = [
    "Combined",
    "Fleet",
    "Input",
    "MapReduce",
    "OnFleet",
    "Reduction",
    "RunError",
    "UsageError",
    "ObjectStoreOptions",
    "as_points",
    "counts",
    "groups",
    "per_record",
    "reduce",
    "sums",
]
__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    """Public names, imported when they are asked for: a command that needs no Arrow loads none."""
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"tonnage.{_WHERE[name]}"), name)
