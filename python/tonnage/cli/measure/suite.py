"""How a measurement is run, here or on a cluster, and printed."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from tonnage.base import core
from tonnage.base.records import Measurement, Metric
from tonnage.cli.measure.cluster import print_measurement, run_and_print
from tonnage.cli.measure.options import ClusterOptions, Work
from tonnage.cli.options.cluster import refuse_without_ray
from tonnage.cli.options.files import command_line
from tonnage.cli.output.trials import Details, metric_line, no_details, print_trials


@dataclass(frozen=True, kw_only=True)
class Suite:
    """What a command measures, and how its results are printed."""

    kind: str
    work: Work
    settings: Mapping[str, Any]
    """As a cluster's record keeps them, the same for all nodes."""
    total_bytes: int = 0
    """Bytes that are moved before the time-limited part, for progress."""
    total_seconds: float = 0.0
    """How long that part is."""
    pause_seconds: float = 0.0
    """How long a node moves nothing although all is well."""
    in_step: bool = False
    """Whether nodes do each trial together: all repeat one that a node has not done."""
    details: Callable[[Measurement], Details] = no_details
    trial_line: Callable[[Metric], str] = metric_line


def run_suite(suite: Suite, options: ClusterOptions) -> None:
    out = options.directory(suite.kind)
    if options.cluster is None:
        with core.Progress("measuring", suite.total_bytes, suite.total_seconds) as progress:
            results = suite.work(None)(
                out, command=command_line(), labels=options.labels, on_progress=progress
            )
            print_trials(results, out, options.as_json, suite.details, suite.trial_line)
        return
    refuse_without_ray()
    from tonnage.measure.cluster.driver import MeasurementRequest, measure_cluster

    request = MeasurementRequest(
        kind=suite.kind,
        work=suite.work,
        settings=suite.settings,
        pause_seconds=suite.pause_seconds,
        in_step=suite.in_step,
        **options.request,
    )
    measure = partial(measure_cluster, out=out, request=request)
    (measurement,) = run_and_print(suite.kind, options, measure, suite.trial_line)
    print_measurement(measurement, out, options.as_json, suite.details)
