"""Score measurements by six rules for credible results.

The rules are those of "A Systematic Look at EC2 I/O" (Cloud Truth): measure basic properties
directly, on many instances, over a substantial time, by reproducible methods, and state clearly
what was measured and how it was aggregated. The verdict is "pass", "short" (the result falls short)
or "unknown" (the measuring tool does not say). One measurement that falls short makes all of them
fall short. That is not a failure: it says what a figure cannot be used for.
"""

from collections.abc import Sequence
from datetime import datetime

from tonnage.base import formatting
from tonnage.base.records import Measurement, Metric, ScorecardItem

PASS, SHORT, UNKNOWN = "pass", "short", "unknown"

MANY_INSTANCES = 30
"""With 30 machines, a fault of one machine in ten shows in 96 of 100 cases. The study that states
the rules had 30, and 45."""
SUBSTANTIAL_SECONDS = 24 * 3600.0
"""A day: load on a shared host follows the time of day. The study calls its own ten minutes too
short."""
SUBSTANTIAL_HOURS = 12
"""Hours of that time with a trial: two trials a day apart do not cover a day."""
FEW_TRIALS = 6
"""Below this many values a median has no interval at 95 %, whatever their distribution."""
PASSED_BY = ("device ", "interface ")
"""Prefixes of operations that a tool only observed: traffic, not what a device can do."""
NO_FILES = ("get", "put", "send", "receive")
"""Operations that involve no page cache."""
OTHER = "other"
NOT_PROVED = "not_proved"
"""The detail of a metric that says why a cache may have served it, whatever ``direct`` says."""


def scorecard(measurements: Sequence[Measurement]) -> list[ScorecardItem]:
    """Score measurements, taken together as one result; raises `ValueError` if there are none."""
    if not measurements:
        raise ValueError("no measurements to score")
    return [
        ScorecardItem(rule=rule, verdict=verdict, reason=reason)
        for rule, (verdict, reason) in (
            ("measures basic properties directly", _basic(measurements)),
            ("has measurements of many instances", _instances(measurements)),
            ("covers a substantial time", _time(measurements)),
            ("can be reproduced", _reproducible(measurements)),
            ("states what was measured, and how", _explained(measurements)),
            ("states how it was aggregated", _aggregated(measurements)),
        )
    ]


Verdict = tuple[str, str]
"""A verdict and its reason."""


def _basic(measurements: Sequence[Measurement]) -> Verdict:
    readings = [reading for each in measurements for reading in each.readings]
    indirect = sorted({each.operation for each in readings if each.operation.startswith(PASSED_BY)})
    if indirect:
        return (
            SHORT,
            f"{', '.join(indirect)}: the traffic of an unknown workload, not what a device can do",
        )
    if any(each.operation == OTHER for each in readings):
        return UNKNOWN, "some operations have names that only their tool defines"
    cached = sum(1 for each in readings if each.cached)
    figures = formatting.several(len(readings), "figure")
    if cached:
        return SHORT, f"{cached} of {figures} can only come from a cache"
    unproved = [each.details[NOT_PROVED] for each in readings if NOT_PROVED in each.details]
    if unproved:
        return UNKNOWN, f"{len(unproved)} of {figures} may come from a cache: {unproved[0]}"
    if readings:
        return PASS, f"each trial measures one kind of operation: {_operation_list(readings)}"
    if any(each.trials for each in measurements):
        return PASS, "the stages of the job were measured one by one: reading, writing, CPU work"
    return UNKNOWN, "nothing has been measured yet"


def _operation_list(readings: Sequence[Metric]) -> str:
    return ", ".join(sorted({each.operation for each in readings}))


def _instances(measurements: Sequence[Measurement]) -> Verdict:
    hosts = {each.environment.host for each in measurements if each.environment}
    foreign = sum(1 for each in measurements if each.environment is None)
    if len(hosts) >= MANY_INSTANCES:
        return PASS, f"{len(hosts)} machines"
    if foreign:
        known = f", and {formatting.several(len(hosts), 'known machine')}" if hosts else ""
        return (
            UNKNOWN,
            f"{formatting.several(foreign, 'imported result')} of unknown machines{known}",
        )
    if len(hosts) == 1:
        return SHORT, "a single machine; another machine may be much faster or slower"
    return SHORT, (
        f"only {len(hosts)} machines; {MANY_INSTANCES} are needed to find a fault that affects "
        "one machine in ten"
    )


