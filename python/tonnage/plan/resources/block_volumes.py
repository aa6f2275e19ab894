"""Network block volumes of a node: size, speed and price, for many cluster sizes at once.

The job's bytes are spread evenly over all volumes of all nodes. More nodes mean smaller volumes,
and some kinds are slower when smaller. Buckets start full. Provisioned rates are never bought:
another volume of the kind includes as much, since only size is billed.
"""

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tonnage.catalog import Grant, VolumeKind
from tonnage.model.token_bucket import TokenBucket

Floats = npt.NDArray[np.float64]
GIB = 1 << 30
FILE_SYSTEM_ROOM = 1.02
"""Volumes are larger than what they store: a file system needs 1 to 2 % for itself."""


@dataclass(frozen=True)
class BlockVolumes:
    """``count`` volumes of a kind on each node; all nodes together store ``stored_bytes``."""

    kind: VolumeKind
    count: int
    stored_bytes: float
    hours_per_month: float

    def gib_each(self, nodes: Floats) -> Floats:
        """The size of a volume in whole GiB, as billed."""
        stored = FILE_SYSTEM_ROOM * self.stored_bytes / (nodes * self.count)
        return np.maximum(np.ceil(stored / GIB), self._min_gib)

    def gib_of_one(self, nodes: int) -> int:
        """The same for one cluster size."""
        stored = FILE_SYSTEM_ROOM * self.stored_bytes / (nodes * self.count)
        return max(math.ceil(stored / GIB), self._min_gib)

    @property
    def _min_gib(self) -> int:
        return max(math.ceil((self.kind.least_bytes or 0) / GIB), 1)

    def bucket(self, nodes: Floats) -> TokenBucket:
        """The rate of a node's volumes together, if its link does not limit them."""
        # The size needed, not the size billed: rounding up must not make volumes faster.
        # But no volume is smaller than the kind's smallest.
        sizes = np.maximum(self.stored_bytes / (nodes * self.count) / GIB, self._min_gib)
        baseline = _baseline(self.kind.throughput, sizes)
        burst, credit = _burst(self.kind.throughput, sizes)
        operations = _baseline(self.kind.operations, sizes)
        largest = self.kind.largest_operation_bytes
        if operations is not None and largest is not None:
            most = self.kind.throughput.most or math.inf
            baseline = np.minimum(operations * largest, most if baseline is None else baseline)
            burst_operations, operation_credit = _burst(self.kind.operations, sizes)
            if np.any(operation_credit):
                # The operations' credit pays for a burst of bytes without credit of its own.
                burst, credit = (
                    np.minimum(burst_operations * largest, burst),
                    operation_credit * largest,
                )
        if baseline is None:
            raise ValueError(f"the throughput of {self.kind.name} volumes is unknown")
        credit = np.where(burst > baseline, credit, 0.0)
        burst = np.where(credit > 0, burst, baseline)
        return TokenBucket(self.count * baseline, self.count * burst, self.count * credit)

    def operations(self, nodes: Floats) -> TokenBucket | None:
        """Operations a second of a node's volumes together; ``None`` where unknown."""
        sizes = np.maximum(self.stored_bytes / (nodes * self.count) / GIB, self._min_gib)
        baseline = _baseline(self.kind.operations, sizes)
        if baseline is None:
            return None
        burst, credit = _burst(self.kind.operations, sizes)
        credit = np.where(burst > baseline, credit, 0.0)
        burst = np.where(credit > 0, burst, baseline)
        return TokenBucket(self.count * baseline, self.count * burst, self.count * credit)

    def usd_per_hour(self, nodes: Floats) -> Floats:
        if self.kind.usd_per_gib_month is None:
            raise ValueError(f"the price of {self.kind.name} volumes is unknown")
        monthly = self.kind.usd_per_gib_month * self.count * self.gib_each(nodes)
        return np.asarray(monthly / self.hours_per_month)

    @property
    def min_nodes(self) -> int:
        """With fewer nodes a volume would exceed the kind's largest size."""
        if self.kind.most_bytes is None:
            return 1
        stored = FILE_SYSTEM_ROOM * self.stored_bytes
        return max(math.ceil(stored / (self.count * self.kind.most_bytes)), 1)


def is_usable(kind: VolumeKind) -> bool:
    """Whether both throughput and price are known."""
    return kind.usd_per_gib_month is not None and kind.bytes_per_second(GIB) is not None


def _baseline(grant: Grant, gib: Floats) -> Floats | None:
    """The sustained rate for many sizes; ``None`` where unknown."""
    if grant.per_gib is not None:
        rate = np.maximum(grant.per_gib * gib, grant.least or 0.0)
    elif grant.included is not None:
        rate = np.full_like(gib, grant.included)
    else:
        return None
    return rate if grant.most is None else np.minimum(rate, grant.most)


def _burst(grant: Grant, gib: Floats) -> tuple[Floats, Floats]:
    """The burst rate, infinite where unknown, and its credit."""
    if grant.burst_per_gib is not None:
        burst = grant.burst_per_gib * gib
    else:
        limit = grant.burst if grant.burst is not None else grant.most
        burst = np.full_like(gib, math.inf if limit is None else limit)
    if grant.most is not None:
        burst = np.minimum(burst, grant.most)
    return burst, (grant.credit or 0.0) + (grant.credit_per_gib or 0.0) * gib
