"""The reductions of ``tonnage run reduce``, with the options of each; or a user's own."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from tonnage.base import core, formatting
from tonnage.cli.options.types import Count, Option, number
from tonnage.cli.options.user_code import load_object

if TYPE_CHECKING:
    from tonnage.run.reduce import Reduction
    from tonnage.run.reduce.sampling import FromSample

BUILT_IN = ("kmeans", "pca", "regression", "pagerank", "histogram")
REDUCTIONS_OF_OPTION = {
    "k": ("kmeans",),
    "iterations": ("kmeans", "pagerank"),
    "tolerance": ("kmeans", "pagerank"),
    "seed": ("kmeans",),
    "restarts": ("kmeans",),
    "components": ("pca",),
    "target": ("regression",),
    "damping": ("pagerank",),
    "precision": ("histogram",),
}
PAGERANK_ITERATIONS = 100
SAMPLE_ROWS = 10_000
"""Rows from which the first centres are drawn."""


@dataclass(frozen=True, kw_only=True)
class ReductionOptions:
    k: Annotated[int | None, Count("kmeans: number of centres.", 1, 1 << 20)] = None
    iterations: Annotated[
        int | None,
        Count(
            "kmeans, pagerank: maximum number of iterations. Default: 1 for kmeans, 100 for "
            "pagerank.",
            1,
            1 << 20,
        ),
    ] = None
    tolerance: Annotated[
        float | None,
        Option(
            "X",
            "kmeans: stop when no centre moves farther than this; pagerank: stop when ranks "
            "change by no more than this in total. Default: 0 for kmeans, 1e-6 for pagerank.",
            number(0, 1e300),
        ),
    ] = None
    seed: Annotated[
        int | None, Count("kmeans: random seed of the initial centres. Default: 0.", 0, 1 << 62)
    ] = None
    restarts: Annotated[
        int | None,
        Count(
            "kmeans: number of random initializations to try; the best one is used. Default: 1.",
            1,
            1000,
        ),
    ] = None
    components: Annotated[int | None, Count("pca: number of principal components.", 1, 1 << 20)] = (
        None
    )
    target: Annotated[
        int | None,
        Count(
            "regression: index of the target column, from 0. Default: the last column.",
            -(1 << 20),
            1 << 20,
        ),
    ] = None
    damping: Annotated[
        float | None, Option("X", "pagerank: damping factor. Default: 0.85.", number(0, 1))
    ] = None
    precision: Annotated[
        float | None,
        Option(
            "X",
            "histogram: maximum relative error of a quantile. Default: 0.01.",
            number(1e-6, 0.5),
        ),
    ] = None

    def given_options(self, job: str) -> dict[str, Any]:
        values = {
            field.name: value
            for field in dataclasses.fields(self)
            if (value := getattr(self, field.name)) is not None
        }
        for name in values:
            reductions = REDUCTIONS_OF_OPTION[name]
            if job not in reductions:
                raise core.UsageError(
                    f"--{name} applies only to {formatting.listing(reductions)}, not to {job}; "
                    "remove it"
                )
        return values


def refuse_unknown_reduction(job: str) -> None:
    if job not in BUILT_IN and ":" not in job:
        close = formatting.did_you_mean(job, BUILT_IN)
        raise core.UsageError(
            f"JOB {job} is not valid{close}; use {', '.join(BUILT_IN)} or MODULE:NAME"
        )


def most_rounds(job: str, given: dict[str, Any]) -> int | None:
    """How many rounds there are at most; ``None`` if only the reduction knows."""
    if job not in BUILT_IN:
        return None
    if job == "pagerank":
        return 1 + int(given.get("iterations", PAGERANK_ITERATIONS))  # The first counts edges.
    return int(given.get("iterations", 1))


def make_reduction(
    job: str, given: dict[str, Any], columns: list[str] | None
) -> Reduction[Any] | FromSample:
    from tonnage.run.reduce.builtin.histogram import Histograms
    from tonnage.run.reduce.builtin.pagerank import PageRank
    from tonnage.run.reduce.builtin.pca import PCA
    from tonnage.run.reduce.builtin.regression import Regression

    if job == "kmeans":
        return _kmeans(given, columns)
    if job == "pca":
        if "components" not in given:
            raise core.UsageError(
                "pca needs the number of principal components; add --components, like --components "
                "8"
            )
        return PCA(given["components"], columns)
    if job == "regression":
        return Regression(given.get("target", -1), columns)
    if job == "pagerank":
        return PageRank(
            given.get("damping", 0.85),
            given.get("tolerance", 1e-6),
            given.get("iterations", PAGERANK_ITERATIONS),
            columns,
        )
    if job == "histogram":
        return Histograms(given.get("precision", 0.01), columns)
    return _user_reduction(job)


def _kmeans(given: dict[str, Any], columns: list[str] | None) -> FromSample:
    from tonnage.run.formats import as_points
    from tonnage.run.reduce.builtin.kmeans import KMeans, best_centres
    from tonnage.run.reduce.sampling import FromSample

    if "k" not in given:
        raise core.UsageError("kmeans needs the number of centres; add --k, like --k 16")

    def from_rows(rows: Any) -> Reduction[Any]:
        drawing = given.get("seed", 0), given.get("restarts", 1)
        centres = best_centres(as_points(rows, columns), given["k"], *drawing)
        return KMeans(centres, given.get("iterations", 1), given.get("tolerance", 0.0), columns)

    return FromSample(SAMPLE_ROWS, from_rows)


def _user_reduction(place: str) -> Reduction[Any]:
    from tonnage.run.reduce import Reduction

    found = load_object(place, Reduction, "tonnage.Reduction")
    if isinstance(found, type):
        try:
            found = found()
        except TypeError as error:
            raise core.UsageError(
                f"{place}: {error}; use an instance instead of the class"
            ) from error
    reduction: Reduction[Any] = found
    return reduction
