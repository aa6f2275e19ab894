"""The compiled core as the rest of the package sees it; nothing else imports it.

``run`` runs a job of the core to its end and ``Progress`` shows it. ``BackgroundJob`` runs in the
background; its gate (``HostInput``, ``HostOutput``) passes blocks to and from Python.
``OutputFiles`` writes an output part by part, ``RangeReader`` reads ranges of objects, and
``Retrieval`` fetches chunks over a ``ConnectionPool``.
"""

from tonnage import _core
from tonnage.base.core.core_job import (
    BackgroundJob,
    GateClosed,
    HostInput,
    HostOutput,
    OnProgress,
    Retrieval,
    offset_progress,
    plan,
    run,
)
from tonnage.base.core.errors import Cancelled, RunError, UsageError
from tonnage.base.core.port_reservation import ReservedPort
from tonnage.base.core.progress import Progress
from tonnage.base.core.workspace import require_free_space, workspace

NearestCentres = _core.Centres
Chunk = _core.Chunk
ConnectionPool = _core.Clients
OutputFiles = _core.Output
RangeReader = _core.Ranges
assign_rank = _core.give_rank
count_edges = _core.count_edges
count_in_bins = _core.count_in_bins
is_debug_build = _core.is_debug_build
mix_rows = _core.mix_rows
version = _core.version
workers = _core.workers

__all__ = [
    "BackgroundJob",
    "Cancelled",
    "Chunk",
    "ConnectionPool",
    "GateClosed",
    "HostInput",
    "HostOutput",
    "NearestCentres",
    "OnProgress",
    "OutputFiles",
    "Progress",
    "RangeReader",
    "ReservedPort",
    "Retrieval",
    "RunError",
    "UsageError",
    "assign_rank",
    "count_edges",
    "count_in_bins",
    "is_debug_build",
    "mix_rows",
    "offset_progress",
    "plan",
    "require_free_space",
    "run",
    "version",
    "workers",
    "workspace",
]
