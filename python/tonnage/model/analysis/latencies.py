"""How long single operations took: histograms over the logarithm, one instance at a time.

A tool's bins, of whatever widths, are put into bins of `PER_DECADE` to each factor of ten: a bin is
counted where its value lies. That is coarser than our own bins, whose error is far below such a
width, so that spikes can be told from noise. Of many instances three are shown, the best, the one
in the middle and the worst: put together, a few slow machines would look like a slow tail of all.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

from tonnage.base.records.analysis import LatencyHistogram
from tonnage.model.analysis.grouping import Sample, by_instance, measurement_ids

PER_DECADE = 16


def latency_histograms(order: Sequence[str], samples: Sequence[Sample]) -> list[LatencyHistogram]:
    """Of the best, the middle and the worst instance of those, in order, that have bins."""
    of = by_instance(samples)
    told = [name for name in order if any(each.reading.bins for each in of[name])]
    if not told:
        return []
    places = {0: "best", len(told) // 2: "middle", len(told) - 1: "worst"}
    if len(told) == 1:
        places = {0: "only"}
    elif len(told) == 2:
        places = {0: "best", 1: "worst"}
    found = (_histogram(told[place], role, of[told[place]]) for place, role in places.items())
    return [each for each in found if each]


def _histogram(name: str, role: str, samples: Sequence[Sample]) -> LatencyHistogram | None:
    counts: Counter[int] = Counter()
    for sample in samples:
        for seconds, count in sample.reading.bins or []:
            if seconds > 0 and count:
                counts[math.floor(PER_DECADE * math.log10(seconds))] += count
    if not counts:
        return None
    first, last, total = min(counts), max(counts), counts.total()
    return LatencyHistogram(
        instance=name,
        role=role,
        count=total,
        edges_seconds=[10 ** (place / PER_DECADE) for place in range(first, last + 2)],
        shares=[counts[place] / total for place in range(first, last + 1)],
        measurements=measurement_ids(each for each in samples if each.reading.bins),
    )
