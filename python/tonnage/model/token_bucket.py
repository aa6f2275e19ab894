"""Credits: what carries more for a while than it does for good, as a token bucket.

A bucket fills at what lasts and holds a credit; while there is any, the burst is carried. From a
full bucket, t seconds carry min(burst * t, lasting * t + credit) at most, so of N nodes that have W
bytes together

    seconds = max(W / (N * burst), (W - N * credit) / (N * lasting))

Of buckets in a row each bounds the time, and the longest bound is reached (greedy shapers: Le
Boudec and Thiran, Network Calculus, section 1.5).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[Any]


@dataclass(frozen=True, eq=False)
class TokenBucket:
    """Of each node, in bytes and bytes a second (of cores: seconds and cores)."""

    baseline: Floats
    burst: Floats
    credit: Floats
    """0 where there is none, or none is known: a burst without one is not counted on."""

    @staticmethod
    def constant(rate: float) -> TokenBucket:
        """Without credits."""
        return TokenBucket(np.asarray(rate), np.asarray(rate), np.asarray(0.0))

    def node_seconds(self, wanted: Floats, nodes: Floats, share: float) -> Floats:
        """Node-seconds until nodes have carried ``wanted`` bytes together.

        Args:
            wanted: Bytes of all nodes.
            nodes: How many they are.
            share: What share of the credit is for this; the rest is for other phases.
        """
        kind = np.asarray(wanted).dtype
        slowness = (1 / self.baseline).astype(kind)
        if not np.any(self.credit):
            return np.asarray(wanted * slowness)
        spared = (share * self.credit / self.baseline).astype(kind)
        lasting = wanted * slowness - nodes.astype(kind) * spared
        return np.asarray(np.maximum(lasting, wanted * (1 / self.burst).astype(kind)))

    def capped(self, rate: float) -> TokenBucket:
        """The same where no more is asked for."""
        lasting, burst = (np.minimum(each, rate) for each in (self.baseline, self.burst))
        return TokenBucket(lasting, burst, self.credit)

    def select(self, places: Any) -> TokenBucket:
        """Those at these places."""
        return TokenBucket(self.baseline[places], self.burst[places], self.credit[places])
