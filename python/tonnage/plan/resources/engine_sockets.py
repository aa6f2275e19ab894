"""How many nodes can exchange data, by the sockets that a process of each may open.

In a sort or MapReduce each node is connected to all others. Where more do not fit, the engine makes
do with one connection to each (`run.two_pass.sizing`), so the number of cores does not count.
"""

from tonnage.base.core import sockets
from tonnage.base.records.job import Job
from tonnage.plan.resources.engine_memory import TWO_PASS


def most_connected(job: Job, descriptors: int | None) -> int | None:
    """The most nodes of the job whose processes may open so many files and sockets; ``None``:
    any number."""
    if descriptors is None or job.name not in TWO_PASS:
        return None
    return 1 + sockets.most_connections(descriptors)
