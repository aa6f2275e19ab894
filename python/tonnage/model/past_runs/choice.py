"""Which cluster to choose for a job by what is predicted of its times.

Chosen is what is least in the mean of the logarithm of dollars, so that the expected regret, as a
share of what the cheapest cluster costs, is least. With a deadline, a run that is late is made
again, on the cluster that most likely is in time; so a cluster that is hardly sure enough is chosen
only if it is much cheaper.
"""

import numpy as np

from tonnage.model.past_runs.clusters import Floats
from tonnage.model.past_runs.posterior import Times

IN_TIME = 0.75
"""The probability with which a deadline has to be kept."""


def log_dollars(times: Times, usd_per_second: Floats, deadline: float | None = None) -> Floats:
    """Logarithms of what a run costs, and another if it is late: draws times clusters."""
    logs = times.expected + np.log(usd_per_second)
    if deadline is None:
        return logs
    safest = int(np.argmax(times.in_time(deadline)))
    late = times.single > np.log(deadline)
    again: Floats = np.where(late, np.logaddexp(logs, logs[:, [safest]]), logs)
    return again


def cheapest_in_time(seconds: Floats, usd_per_second: Floats, deadline: float) -> int:
    """The place that a law without probabilities chooses: the fastest, if none is in time."""
    in_time = seconds <= deadline
    if not in_time.any():
        return int(np.argmin(seconds))
    return int(np.argmin(np.where(in_time, seconds * usd_per_second, np.inf)))


def cheapest(times: Times, usd_per_second: Floats, deadline: float | None = None) -> int:
    """The place of the cluster to choose.

    If none keeps the deadline with `IN_TIME`, it is the one that most likely does.
    """
    dollars = log_dollars(times, usd_per_second, deadline).mean(axis=0)
    if deadline is not None:
        chance = times.in_time(deadline)
        if chance.max() < IN_TIME:
            return int(np.argmax(chance))
        dollars = np.where(chance >= IN_TIME, dollars, np.inf)
    return int(np.argmin(dollars))
