"""Engine: the compiled core as the rest of the package sees it, and the only importer of it.

``run`` starts a job and waits for it, ``Progress`` shows how far it is, ``probes`` turns what the
core reports into the records of `artifacts`. ``refuse_full`` asks devices for room, ``workspace``
is a directory that goes again, ``Port`` a port that is nobody else's. ``Beside`` is a job that runs
meanwhile, with a gate (``Given``, ``Taken``) by which this side gives or takes; ``Output`` is one
whose parts are written here; ``Clients`` are connections that retrievals have one after another;
``Ranges`` reads objects here and there.
"""

from tonnage.base.core.disk_space import require_free_space
from tonnage.base.core.errors import Cancelled, RunError, UsageError
from tonnage.base.core.job import (
    BackgroundJob,
    NearestCentres,
    Chunk,
    ConnectionPool,
    HostInput,
    OnProgress,
    OutputFiles,
    RangeReader,
    Retrieval,
    GateClosed,
    HostOutput,
    offset_progress,
    count_edges,
    count_in_bins,
    assign_rank,
    is_debug_build,
    mix_rows,
    plan,
    run,
    version,
    workers,
)
from tonnage.base.core.port_reservation import ReservedPort
from tonnage.base.core.progress import Progress
from tonnage.base.core.workspace import workspace

__all__ = [
    "BackgroundJob",
    "Cancelled",
    "NearestCentres",
    "Chunk",
    "ConnectionPool",
    "HostInput",
    "OnProgress",
    "OutputFiles",
    "ReservedPort",
    "Progress",
    "RangeReader",
    "Retrieval",
    "RunError",
    "GateClosed",
    "HostOutput",
    "UsageError",
    "offset_progress",
    "count_edges",
    "count_in_bins",
    "assign_rank",
    "is_debug_build",
    "mix_rows",
    "plan",
    "require_free_space",
    "run",
    "version",
    "workers",
    "workspace",
]
