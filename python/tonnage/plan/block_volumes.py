"""Network-attached volumes of a node: how large, how fast and how dear, for many fleets at once.

What a job keeps on volumes is shared evenly by all volumes of all nodes, so volumes are smaller the
more nodes there are; those whose rate follows from their size are slower then. A volume's bucket is
taken to be full at first. No rate is bought: another volume of the kind includes as much for
nothing, since it is the size that is paid for.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tonnage.catalog import Grant, VolumeKind
from tonnage.model.token_bucket import TokenBucket

Floats = npt.NDArray[np.float64]
GIB = 1 << 30


@dataclass(frozen=True)
class BlockVolumes:
    """So many volumes of a kind for each node; ``stored_bytes`` on those of all nodes together."""

    kind: VolumeKind
    count: int
    stored_bytes: float
    hours_per_month: float

    def gib_each(self, nodes: Floats) -> Floats:
        """The size of a volume in whole GiB, as it is bought."""
        return np.maximum(np.ceil(self.stored_bytes / (nodes * self.count) / GIB), self._least_gib)

    def gib_of_one(self, nodes: int) -> int:
        """The size of a volume in a fleet of so many nodes."""
        return max(math.ceil(self.stored_bytes / (nodes * self.count) / GIB), self._least_gib)

    @property
    def _least_gib(self) -> int:
        return max(math.ceil((self.kind.least_bytes or 0) / GIB), 1)

    def bucket(self, nodes: Floats) -> TokenBucket:
        """What a node's volumes are to carry together, if the node can."""
        # Of what is needed and not of what is bought: a rounding up should make nothing faster.
        # No volume is smaller than the kind's smallest, though.
        sizes = np.maximum(self.stored_bytes / (nodes * self.count) / GIB, self._least_gib)
        lasting = _lasting(self.kind.throughput, sizes)
        burst, credit = _burst(self.kind.throughput, sizes)
        operations = _lasting(self.kind.operations, sizes)
        largest = self.kind.largest_operation_bytes
        if operations is not None and largest is not None:
            most = self.kind.throughput.most or math.inf
            lasting = np.minimum(operations * largest, most if lasting is None else lasting)
            more, kept = _burst(self.kind.operations, sizes)
            if np.any(kept):
                # Operations' bucket pays for a burst of bytes that has no credit of its own.
                burst, credit = np.minimum(more * largest, burst), kept * largest
        if lasting is None:
            raise ValueError(f"what a volume of {self.kind.name} carries is unknown")
        credit = np.where(burst > lasting, credit, 0.0)
        burst = np.where(credit > 0, burst, lasting)
        return TokenBucket(self.count * lasting, self.count * burst, self.count * credit)

    def usd_per_hour(self, nodes: Floats) -> Floats:
        """Of a node's volumes."""
        if self.kind.usd_per_gib_month is None:
            raise ValueError(f"what a volume of {self.kind.name} costs is unknown")
        monthly = self.kind.usd_per_gib_month * self.count * self.gib_each(nodes)
        return np.asarray(monthly / self.hours_per_month)

    @property
    def min_nodes(self) -> int:
        """With fewer, a volume would be larger than the kind's largest."""
        if self.kind.most_bytes is None:
            return 1
        return max(math.ceil(self.stored_bytes / (self.count * self.kind.most_bytes)), 1)


def is_usable(kind: VolumeKind) -> bool:
    """Whether both what it carries and what it costs are known."""
    return kind.usd_per_gib_month is not None and kind.bytes_per_second(GIB) is not None


def _lasting(grant: Grant, gib: Floats) -> Floats | None:
    """`Grant.lasting` for many sizes."""
    if grant.per_gib is not None:
        found = np.maximum(grant.per_gib * gib, grant.least or 0.0)
    elif grant.included is not None:
        found = np.full_like(gib, grant.included)
    else:
        return None
    return found if grant.most is None else np.minimum(found, grant.most)


def _burst(grant: Grant, gib: Floats) -> tuple[Floats, Floats]:
    """A burst's rate, as far as any is known, and the credit that pays for it."""
    if grant.burst_per_gib is not None:
        burst = grant.burst_per_gib * gib
    else:
        told = grant.burst if grant.burst is not None else grant.most
        burst = np.full_like(gib, math.inf if told is None else told)
    if grant.most is not None:
        burst = np.minimum(burst, grant.most)
    return burst, (grant.credit or 0.0) + (grant.credit_per_gib or 0.0) * gib
