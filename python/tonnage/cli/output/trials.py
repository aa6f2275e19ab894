"""Trials and measurements of one machine on the terminal."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from tonnage.base import formatting
from tonnage.base.credibility import NOT_PROVED
from tonnage.base.records import Measurement, Metric, Summary, Trial
from tonnage.cli.output import print_result
from tonnage.model.study_findings import disk_warnings, short_trial_warnings

Details = tuple[dict[str, Any], list[str]]
"""What a command adds to a measurement: values for its JSON, and lines."""


def no_details(_: Measurement) -> Details:
    return {}, []


def disk_details(measurement: Measurement) -> Details:
    warnings = disk_warnings(trial.phase for trial in measurement.trials)
    warnings += short_trial_warnings(measurement.trials)
    return {"warnings": warnings}, warnings


def latency_parts(p50: float | None, p99: float | None, largest: float | None) -> str:
    known = {"p50": p50, "p99": p99, "max": largest}
    return ", ".join(
        f"{name} {formatting.latency(value)}" for name, value in known.items() if value
    )


def metric_line(metric: Metric) -> str:
    parts = []
    if metric.bandwidth_bytes_per_second is not None:
        parts.append(formatting.rate(metric.bandwidth_bytes_per_second))
    if metric.operations_per_second is not None:
        parts.append(f"{metric.operations_per_second:.0f} operations/s")
    latency = metric.latency_seconds
    if quantiles := latency_parts(latency.p50, latency.p99, latency.max):
        parts.append(f"latency {quantiles}")
    if metric.cached:
        parts.append(f"from a cache: {metric.cached}")
    elif NOT_PROVED in metric.details:
        parts.append(f"a cache cannot be ruled out: {metric.details[NOT_PROVED]}")
    return "; ".join(parts) or "no figures"


def print_trials(
    results: Iterable[Trial | Measurement],
    out: Path,
    as_json: bool,
    details: Callable[[Measurement], Details] = no_details,
    trial_line: Callable[[Metric], str] = metric_line,
) -> None:
    """Prints each trial when it is done, and the measurement at the end; as JSON only that."""
    for each in results:
        if isinstance(each, Trial):
            if not as_json and each.reading:
                print(f"{each.name}: {trial_line(each.reading)}", flush=True)
            continue
        values, lines = details(each)
        lines = [*summary(each), *lines, results_line(out)]
        print_result(each.to_json() | values, lines, as_json)


def results_line(out: Path) -> str:
    return f"Results: {out}. For an HTML report: tonnage report {out}"


def summary(measurement: Measurement) -> list[str]:
    """The figures, how they were obtained, and which rules of credibility they miss."""
    lines = []
    for figure in measurement.figures:
        low, high = figure.low_bytes_per_second, figure.high_bytes_per_second
        between = f"{formatting.megabytes(low)} to {formatting.megabytes(high)}"
        trials = formatting.several(figure.trials, "trial")
        middle = formatting.rate(figure.median_bytes_per_second)
        modes = _modes(measurement, figure)
        lines.append(f"{figure.name}: {modes}{middle} ({between}, {trials}{_precision(figure)})")
    lines.append(
        f"{measurement.id}: page cache {measurement.page_cache}; {measurement.stopping_rule}"
    )
    missed = [item for item in measurement.scorecard if item.verdict != "pass"]
    lines.append(scorecard_line(measurement))
    return lines + [
        f"Not met: {formatting.sentence(f'{item.rule}: {item.reason}')}" for item in missed
    ]


def scorecard_line(measurement: Measurement) -> str:
    met = sum(1 for item in measurement.scorecard if item.verdict == "pass")
    return f"Meets {met} of the {len(measurement.scorecard)} rules of Cloud Truth."


def _modes(measurement: Measurement, figure: Summary) -> str:
    """Where a figure's trials cluster, if in several places: values between them hardly occur."""
    from tonnage.base.stats import multimodality as modes  # Here, since it takes a while to load.

    rates = [each.bytes_per_second for each in measurement.trials if each.name == figure.name]
    if len(rates) < modes.LEAST:
        return ""
    found = modes.modality(rates, level=modes.LEVEL / len(measurement.figures)).modes
    if len(found) < 2:
        return ""
    each = [f"{formatting.rate(mode.value)} ({formatting.percent(mode.share)})" for mode in found]
    return f"{formatting.several(len(found), 'mode')}, {formatting.listing(each)}; median "


def _precision(figure: Summary) -> str:
    if figure.wanted_share is None:
        return ""
    wanted, missing = f"{100 * figure.wanted_share:g} %", figure.still_needed
    needs = (
        "more than a million trials"
        if missing is None
        else formatting.several(missing, "more trial")
    )
    if figure.interval_bytes_per_second is None or figure.reached_share is None:
        return f"; the 95 % interval of the median needs {needs}"
    low, high = map(formatting.megabytes, figure.interval_bytes_per_second)
    reached = f"within {formatting.percent(figure.reached_share)} of it"
    goal = f"goal {wanted} reached" if missing == 0 else f"goal {wanted} needs {needs}"
    return f"; 95 % interval of the median {low} to {high}, {reached}; {goal}"
