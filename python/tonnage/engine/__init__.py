"""Engine: the compiled core as the rest of the package sees it, and the only importer of it.

``run`` starts a job and waits for it, ``Progress`` shows how far it is, ``probes`` turns what the
core reports into the records of `artifacts`. ``refuse_full`` asks devices for room, ``workspace``
is a directory that goes again.
"""

from tonnage.engine.job import (
    Cancelled,
    Failed,
    OnProgress,
    Refused,
    after,
    is_debug_build,
    plan,
    run,
    version,
    workers,
)
from tonnage.engine.progress import Progress
from tonnage.engine.room import refuse_full
from tonnage.engine.workspace import workspace

__all__ = [
    "Cancelled",
    "Failed",
    "OnProgress",
    "Progress",
    "Refused",
    "after",
    "is_debug_build",
    "plan",
    "refuse_full",
    "run",
    "version",
    "workers",
    "workspace",
]
