"""Turn the core's report of a run into a trial: the rate in each window after the warm-up."""

import datetime
import secrets
import statistics
from typing import Any

from tonnage.base.core import stage_stats
from tonnage.base.records import Summary, Trial
from tonnage.base.stats.quantiles import quantile_estimate
from tonnage.base.stats.sample_size import Precision, precision

WARM_UP_SECONDS = 0.5
"""Left out at the start of a trial; of a trial shorter than four of these, a quarter."""
STOPPING_RULE = (
    "each trial ends when its time is up or when it has gone through its data once; its first "
    f"{WARM_UP_SECONDS} s, or its first quarter if that is less, is warm-up and not counted, nor "
    "is what leaves the pipeline after the source has ended"
)
WINDOW_SECONDS = 0.25
"""Length of a window with a rate of its own."""
CONFIDENCE = 0.95
"""Of the interval of a median."""
WANTED_SHARE = 0.05
"""The median's interval should lie within this share of it, by default."""


def trial_from_phase(reported: dict[str, Any], seconds: float) -> Trial:
    """Make a trial of at most ``seconds`` from a phase of the core's report.

    The warm-up is left out, and so is what left the pipeline after its source ended. If nothing
    remains, as for a trial that fits in the pipeline's buffers, everything counts. The rate is that
    of the graph's last stage: its output has passed all stages.
    """
    timeline = reported["timeline"]
    ended = min(seconds, _source_ended(timeline))
    warm_up = min(WARM_UP_SECONDS, ended / 4)
    counted = [s for s in timeline if warm_up <= s["seconds"] <= ended]
    outputs = {sample["stages"][-1]["bytes"] for sample in counted}
    # It ended before it was sampled, or before its buffers were full: everything counts.
    if len(outputs) < 2:
        zero = {"bytes": 0, "cpu_seconds": 0.0}
        start = {"seconds": 0.0, "stages": [zero for _ in reported["stages"]]}
        counted = [start, {"seconds": reported["seconds"], "stages": reported["stages"]}]
    steady = [(sample["seconds"], sample["stages"][-1]["bytes"]) for sample in counted]
    cpu = [sum(stage["cpu_seconds"] for stage in sample["stages"]) for sample in counted]
    moved = steady[-1][1] - steady[0][1]
    return Trial(
        name=reported["name"],
        bytes_per_second=_rate(steady[0], steady[-1]),
        cpu_seconds_per_byte=(cpu[-1] - cpu[0]) / moved if moved else 0.0,
        warm_up_seconds=steady[0][0],
        rates=_windows(steady),
        phase=stage_stats.phase_record(reported),
    )


def summaries(trials: list[Trial]) -> list[Summary]:
    kinds: dict[str, list[Trial]] = {}
    for trial in trials:
        kinds.setdefault(trial.name, []).append(trial)
    return [
        summarise(
            name, [trial.bytes_per_second for trial in same_kind], _wanted_share(same_kind[0])
        )
        for name, same_kind in kinds.items()
    ]


def summarise(name: str, rates: list[float], wanted_share: float = WANTED_SHARE) -> Summary:
    """Summarise the rates (bytes per second) of one kind of trial, with the median's interval."""
    interval = quantile_estimate(rates, 0.5, CONFIDENCE).interval
    precision_ = median_precision(rates, wanted_share)
    return Summary(
        name=name,
        trials=len(rates),
        median_bytes_per_second=statistics.median(rates),
        low_bytes_per_second=min(rates),
        high_bytes_per_second=max(rates),
        interval_bytes_per_second=(interval.low_value, interval.high_value) if interval else None,
        reached_share=precision_.reached_share if precision_ else None,
        wanted_share=precision_.wanted_share if precision_ else None,
        still_needed=precision_.still_needed if precision_ else None,
    )


def median_precision(rates: list[float], share: float) -> Precision | None:
    """How precisely the median is known; None without rates, or if it is zero."""
    return precision(rates, share, CONFIDENCE) if rates and statistics.median(rates) else None


def page_cache_use(phases: list[dict[str, Any]]) -> str:
    modes = [mode for phase in phases for mode in phase["disk_modes"]]
    if not modes:
        return "untouched: no file was read or written"
    if all(mode["direct"] for mode in modes):
        return "bypassed: all files were read and written directly"
    return "in the way: direct I/O was refused, pages were dropped after each use"


def new_id(kind: str) -> str:
    moment = datetime.datetime.now(datetime.UTC).strftime("%Y%m%dT%H%M%SZ")
    return f"{kind}-{moment}-{secrets.token_hex(3)}"


def _wanted_share(trial: Trial) -> float:
    return (trial.step and trial.step.until_confidence) or WANTED_SHARE


def _source_ended(timeline: list[dict[str, Any]]) -> float:
    last = timeline[-1]["stages"][0]["bytes"] if timeline else 0
    return next((s["seconds"] for s in timeline if s["stages"][0]["bytes"] == last), 0.0)


def _rate(first: tuple[float, int], last: tuple[float, int]) -> float:
    seconds = last[0] - first[0]
    return (last[1] - first[1]) / seconds if seconds > 0 else 0.0


def _windows(samples: list[tuple[float, int]]) -> list[float]:
    """The rate in each window; if the samples are shorter than one, the rate over all of them."""
    rates, begin = [], 0
    for place, sample in enumerate(samples):
        if sample[0] - samples[begin][0] >= WINDOW_SECONDS:
            rates.append(_rate(samples[begin], sample))
            begin = place
    return rates or [_rate(samples[0], samples[-1])]
