"""How far jobs are from the law, on which clusters alike, and how much a run varies.

The misfit is a Gaussian process over clusters: alike for as many vCPUs, less for other types. Runs
of the same job vary by some percent, and some vary by far more.
"""

import numpy as np

from tonnage.model.past_runs.clusters import Clusters, Floats

MISFIT = 0.09
"""The standard deviation of the misfit, as a logarithm."""
OF_TYPE = 0.08
"""The same of what is common to all clusters of one type."""
LENGTH = 1.0
"""How far apart, in the logarithm of vCPUs, clusters are still alike."""
SAME_FAMILY, OTHER_FAMILY = 0.6, 0.4
"""The correlation between types."""
OTHER_VARIANT = 0.5
"""The correlation between variants of a job: of other sizes, or with other parameters."""
NOISE = 0.05
"""The scale of a run's own variation, as a logarithm."""
TAIL = 4.0
"""Degrees of freedom of Student's distribution, of noise and misfit."""
ANY_SCALE = 4.0
"""The standard deviation of a job's scale: hardly known before the first run."""


def covariance(clusters: Clusters, variants: np.ndarray) -> Floats:
    """Of the misfit, clusters times clusters; ``variants`` has the number of each one's variant."""
    vcpus = np.log(clusters.nodes * clusters.vcpus)
    apart = (vcpus[:, None] - vcpus[None]) / LENGTH
    same_type = clusters.machine_types[:, None] == clusters.machine_types[None]
    same_family = clusters.families[:, None] == clusters.families[None]
    alike = np.where(same_type, 1.0, np.where(same_family, SAME_FAMILY, OTHER_FAMILY))
    found = MISFIT**2 * np.exp(-(apart**2) / 2) * alike + OF_TYPE**2 * same_type
    same_variant = variants[:, None] == variants[None]
    result: Floats = found * np.where(same_variant, 1.0, OTHER_VARIANT) + ANY_SCALE**2
    return result