def _time(measurements: Sequence[Measurement]) -> Verdict:
    times = [time for each in measurements for time in _trial_times(each)]
    if not times:
        return UNKNOWN, "the time of the measurement is unknown"
    span = max(ended for _, ended in times) - min(began for began, _ in times)
    hours = {
        hour for began, ended in times for hour in range(int(began // 3600), int(ended // 3600) + 1)
    }
    covered = formatting.several(len(hours), "hour")
    text = f"{formatting.duration(span)} from first to last trial, with trials in {covered}"
    if span >= SUBSTANTIAL_SECONDS and len(hours) >= SUBSTANTIAL_HOURS:
        return PASS, text
    needed = f"at least a day is needed, with trials in {SUBSTANTIAL_HOURS} different hours"
    return SHORT, f"{text}; {needed}, because load follows the time of day"


def _trial_times(measurement: Measurement) -> list[tuple[float, float]]:
    """When trials began and ended; trials without a time follow one another."""
    if measurement.environment is None:
        return []  # Its time is that of the import.
    try:
        moment = datetime.fromisoformat(measurement.began_at).timestamp()
        times = []
        for trial in measurement.trials:
            if trial.began_at is not None:
                moment = datetime.fromisoformat(trial.began_at).timestamp()
            times.append((moment, moment + trial.phase.seconds))
            moment += trial.phase.seconds
    except ValueError:
        return []
    return times


def _reproducible(measurements: Sequence[Measurement]) -> Verdict:
    ours = [each for each in measurements if each.environment]
    debug = sum(1 for each in ours if each.environment and each.environment.debug_build)
    if debug:
        return (
            SHORT,
            f"{formatting.several(debug, 'measurement')} of a debug build, whose speeds are "
            "meaningless",
        )
    nameless = [each.id for each in ours if not each.command or not _version(each)]
    if nameless:
        return SHORT, f"the command or the version is missing in {', '.join(nameless)}"
    foreign = [each for each in measurements if each.environment is None]
    silent = sum(1 for each in foreign if not all(map(_repeatable, each.readings)))
    if silent:
        return (
            UNKNOWN,
            f"{formatting.several(silent, 'imported result')} without command or version",
        )
    return PASS, "command, settings and versions are recorded with each measurement"


def _version(measurement: Measurement) -> str | None:
    return measurement.environment.versions.get("tonnage") if measurement.environment else None


def _repeatable(reading: Metric) -> bool:
    command = reading.details.get("command") or reading.details.get("options")
    return bool(reading.source.version and command)


def _explained(measurements: Sequence[Measurement]) -> Verdict:
    silent = [each.id for each in measurements if each.environment and not each.page_cache]
    if silent:
        return SHORT, f"the use of the page cache is not stated in {', '.join(silent)}"
    readings = [reading for each in measurements for reading in each.readings]
    vague = sum(1 for each in readings if each.block_bytes is None or _silent_on_cache(each))
    if any(each.environment is None for each in measurements):
        figures = formatting.several(vague, "figure")
        missing = f"; {figures} without block size or use of the page cache"
        return UNKNOWN, f"imported: the machine is unknown{missing if vague else ''}"
    if vague:
        figures = formatting.several(vague, "figure")
        return SHORT, f"{figures} without block size or use of the page cache"
    return PASS, "machine, devices, graph, block size and use of the page cache are recorded"


def _silent_on_cache(reading: Metric) -> bool:
    return reading.direct is None and reading.operation not in NO_FILES


def _aggregated(measurements: Sequence[Measurement]) -> Verdict:
    ours = [each for each in measurements if each.environment]
    silent = [each.id for each in ours if not each.stopping_rule]
    if silent:
        return SHORT, f"no stopping rule in {', '.join(silent)}"
    if len(ours) < len(measurements):
        return UNKNOWN, "imported: the tool does not state how many runs a figure summarizes"
    counts = [count for each in ours for count in _trials_of_each(each)]
    if not counts:
        return UNKNOWN, "nothing has been measured yet"
    least, most = min(counts), max(counts)
    trials = formatting.several(most, "trial") if least == most else f"{least} to {most} trials"
    enough = least >= FEW_TRIALS or len(ours) >= FEW_TRIALS
    few = "" if enough else ", too few for a confidence interval"
    made = "a single trial of each kind" if most == 1 else f"medians of {trials} of each kind"
    return PASS, f"{made}{few}; stopping rule, raw samples and all trials recorded"


def _trials_of_each(measurement: Measurement) -> list[int]:
    names = [trial.name for trial in measurement.trials]
    return [names.count(name) for name in dict.fromkeys(names)]
