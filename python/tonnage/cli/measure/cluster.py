"""What ``tonnage measure --cluster`` does: measure on the nodes of a Ray cluster, and print."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from tonnage.base import core, formatting
from tonnage.base.records import ClusterMeasurement, Measurement, Metric
from tonnage.cli.output import print_result
from tonnage.cli.output.cluster_measurement import document, event_line, summary
from tonnage.cli.output.trials import Details, metric_line, no_details, results_line

if TYPE_CHECKING:
    from tonnage.measure.cluster.driver import MeasurementEvents


def measure_and_print(
    address: str,
    out: Path,
    kind: str,
    measure: Callable[..., MeasurementEvents],
    as_json: bool,
    *,
    details: Callable[[Measurement], Details] = no_details,
    trial_line: Callable[[Metric], str] = metric_line,
    more_lines: Callable[[ClusterMeasurement], Iterable[str]] = lambda _: (),
) -> None:
    """Prints what a cluster measures as it arrives; ``measure`` takes a cluster and ``on_status``."""
    (measurement,) = run_and_print(address, kind, measure, as_json, trial_line)
    lines = [*summary(measurement, out, details), *more_lines(measurement), results_line(out)]
    print_result(document(measurement, details), lines, as_json)
    fail_if_missing(measurement)


def run_and_print(
    address: str,
    kind: str,
    measure: Callable[..., MeasurementEvents],
    as_json: bool,
    trial_line: Callable[[Metric], str] = metric_line,
) -> list[ClusterMeasurement]:
    from tonnage.cluster.progress import ClusterProgress
    from tonnage.cluster.ray_adapter import connect

    measurements = []
    with (
        connect(address) as cluster,
        ClusterProgress(f"measuring {kind}") as progress,
        closing(measure(cluster, on_status=progress)) as events,
    ):
        for event in events:
            if isinstance(event, ClusterMeasurement):
                measurements.append(event)
            elif not as_json:
                print(event_line(event, trial_line), flush=True)
    return measurements


def fail_if_missing(*measurements: ClusterMeasurement) -> None:
    """Fails if a node lacks results in any measurement, so that a script notices."""
    rows = [row for each in measurements for row in each.nodes]
    if not any(row.ok for row in rows):
        reasons = formatting.listing(f"{row.node} {row.why}" for row in rows) or "it has no nodes"
        raise core.RunError(f"no node measured: {reasons}")
    # The reason of each is printed already.
    if missing := sorted({row.node for row in rows if not row.ok}):
        count = formatting.several(len({row.node for row in rows}), "node")
        names = formatting.listing(missing)
        raise core.RunError(f"{len(missing)} of {count} did not measure everything: {names}")
