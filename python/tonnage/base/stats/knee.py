"""The knee of a curve that rises and flattens: the smallest effort that comes near the best.

As the fleet study chose how many operations to keep outstanding: the smallest number whose
throughput is within 5 % of the best. It is a rule, not an estimate: a curve that is flat near its
top may have another knee when it is measured again.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

SHARE = 0.05


def knee(values: Mapping[int, float], share: float = SHARE) -> int:
    """The smallest key whose value is at least ``1 - share`` of the largest value.

    Args:
        values: What each effort (threads, operations at once) gives; the more, the better.
        share: How far below the best is near it, from 0 to less than 1.

    Raises:
        ValueError: There are no values, or one is not finite or less than zero, or the share is
            none.
    """
    if not values or not all(math.isfinite(value) and value >= 0 for value in values.values()):
        raise ValueError("give values that are finite and not less than zero, one at least")
    if not 0 <= share < 1:
        raise ValueError(f"{share} is no share: give 0 or more, and less than 1")
    enough = (1 - share) * max(values.values())
    return min(effort for effort, value in values.items() if value >= enough)
