"""How many bytes a request of a sort to an object store moves, by the memory of the node.

The core reads objects in ranges and writes them in parts that are as long as memory allows for the
requests that are under way at once. Its own division of memory is asked, for a large input. An
object is a partition, which fills a node's memory as the others do; its upload is begun and
completed by a request each.
"""

from dataclasses import dataclass
from functools import cache

from tonnage.base import core
from tonnage.catalog import Offer
from tonnage.plan.resources.engine_memory import (
    FILL,
    LARGEST,
    MEMORY_SHARE,
    has_memory_limit,
    local_devices,
)

REQUESTS, THREAD_REQUESTS, MOST_REQUESTS = 16, 4, 1024
"""Concurrent requests of a node, the defaults of `run.storage.object_store`: at least, for each
thread, and at most."""
SPLIT_BYTES = 256 << 20
"""The longest split of an input on a cluster (`run.two_pass.sizing`), which is read in ranges."""
ENOUGH_BYTES = 1 << 30
"""With so much for each request of a node, requests are as long as they get."""
UPLOAD_REQUESTS = 2.5
"""Puts of an object besides its whole parts: one begins and one completes the upload, and the last
part is half as long as the others on average."""


@dataclass(frozen=True)
class RequestSizes:
    """Bytes that a request moves on average."""

    get: float
    put: float
    """Of all that count as puts: those that begin and complete uploads, too."""


def request_sizes(offer: Offer) -> RequestSizes | None:
    """What requests of a sort move; ``None`` if the memory is too little for any.

    Those of a machine whose memory or threads are unknown are as long as they get. A node with less
    than a gigabyte of input makes shorter ones.
    """
    if not has_memory_limit(offer):
        return _request_sizes(LARGEST, 1, 1)
    return _request_sizes(offer.memory_bytes or 0, engine_threads(offer), local_devices(offer))


def engine_threads(offer: Offer) -> int:
    """Threads that work on a machine, unless ``--workers`` asks for others."""
    return max(int(offer.vcpus or 0), 1)


def concurrent_requests(threads: int) -> int:
    """Requests of a machine to an object store that are under way at once."""
    return min(max(REQUESTS, THREAD_REQUESTS * threads), MOST_REQUESTS)


@cache
def _request_sizes(memory_bytes: int, threads: int, devices: int) -> RequestSizes | None:
    requests = concurrent_requests(threads)
    shape = {
        "bytes": requests * ENOUGH_BYTES,
        "record_bytes": 100,
        "memory_bytes": memory_bytes // MEMORY_SHARE,
        "workers": threads,
        "devices": (requests, devices, requests),
        "downloads": True,
        "uploads": True,
    }
    try:
        plan = core.plan(shape)
    except core.UsageError:
        return None
    ranges = -(-SPLIT_BYTES // int(plan["extent_bytes"]))
    part, whole = int(plan["output_block_bytes"]), int(plan["slot_bytes"]) * FILL
    return RequestSizes(SPLIT_BYTES / ranges, whole / (whole / part + UPLOAD_REQUESTS))
