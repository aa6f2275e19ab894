"""From some runs of a job to its likely demands, and from those to its times on other clusters.

Draws of the prior are weighted by how well they explain the runs (importance sampling). Given its
demands, a job's times are a Student process around the law: the runs' misfits tell its scale, and
move the prediction of clusters that are like theirs. A prediction is a mixture over some of the
draws, so it may have two modes, as where it is open whether a working set fits into memory.

A run that was stopped unfinished took at least that long. A run that failed says nothing of time,
but draws by which it had too little memory explain it better.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import special

from tonnage.model.past_runs.clusters import REFERENCE, Clusters, Flags, Floats, Integers
from tonnage.model.past_runs.law import Demands, lacks_memory, log_times
from tonnage.model.past_runs.misfit import MISFIT, Misfit
from tonnage.model.past_runs.prior import PRIOR, SEED, Prior, prior_draws

KEPT = 600
"""Draws that a prediction mixes."""
FEW_RUNS, LIKELY_DRAWS = 12, 2_000
"""Of more runs, so few decide which draws are weighted by all of them: that saves time, and more
would leave as few draws."""
USUAL_LOG_SECONDS = 6.0
"""The logarithm of 400 s, what the jobs took on the reference cluster from which the prior is."""
UNKNOWN_FACTOR = 1.0
"""How far the work of another variant may be from that of the job, as a logarithm, where the size
of its input is not known."""
PARAMETER_POWER = (0.5, 0.6)
"""By which power of a parameter work grows: its mean and standard deviation."""
ROUNDING = 1e-6
"""Added to variances, since clusters that hardly differ are hardly told apart; 0.1 % of a time."""
FAILED_BY_CHANCE, FAILED_FOR_MEMORY = 0.01, 0.1
"""How often runs fail with enough memory, and with too little. Of 621 public runs of nine jobs ten
failed: four on the clusters that had least memory, six for no such reason."""


@dataclass(frozen=True)
class RunsOf:
    """Runs of a job and of its variants, or clusters to predict; arrays over runs.

    Attributes:
        clusters: Their clusters.
        log_sizes: Logarithms of input sizes relative to the job's own; NaN where unknown.
        variants: 0 for the job's own, another number for each variant.
        log_parameters: Logarithms of numeric parameters relative to the job's own, runs times
            parameters.
    """

    clusters: Clusters
    log_sizes: Floats
    variants: Integers
    log_parameters: Floats

    def __len__(self) -> int:
        return len(self.log_sizes)

    def at(self, places: Sequence[int] | Integers) -> "RunsOf":
        where = np.asarray(places, dtype=np.int64)
        return RunsOf(
            self.clusters.at(where),
            self.log_sizes[where],
            self.variants[where],
            self.log_parameters[where],
        )

    def which(self, flags: Flags) -> "RunsOf":
        return self.at(np.flatnonzero(flags))

    def __add__(self, other: "RunsOf") -> "RunsOf":
        return RunsOf(
            self.clusters + other.clusters,
            np.concatenate([self.log_sizes, other.log_sizes]),
            np.concatenate([self.variants, other.variants]),
            np.concatenate([self.log_parameters, other.log_parameters]),
        )


@dataclass(frozen=True)
class Outcomes:
    """How runs ended; arrays over runs.

    Attributes:
        log_seconds: Logarithms of what they took, or of the time after which they were stopped.
        stopped: Which were stopped.
        failed: Which failed.
    """

    log_seconds: Floats
    stopped: Flags
    failed: Flags

    @classmethod
    def of_finished(cls, log_seconds: Floats) -> "Outcomes":
        none = np.zeros(len(log_seconds), dtype=bool)
        return cls(log_seconds, none, none)

    @property
    def finished(self) -> Flags:
        return ~(self.stopped | self.failed)


@dataclass(frozen=True)
class Times:
    """Draws of times on clusters, in logarithms of seconds: draws times clusters.

    ``expected`` is without the variation from run to run, ``single`` with it.
    """

    expected: Floats
    single: Floats

    def at(self, places: Sequence[int] | Integers) -> "Times":
        where = np.asarray(places, dtype=np.int64)
        return Times(self.expected[:, where], self.single[:, where])

    @property
    def seconds(self) -> Floats:
        """The median of each cluster."""
        median: Floats = np.exp(np.median(self.expected, axis=0))
        return median

    def interval(self, confidence: float) -> tuple[Floats, Floats]:
        """The bounds between which a run lies with this probability, in seconds."""
        outside = (1 - confidence) / 2
        low, high = np.exp(np.quantile(self.single, [outside, 1 - outside], axis=0))
        return low, high

    def in_time(self, seconds: float) -> Floats:
        """The probability that a run keeps the deadline, by cluster."""
        kept: Floats = (self.single <= np.log(seconds)).mean(axis=0)
        return kept


def predict(
    known: RunsOf,
    outcomes: Outcomes,
    targets: RunsOf,
    families: int,
    seed: int = SEED,
    prior: Prior = PRIOR,
    misfit: Misfit = MISFIT,
) -> Times:
    """Predict the times of targets from the runs that are known, at least one of them finished.

    Args:
        known: The runs.
        outcomes: How they ended.
        targets: What to predict.
        families: How many families of machine types there are.
        seed: Of the draws.
        prior: Of the job's demands.
        misfit: How far jobs are from the law, and runs from each other.
    """
    dice = np.random.default_rng(seed)
    finished, taken = known.which(outcomes.finished), outcomes.log_seconds[outcomes.finished]
    large = log_scale(finished, taken)
    demands = prior_draws(families, prior=prior).of_scale(large)
    variants = _Variants.drawn(len(demands), known + targets, dice)
    if len(finished) > FEW_RUNS:
        few = np.linspace(0, len(finished) - 1, FEW_RUNS).astype(np.int64)
        screened = _Explained(demands, variants, finished.at(few), taken[few], misfit)
        likely = np.argsort(-screened.log_weights, kind="stable")[:LIKELY_DRAWS]
        demands, variants = demands.at(likely), variants.at(likely)
    runs = _Explained(demands, variants, finished, taken, misfit)
    weights = runs.log_weights
    if outcomes.stopped.any():
        stopped, until = known.which(outcomes.stopped), outcomes.log_seconds[outcomes.stopped]
        weights = weights + runs.log_chance_of_more(demands, variants, stopped, until)
    ended = ~outcomes.stopped
    weights = weights + variants.log_chance_of_outcomes(
        demands, known.which(ended), outcomes.failed[ended]
    )
    weights = np.nan_to_num(weights, nan=-np.inf)
    weights = np.exp(weights - weights.max())
    kept = dice.choice(len(demands), KEPT, p=weights / weights.sum())
    return runs.predict(demands, variants, kept, targets, dice)


def log_scale(runs: RunsOf, log_seconds: Floats) -> float:
    """How much larger a job is than those from which the prior is, as a logarithm: by the time of
    all vCPUs of a run."""
    vcpus = runs.clusters.nodes * runs.clusters.vcpus
    usual = REFERENCE.nodes * REFERENCE.vcpus
    sizes = np.nan_to_num(runs.log_sizes)
    return float(np.median(log_seconds + np.log(vcpus / usual) - sizes) - USUAL_LOG_SECONDS)


@dataclass(frozen=True)
class _Variants:
    """Draws of how variants of a job differ from it."""

    log_factors: Floats
    """By draw and variant: of the size where it is unknown."""
    powers: Floats
    """By draw and parameter."""

    @classmethod
    def drawn(cls, count: int, runs: RunsOf, dice: np.random.Generator) -> "_Variants":
        variants = int(runs.variants.max()) + 1
        factors = dice.normal(0.0, UNKNOWN_FACTOR, (count, variants))
        factors[:, 0] = 0.0
        parameters = runs.log_parameters.shape[1]
        return cls(factors, dice.normal(*PARAMETER_POWER, (count, parameters)))

    def at(self, places: Integers) -> "_Variants":
        return _Variants(self.log_factors[places], self.powers[places])

    def log_times(self, demands: Demands, runs: RunsOf) -> Floats:
        work = self.powers @ runs.log_parameters.T
        return USUAL_LOG_SECONDS + log_times(demands, runs.clusters, self._log_sizes(runs), work)

    def log_chance_of_outcomes(self, demands: Demands, runs: RunsOf, failed: Flags) -> Floats:
        """The logarithm of the probability that these fail and the others do not."""
        lacking = lacks_memory(demands, runs.clusters, self._log_sizes(runs))
        chance = FAILED_BY_CHANCE + (FAILED_FOR_MEMORY - FAILED_BY_CHANCE) * lacking
        total: Floats = np.log(np.where(failed, chance, 1 - chance)).sum(axis=1)
        return total

    def _log_sizes(self, runs: RunsOf) -> Floats:
        return np.where(
            np.isnan(runs.log_sizes), self.log_factors[:, runs.variants], runs.log_sizes
        )


class _Explained:
    """Finished runs, and how well each draw explains them."""

    def __init__(
        self,
        demands: Demands,
        variants: _Variants,
        runs: RunsOf,
        log_seconds: Floats,
        misfit: Misfit,
    ) -> None:
        self._runs, self._misfit = runs, misfit
        self._rest = log_seconds - variants.log_times(demands, runs)
        self._inverse = np.linalg.inv(self._covariance(runs) + misfit.noise**2 * np.eye(len(runs)))
        self._distance = np.sum(self._rest @ self._inverse * self._rest, axis=1)
        self._freedom = misfit.tail + len(runs)

    @property
    def log_weights(self) -> Floats:
        weights: Floats = -self._freedom / 2 * np.log1p(self._distance / self._misfit.tail)
        return weights

    def log_chance_of_more(
        self, demands: Demands, variants: _Variants, stopped: RunsOf, log_seconds: Floats
    ) -> Floats:
        """The logarithm of the probability that these took longer, each by itself."""
        centers, spread = self._conditional(demands, variants, stopped, slice(None))
        deviation = np.sqrt(np.diag(spread) + self._misfit.noise**2)
        return np.asarray(special.log_ndtr((centers - log_seconds) / deviation).sum(axis=1))

    def predict(
        self,
        demands: Demands,
        variants: _Variants,
        kept: Integers,
        targets: RunsOf,
        dice: np.random.Generator,
    ) -> Times:
        centers, spread = self._conditional(demands.at(kept), variants.at(kept), targets, kept)
        root = np.linalg.cholesky(spread + ROUNDING * np.eye(len(targets)))
        scale = (self._misfit.tail + self._distance[kept]) / dice.chisquare(
            self._freedom, len(kept)
        )
        expected = centers + np.sqrt(scale)[:, None] * (dice.normal(size=centers.shape) @ root.T)
        noise = self._misfit.noise * dice.standard_t(self._misfit.tail, size=expected.shape)
        return Times(expected, expected + noise)

    def _conditional(
        self, demands: Demands, variants: _Variants, others: RunsOf, which: Integers | slice
    ) -> tuple[Floats, Floats]:
        """The center of each draw on other clusters, given the runs, and their covariance."""
        count = len(self._runs)
        joint = self._covariance(self._runs + others)
        across = joint[count:, :count]
        gain = across @ self._inverse
        centers = variants.log_times(demands, others) + self._rest[which] @ gain.T
        return centers, joint[count:, count:] - gain @ across.T

    def _covariance(self, runs: RunsOf) -> Floats:
        return self._misfit.covariance(runs.clusters, runs.variants, runs.log_sizes)
