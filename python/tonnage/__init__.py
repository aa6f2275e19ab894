"""Tonnage: measure what machines' disks and networks deliver, plan a data job, run it, compare.

The packages are the steps of that loop: `measure`, `model`, `plan`, `run`, `report`; ``study`` is
the whole loop. `sort` sorts tables. Jobs of a user's own functions: `MapReduce`, and `reduce` with
a `Reduction` or an `AggregateReduction` of `aggregates`; `testing` checks a reduction. What fails
raises `UsageError` (nothing was started) or `RunError`.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tonnage.api import aggregates, testing
    from tonnage.api.cluster import Cluster
    from tonnage.api.mapreduce import MapReduce
    from tonnage.api.reduce import reduce
    from tonnage.api.sort import sort
    from tonnage.base.core import RunError, UsageError
    from tonnage.run.formats import as_points
    from tonnage.run.mapreduce import Input, counts, groups, per_record, sums
    from tonnage.run.reduce import AggregateReduction, Reduction
    from tonnage.run.storage.object_store import ObjectStoreOptions

_HOMES = {
    "AggregateReduction": "run.reduce",
    "Cluster": "api.cluster",
    "Input": "run.mapreduce",
    "MapReduce": "api.mapreduce",
    "ObjectStoreOptions": "run.storage.object_store",
    "Reduction": "run.reduce",
    "RunError": "base.core",
    "UsageError": "base.core",
    "aggregates": "api",
    "as_points": "run.formats",
    "counts": "run.mapreduce",
    "groups": "run.mapreduce",
    "per_record": "run.mapreduce",
    "reduce": "api.reduce",
    "sort": "api.sort",
    "sums": "run.mapreduce",
    "testing": "api",
}
__all__ = [
    "AggregateReduction",
    "Cluster",
    "Input",
    "MapReduce",
    "ObjectStoreOptions",
    "Reduction",
    "RunError",
    "UsageError",
    "aggregates",
    "as_points",
    "counts",
    "groups",
    "per_record",
    "reduce",
    "sort",
    "sums",
    "testing",
]
__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    """Import public names on first use, so that commands without Arrow start without Arrow."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    home = f"tonnage.{_HOMES[name]}"
    if _HOMES[name] == "api":
        return importlib.import_module(f"{home}.{name}")
    return getattr(importlib.import_module(home), name)
