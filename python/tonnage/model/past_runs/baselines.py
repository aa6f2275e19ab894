"""What simpler laws say of a job's times, to compare with.

    cores x speed   as long as the cores of the last run's cluster, at its speed, would take
    a + b/n         Amdahl's law: a part that does not shrink and one that does
    Ernest          a + b/n + c log n + d n, none negative (Venkataraman et al., NSDI 2016)

Here n is the cores of a cluster times their speed, and b is in proportion to the input, so that the
laws hold for other machine types, too; as published, with n the number of machines, they do not.
"""

from collections.abc import Callable

import numpy as np
from scipy.optimize import nnls

from tonnage.model.past_runs.clusters import Clusters, Floats

Baseline = Callable[[Clusters, Floats, Floats, Clusters, Floats], Floats]
"""From clusters, sizes and seconds of runs to the seconds of other clusters and sizes."""


def cores_times_speed(
    runs: Clusters, sizes: Floats, seconds: Floats, others: Clusters, other_sizes: Floats
) -> Floats:
    """The geometric mean of what each run, scaled, says."""
    work = np.exp(np.mean(np.log(seconds * _cores(runs) / sizes)))
    result: Floats = work * other_sizes / _cores(others)
    return result


def amdahl(
    runs: Clusters, sizes: Floats, seconds: Floats, others: Clusters, other_sizes: Floats
) -> Floats:
    return _fit(
        lambda clusters, size: [np.ones_like(size), size / _cores(clusters)],
        *(runs, sizes, seconds, others, other_sizes),
    )


def ernest(
    runs: Clusters, sizes: Floats, seconds: Floats, others: Clusters, other_sizes: Floats
) -> Floats:
    return _fit(
        lambda clusters, size: [
            np.ones_like(size),
            size / _cores(clusters),
            np.log(_cores(clusters)),
            _cores(clusters),
        ],
        *(runs, sizes, seconds, others, other_sizes),
    )


BASELINES: dict[str, Baseline] = {
    "cores x speed": cores_times_speed,
    "a + b/n": amdahl,
    "Ernest": ernest,
}


def _cores(clusters: Clusters) -> Floats:
    return clusters.nodes * clusters.cores


def _fit(
    terms: Callable[[Clusters, Floats], list[Floats]],
    runs: Clusters,
    sizes: Floats,
    seconds: Floats,
    others: Clusters,
    other_sizes: Floats,
) -> Floats:
    """Non-negative least squares of relative errors; one run tells only the work."""
    if len(runs) < 2:
        return cores_times_speed(runs, sizes, seconds, others, other_sizes)
    made = np.column_stack(terms(runs, sizes)) / seconds[:, None]
    weights, _ = nnls(made, np.ones(len(seconds)))
    result: Floats = np.column_stack(terms(others, other_sizes)) @ weights
    return np.maximum(result, 1e-9)
