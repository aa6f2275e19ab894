"""Cloud Truth: six rules for results that can be believed, and how far measurements keep them.

The rules are those of "A Systematic Look at EC2 I/O": measure basic properties directly, on many
instances, over a substantial time, by methods that can be repeated, and say clearly what was
measured and how it was aggregated. A rule is passed, or the result falls short of it, or it is
unknown, since the tool that measured does not say. One measurement that falls short is enough to
fall short together. To fall short is no failure: it says what a figure cannot be used for.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from tonnage.base import formatting
from tonnage.base.records import Measurement, Metric, ScorecardItem

PASS, SHORT, UNKNOWN = "pass", "short", "unknown"

MANY_INSTANCES = 30
"""A fault that one machine in ten has is met among 30 in 96 of 100 cases; the rules' own study had
30, and 45."""
SUBSTANTIAL_SECONDS = 24 * 3600.0
"""A day: what others do on a shared host follows the time of day. Ten minutes fell short, said the
study itself."""
SUBSTANTIAL_HOURS = 12
"""Hours of that time in which there was a trial: two looks a day apart are not a day."""
FEW_TRIALS = 6
"""Below this many values a median has no interval at 95 %, whatever their distribution."""
PASSED_BY = ("device ", "interface ")
"""Operations so called are what went by while a tool looked on, not what something can do."""
NO_FILES = ("get", "put", "send", "receive")
"""Operations that no page cache is beside."""
OTHER = "other"
NOT_PROVED = "not_proved"
"""The detail of a reading that says why a cache may have given it, whatever it says of direct."""


def scorecard(measurements: Sequence[Measurement]) -> list[ScorecardItem]:
    """How far measurements, taken together as one result, keep the six rules.

    Raises:
        ValueError: There are none.
    """
    if not measurements:
        raise ValueError("no measurements: there is nothing to believe")
    return [
        ScorecardItem(rule=rule, verdict=verdict, reason=reason)
        for rule, (verdict, reason) in (
            ("measures basic properties directly", _basic(measurements)),
            ("has measurements of many instances", _instances(measurements)),
            ("goes over a substantial time", _time(measurements)),
            ("can be reproduced", _reproducible(measurements)),
            ("says what was measured, and how", _explained(measurements)),
            ("says how it was aggregated", _aggregated(measurements)),
        )
    ]


Judged = tuple[str, str]


def _basic(measurements: Sequence[Measurement]) -> Judged:
    readings = [reading for each in measurements for reading in each.readings]
    indirect = sorted({each.operation for each in readings if each.operation.startswith(PASSED_BY)})
    if indirect:
        return SHORT, f"{', '.join(indirect)}: what went by, whatever it was that ran"
    if any(each.operation == OTHER for each in readings):
        return UNKNOWN, "some operations are known to the tool alone"
    cached = sum(1 for each in readings if each.cached)
    figures = formatting.several(len(readings), "figure")
    if cached:
        return SHORT, f"only a cache can have given {cached} of {figures}"
    unproved = [each.details[NOT_PROVED] for each in readings if NOT_PROVED in each.details]
    if unproved:
        return UNKNOWN, f"a cache may have given {len(unproved)} of {figures}: {unproved[0]}"
    if readings:
        return PASS, f"single operations of one kind each: {_named(readings)}"
    if any(each.trials for each in measurements):
        return PASS, "stages of the job, each alone: reading, writing, or the work of the cores"
    return UNKNOWN, "nothing was measured yet"


def _named(readings: Sequence[Metric]) -> str:
    return ", ".join(sorted({each.operation for each in readings}))


def _instances(measurements: Sequence[Measurement]) -> Judged:
    hosts = {each.environment.host for each in measurements if each.environment}
    foreign = sum(1 for each in measurements if each.environment is None)
    if len(hosts) >= MANY_INSTANCES:
        return PASS, f"{len(hosts)} machines"
    if foreign:
        known = f" besides {formatting.several(len(hosts), 'known machine')}" if hosts else ""
        return (
            UNKNOWN,
            f"the machines of {formatting.several(foreign, 'imported result')} are not known{known}",
        )
    if len(hosts) == 1:
        return SHORT, "a single machine: another one may be much faster or slower"
    return SHORT, f"{len(hosts)} machines; {MANY_INSTANCES} would show a fault that one in ten has"


def _time(measurements: Sequence[Measurement]) -> Judged:
    looks = [look for each in measurements for look in _looks(each)]
    if not looks:
        return UNKNOWN, "it is not known when it was measured"
    span = max(ended for _, ended in looks) - min(began for began, _ in looks)
    hours = {
        hour for began, ended in looks for hour in range(int(began // 3600), int(ended // 3600) + 1)
    }
    seen = formatting.several(len(hours), "hour")
    said = f"{formatting.duration(span)} from the first to the last, in {seen} of it"
    if span >= SUBSTANTIAL_SECONDS and len(hours) >= SUBSTANTIAL_HOURS:
        return PASS, said
    least = f"a day of which {SUBSTANTIAL_HOURS} hours were seen would do"
    return SHORT, f"{said}; {least}, since load follows the time of day"


def _looks(measurement: Measurement) -> list[tuple[float, float]]:
    """When trials began and ended; those that do not say follow one another."""
    if measurement.environment is None:
        return []  # It began when it was imported.
    try:
        moment = datetime.fromisoformat(measurement.began_at).timestamp()
        looks = []
        for trial in measurement.trials:
            if trial.began_at is not None:
                moment = datetime.fromisoformat(trial.began_at).timestamp()
            looks.append((moment, moment + trial.phase.seconds))
            moment += trial.phase.seconds
    except ValueError:
        return []
    return looks


def _reproducible(measurements: Sequence[Measurement]) -> Judged:
    ours = [each for each in measurements if each.environment]
    debug = sum(1 for each in ours if each.environment and each.environment.debug_build)
    if debug:
        return (
            SHORT,
            f"{formatting.several(debug, 'measurement')} with a debug build, whose speeds say nothing",
        )
    nameless = [each.id for each in ours if not each.command or not _version(each)]
    if nameless:
        return SHORT, f"no command, or no version, of {', '.join(nameless)}"
    foreign = [each for each in measurements if each.environment is None]
    silent = sum(1 for each in foreign if not all(map(_repeatable, each.readings)))
    if silent:
        return (
            UNKNOWN,
            f"{formatting.several(silent, 'imported result')} without command or version",
        )
    return PASS, "the command, all settings and the versions are kept with each measurement"


def _version(measurement: Measurement) -> str | None:
    return measurement.environment.versions.get("tonnage") if measurement.environment else None


def _repeatable(reading: Metric) -> bool:
    told = reading.details.get("command") or reading.details.get("options")
    return bool(reading.source.version and told)


def _explained(measurements: Sequence[Measurement]) -> Judged:
    silent = [each.id for each in measurements if each.environment and not each.page_cache]
    if silent:
        return SHORT, f"nothing is said of the page cache in {', '.join(silent)}"
    readings = [reading for each in measurements for reading in each.readings]
    vague = sum(1 for each in readings if each.block_bytes is None or _silent_on_cache(each))
    if any(each.environment is None for each in measurements):
        told = f"; of {vague} not even whether past the page cache, or in which blocks"
        return UNKNOWN, f"imported: the machine was not told{told if vague else ''}"
    if vague:
        figures = formatting.several(vague, "figure")
        return SHORT, f"{figures} without block size, or silent on the page cache"
    return PASS, "machine, devices, graph, block size and the page cache's part are told"


def _silent_on_cache(reading: Metric) -> bool:
    return reading.direct is None and reading.operation not in NO_FILES


def _aggregated(measurements: Sequence[Measurement]) -> Judged:
    ours = [each for each in measurements if each.environment]
    silent = [each.id for each in ours if not each.stopping_rule]
    if silent:
        return SHORT, f"no stopping rule in {', '.join(silent)}"
    if len(ours) < len(measurements):
        return UNKNOWN, "imported: the tool does not say how many runs a figure is made of"
    counts = [count for each in ours for count in _trials_of_each(each)]
    if not counts:
        return UNKNOWN, "nothing was measured yet"
    least, most = min(counts), max(counts)
    trials = formatting.several(most, "trial") if least == most else f"{least} to {most} trials"
    few = "" if least >= FEW_TRIALS or len(ours) >= FEW_TRIALS else ", too few for an interval"
    made = "a single trial of each" if most == 1 else f"medians of {trials} each"
    return PASS, f"{made}{few}; stopping rule, raw samples and all trials kept"


def _trials_of_each(measurement: Measurement) -> list[int]:
    names = [trial.name for trial in measurement.trials]
    return [names.count(name) for name in dict.fromkeys(names)]
