"""What ``tonnage measure --cluster`` does: measure on the nodes of a Ray cluster, and print."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from tonnage.base import core, formatting
from tonnage.base.records import ClusterMeasurement, Measurement, Metric
from tonnage.cli.measure.options import ClusterOptions
from tonnage.cli.output import print_result
from tonnage.cli.output.cluster_measurement import document, event_line, summary
from tonnage.cli.output.trials import Details, metric_line, no_details, results_line

if TYPE_CHECKING:
    from tonnage.measure.cluster.driver import MeasurementEvents


def run_and_print(
    kind: str,
    options: ClusterOptions,
    measure: Callable[..., MeasurementEvents],
    trial_line: Callable[[Metric], str] = metric_line,
) -> list[ClusterMeasurement]:
    """Prints a cluster's results as they arrive; ``measure`` takes a cluster and ``on_status``."""
    from tonnage.cluster.progress import ClusterProgress
    from tonnage.cluster.ray_adapter import connect

    assert options.cluster is not None
    measurements = []
    with (
        connect(options.cluster) as cluster,
        ClusterProgress(f"measuring {kind}") as progress,
        closing(measure(cluster, on_status=progress)) as events,
    ):
        for event in events:
            if isinstance(event, ClusterMeasurement):
                measurements.append(event)
            elif not options.as_json:
                print(event_line(event, trial_line), flush=True)
    return measurements


def print_measurement(
    measurement: ClusterMeasurement,
    out: Path,
    as_json: bool,
    details: Callable[[Measurement], Details] = no_details,
    more_lines: Iterable[str] = (),
) -> None:
    """Prints a measurement; fails if a node is missing, by then the others' results are kept."""
    lines = [*summary(measurement, out, details), *more_lines, results_line(out)]
    print_result(document(measurement, details), lines, as_json)
    fail_if_missing(measurement)


def fail_if_missing(*measurements: ClusterMeasurement) -> None:
    """Fails if a node lacks results in any measurement, so that a script notices."""
    rows = [row for each in measurements for row in each.nodes]
    if not any(row.ok for row in rows):
        reasons = (
            formatting.listing(f"{row.node} {row.why}" for row in rows)
            or "the cluster has no nodes"
        )
        raise core.RunError(f"no node returned results: {reasons}")
    # The reason of each is printed already.
    if missing := sorted({row.node for row in rows if not row.ok}):
        count = formatting.several(len({row.node for row in rows}), "node")
        names = formatting.listing(missing)
        raise core.RunError(f"{len(missing)} of {count} did not return all results: {names}")
