"""Burst credits as a token bucket: a burst rate until the credit is used, then the baseline.

A bucket fills at the baseline rate and holds a credit; while there is credit, the burst rate is
reached. From a full bucket, t seconds carry min(burst * t, baseline * t + credit) at most. So N
nodes with W bytes in total need

    seconds = max(W / (N * burst), (W - N * credit) / (N * baseline))

Of buckets in series each bounds the time, and the longest bound is reached (greedy shapers: Le
Boudec and Thiran, Network Calculus, section 1.5).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[Any]
NO_CREDIT = np.asarray(0.0)


@dataclass(frozen=True, eq=False, slots=True)
class TokenBucket:
    """The bucket of each node, in bytes and bytes a second (for cores: seconds and cores)."""

    baseline: Floats
    burst: Floats
    credit: Floats  # 0 if there is none or it is unknown: a burst without known credit is not used

    @staticmethod
    def constant(rate: float) -> TokenBucket:
        each = np.asarray(rate)
        return TokenBucket(each, each, NO_CREDIT)

    def node_seconds(self, wanted: Floats, nodes: Floats, share: float) -> Floats:
        """Node-seconds until ``nodes`` carried ``wanted`` bytes, with ``share`` of their credit."""
        kind = np.asarray(wanted).dtype
        slowness = (1 / self.baseline).astype(kind)
        if not np.any(self.credit):
            return np.asarray(wanted * slowness)
        spared = (share * self.credit / self.baseline).astype(kind)
        lasting = wanted * slowness - nodes.astype(kind) * spared
        return np.asarray(np.maximum(lasting, wanted * (1 / self.burst).astype(kind)))

    def capped(self, rate: float) -> TokenBucket:
        lasting, burst = (np.minimum(each, rate) for each in (self.baseline, self.burst))
        return TokenBucket(lasting, burst, self.credit)

    def select(self, places: Any) -> TokenBucket:
        return TokenBucket(self.baseline[places], self.burst[places], self.credit[places])
