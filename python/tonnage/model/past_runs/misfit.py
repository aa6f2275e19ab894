"""How far jobs are from the law, on which clusters alike, and how much a run varies.

The misfit is a Gaussian process over clusters and inputs: alike for as many vCPUs and as much
data, less for other types. Runs of the same job vary by some percent, and some vary by far more.
"""

from dataclasses import dataclass

import numpy as np

from tonnage.model.past_runs.clusters import Clusters, Floats, Integers

ANY_SCALE = 4.0
"""The standard deviation of a job's scale, as a logarithm: hardly known before the first run."""


@dataclass(frozen=True)
class Misfit:
    """Spreads are standard deviations of logarithms."""

    spread: float = 0.09
    of_type: float = 0.1
    """What is common to all clusters of one type."""
    length: float = 1.0
    """How far apart, in the logarithm of vCPUs, clusters are still alike."""
    size_length: float = 2.0
    """The same of input sizes."""
    same_family: float = 0.6
    other_family: float = 0.4
    """The correlation between types."""
    other_variant: float = 0.5
    """The correlation between variants of a job: of other sizes, or with other parameters."""
    noise: float = 0.05
    """The scale of a run's own variation."""
    tail: float = 4.0
    """Degrees of freedom of Student's distribution, of noise and misfit."""

    def covariance(self, clusters: Clusters, variants: Integers, log_sizes: Floats) -> Floats:
        """Of the misfit and the job's scale, clusters times clusters.

        Args:
            clusters: The clusters.
            variants: The number of each one's variant.
            log_sizes: Logarithms of input sizes; NaN where unknown.
        """
        far = _differences(np.log(clusters.nodes * clusters.vcpus)) / self.length
        other_size = _differences(np.nan_to_num(log_sizes)) / self.size_length
        same_type = _same(clusters.machine_types)
        alike = np.where(
            same_type,
            1.0,
            np.where(_same(clusters.families), self.same_family, self.other_family),
        )
        found = self.spread**2 * np.exp(-(far**2) / 2) * alike + self.of_type**2 * same_type
        found *= np.exp(-(other_size**2) / 2)
        result: Floats = found * np.where(_same(variants), 1.0, self.other_variant) + ANY_SCALE**2
        return result


MISFIT = Misfit()


def _differences(values: Floats) -> Floats:
    difference: Floats = values[:, None] - values[None]
    return difference


def _same(numbers: Integers) -> np.ndarray:
    return np.asarray(numbers[:, None] == numbers[None])
