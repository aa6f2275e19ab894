"""The knee of a curve that rises and flattens: the smallest effort that comes near the best.

The EC2 disk study chose its queue depth this way: the smallest one whose throughput is within 5 %
of the best. It is a rule, not an estimate: a curve that is flat near its top may have another knee
when it is measured again.
"""

import math
from collections.abc import Mapping

SHARE = 0.05


def knee(values: Mapping[int, float], share: float = SHARE) -> int:
    """The smallest key whose value is at least ``1 - share`` of the largest value.

    Keys are efforts (threads, operations outstanding); higher values are better.
    """
    if not values or not all(math.isfinite(value) and value >= 0 for value in values.values()):
        raise ValueError("needs at least one value, and all values must be finite and not negative")
    if not 0 <= share < 1:
        raise ValueError(f"share must be at least 0 and less than 1, but is {share}")
    enough = (1 - share) * max(values.values())
    return min(effort for effort, value in values.items() if value >= enough)
