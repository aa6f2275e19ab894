"""How often spot machines are taken back.

AWS's Spot Instance Advisor states the share of a type's machines that it took back within a month,
in classes: less than 5 %, 5 to 10 %, and so on, more than 20 %. A class counts by its upper end,
and the last one, which has none, by its lower end. Spread evenly over the month, a share p is
``-ln(1 - p)`` a machine and month. That the machines ran for the month is an assumption: AWS does
not say for how long they did.
"""

import math
import re

from tonnage.catalog import Spot

MONTH_SECONDS = 730 * 3600.0


def interruptions_per_second(spot: Spot) -> float | None:
    """Of one machine; ``None`` is unknown."""
    percents = [float(each) for each in re.findall(r"\d+(?:\.\d+)?", spot.interrupted or "")]
    if not percents or not percents[-1] < 100:
        return None
    return -math.log(1 - percents[-1] / 100) / MONTH_SECONDS
