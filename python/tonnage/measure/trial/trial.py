"""From the core's report of a run to a trial: rates per window after the warm-up, raw."""

from __future__ import annotations

import datetime
import secrets
import statistics
from typing import Any

from tonnage.base.core import stage_stats
from tonnage.base.records import Summary, Trial
from tonnage.base.stats.quantiles import quantile_estimate
from tonnage.base.stats.sample_size import Precision, precision

WARM_UP_SECONDS = 0.5
"""Not counted at a trial's beginning; of a trial shorter than four of these, a quarter is not."""
STOPPING_RULE = (
    "each trial ends when its time is up or when it has gone through its data once; its first "
    f"{WARM_UP_SECONDS} s, or its first quarter if that is less, is warm-up and not counted, nor "
    "is what flows out after the source has ended"
)
WINDOW_SECONDS = 0.25
"""Length of a window for which a rate is kept."""
CONFIDENCE = 0.95
"""Of a median's interval."""
WANTED_SHARE = 0.05
"""Of its median: what the median's interval is to lie within, if nothing else was said."""


def trial_from_phase(reported: dict[str, Any], seconds: float) -> Trial:
    """A trial of at most ``seconds`` from a phase as the core reports it.

    Its beginning is not counted, nor what still flowed out of the pipeline after its source ended,
    unless nothing is left then: of a trial that its buffers could hold all counts.

    The rate is that of the graph's last stage: what came out at the end was moved by all.
    """
    timeline = reported["timeline"]
    ended = min(seconds, _source_ended(timeline))
    warm_up = min(WARM_UP_SECONDS, ended / 4)
    counted = [s for s in timeline if warm_up <= s["seconds"] <= ended]
    came_out = {sample["stages"][-1]["bytes"] for sample in counted}
    # Over before it could be sampled, or before any of it came out of the buffers: all counts.
    if len(came_out) < 2:
        nothing = {"bytes": 0, "cpu_seconds": 0.0}
        start = {"seconds": 0.0, "stages": [nothing for _ in reported["stages"]]}
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
    """What each kind of trial comes to."""
    kinds: dict[str, list[Trial]] = {}
    for each in trials:
        kinds.setdefault(each.name, []).append(each)
    return [
        summarise(name, [each.bytes_per_second for each in of_kind], _wanted(of_kind[0]))
        for name, of_kind in kinds.items()
    ]


def summarise(name: str, rates: list[float], wanted_share: float = WANTED_SHARE) -> Summary:
    """What rates of one kind come to: median, range, interval, and how precise that is.

    Args:
        name: Of the kind.
        rates: Bytes per second, one for each trial.
        wanted_share: How precise it is to be; see `tonnage.base.stats.sample_size`.
    """
    interval = quantile_estimate(rates, 0.5, CONFIDENCE).interval
    known = median_precision(rates, wanted_share)
    return Summary(
        name=name,
        trials=len(rates),
        median_bytes_per_second=statistics.median(rates),
        low_bytes_per_second=min(rates),
        high_bytes_per_second=max(rates),
        interval_bytes_per_second=(interval.low_value, interval.high_value) if interval else None,
        reached_share=known.reached_share if known else None,
        wanted_share=known.wanted_share if known else None,
        still_needed=known.still_needed if known else None,
    )


def median_precision(rates: list[float], share: float) -> Precision | None:
    """How precisely the rates' median is known; None of no rates, or if it is zero."""
    return precision(rates, share, CONFIDENCE) if rates and statistics.median(rates) else None


def page_cache_use(phases: list[dict[str, Any]]) -> str:
    """What is to be said of the page cache beside results of these phases."""
    modes = [mode for phase in phases for mode in phase["disk_modes"]]
    if not modes:
        return "untouched: no file was read or written"
    if all(mode["direct"] for mode in modes):
        return "bypassed: all files were read and written directly"
    return "in the way: direct I/O was refused, pages were dropped after each use"


def new_id(kind: str) -> str:
    """A name for a measurement that no other has."""
    moment = datetime.datetime.now(datetime.UTC).strftime("%Y%m%dT%H%M%SZ")
    return f"{kind}-{moment}-{secrets.token_hex(3)}"


def utc_now() -> str:
    """This moment, in UTC, as ISO 8601."""
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")


def time_after(moment: str, seconds: float) -> str:
    """The moment so many seconds after another one."""
    after = datetime.datetime.fromisoformat(moment) + datetime.timedelta(seconds=seconds)
    return after.isoformat(timespec="seconds")


def _wanted(trial: Trial) -> float:
    return (trial.step and trial.step.until_confidence) or WANTED_SHARE


def _source_ended(timeline: list[dict[str, Any]]) -> float:
    """When the first stage had moved all that it was going to."""
    last = timeline[-1]["stages"][0]["bytes"] if timeline else 0
    return next((s["seconds"] for s in timeline if s["stages"][0]["bytes"] == last), 0.0)


def _rate(first: tuple[float, int], last: tuple[float, int]) -> float:
    seconds = last[0] - first[0]
    return (last[1] - first[1]) / seconds if seconds > 0 else 0.0


def _windows(samples: list[tuple[float, int]]) -> list[float]:
    """The rate in each window; of samples that are less than one, the rate over all of them."""
    rates, begin = [], 0
    for place, sample in enumerate(samples):
        if sample[0] - samples[begin][0] >= WINDOW_SECONDS:
            rates.append(_rate(samples[begin], sample))
            begin = place
    return rates or [_rate(samples[0], samples[-1])]
