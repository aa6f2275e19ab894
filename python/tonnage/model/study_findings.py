"""Findings of a study in sentences: prediction, limit, bottlenecks, warnings."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tonnage.base import formatting
from tonnage.base.records import Phase, Study, Trial

HIGH_LOAD = 0.5  # Runnable threads a core; above, other processes used a good part of the machine
HIGH_SHARE = 0.05  # Share of the machine's core seconds; if others use more, they slow a sort down
FEW_RATES = 4
"""Samples of a trial, one each 250 ms. The kernel throttles a device in slices of 100 ms, so rates
are within 5 % over a second, and less exact over shorter times."""
CPU_USED = ("cpu_user_seconds", "cpu_system_seconds")
CPU_UNUSED = ("cpu_idle_seconds", "cpu_iowait_seconds")
CPU_STOLEN = "cpu_steal_seconds"
"""Columns of ``host.parquet``: cumulative core seconds; together they add up to the time passed."""


def findings(study: Study) -> list[str]:
    """The sentences before the charts."""
    found = []
    run, limit, predicted = study.run, study.limit, study.predicted
    if run and limit and predicted:
        inside = predicted.low_seconds <= run.seconds <= predicted.high_seconds
        found.append(
            f"The sort took {formatting.seconds(run.seconds)}; "
            f"{formatting.seconds(predicted.seconds)} were "
            f"predicted. The actual time is {'inside' if inside else 'outside'} the interval of "
            f"{formatting.seconds_between(predicted.low_seconds, predicted.high_seconds)}."
        )
        above = f" ({formatting.ABOVE_LIMIT})" if limit.efficiency > 1 else ""
        found.append(
            f"The disks alone would need {formatting.seconds(limit.seconds)}; the sort reached "
            f"{formatting.percent(limit.efficiency)} of their throughput{above}."
        )
    for phase in study.actual.phases if study.actual else []:
        if phase.predicted_seconds is not None:
            found.append(formatting.sentence(f"{formatting.phase(phase.name)}: {phase.why}"))
    return found


def bottleneck_reason(phase: Phase) -> str:
    stage = next(stage for stage in phase.stages if stage.name == phase.bottleneck)
    busy = stage.busy_seconds / stage.workers / phase.seconds if phase.seconds else 0.0
    if stage.kind in ("read", "write"):
        verb = "reading" if stage.kind == "read" else "writing"
        share = formatting.percent(busy)
        return f"the disk was {verb} {share} of the time, and the other stages waited for it"
    cpu = stage.cpu_seconds / stage.busy_seconds if stage.busy_seconds else 0.0
    return (
        f"the {stage.name} stage's {stage.workers} threads were busy {formatting.percent(busy)} of "
        f"the time, and on a core for {formatting.percent(cpu)} of that"
    )


def warnings(study: Study, host: Mapping[str, Sequence[float]] | None = None) -> list[str]:
    """Reasons to distrust the figures; ``host`` has the columns of ``host.parquet``."""
    found = []
    environment = study.environment
    if environment.debug_build:
        found.append("This is a debug build, whose speeds are meaningless. Build with --release.")
    if environment.load_average > HIGH_LOAD * environment.cores:
        found.append(
            f"Other programs used the machine at the start (load average "
            f"{environment.load_average:.1f} on {environment.cores} cores)."
        )
    if study.run and host:
        found += _cpu_warnings(study.run.cpu_seconds, host)
    phases = [trial.phase for measured in study.measurements for trial in measured.trials]
    phases += study.run.phases if study.run else []
    return [*found, *disk_warnings(phases)]


def disk_warnings(phases: Iterable[Phase]) -> list[str]:
    """Fast ways of disk I/O that the kernel refused, each once."""
    said = (_disk_warning(mode) for phase in phases for mode in phase.disk_modes)
    return list(dict.fromkeys(filter(None, said)))


def short_trial_warnings(trials: Iterable[Trial]) -> list[str]:
    """Trials that were too short to distinguish a sustained rate from a burst."""
    brief = dict.fromkeys(
        formatting.trial(each.name)
        for each in trials
        if each.reading and len(each.rates) < FEW_RATES
    )
    if not brief:
        return []
    return [
        f"Less than a second of a trial was counted ({', '.join(brief)}). If the device bursts or "
        "is throttled, its sustained rate may differ; measure for longer, or with more data."
    ]


def _cpu_warnings(own_seconds: float, host: Mapping[str, Sequence[float]]) -> list[str]:
    rose = {name: host[name][-1] - host[name][0] for name in (*CPU_USED, *CPU_UNUSED, CPU_STOLEN)}
    passed = sum(rose.values())
    by_others = sum(rose[name] for name in CPU_USED) - own_seconds
    found = []
    for seconds, who in (
        (by_others, "other programs on this machine used"),
        (rose[CPU_STOLEN], "the hypervisor stole"),
    ):
        if seconds > HIGH_SHARE * passed:
            found.append(
                f"During the sort, {who} {formatting.significant(seconds)} of "
                f"{formatting.significant(passed)} core seconds."
            )
    return found


ASKED_FOR = "asked for"  # In the core's reason for slower disk I/O, if the settings requested it


def _disk_warning(mode: dict[str, Any]) -> str | None:
    if ASKED_FOR in (mode["why"] or ""):
        return None
    refused = []
    if not mode["direct"]:
        refused.append("Files went through the page cache because O_DIRECT was refused")
    if mode["engine"] == "threads":
        refused.append("Files were read and written by threads because io_uring was refused")
    elif mode["engine"] == "io_uring" and not mode["registered"]:
        refused.append("Buffers were not registered with the kernel")
    why = f" ({mode['why']})" if mode["why"] else ""
    return f"{'. '.join(refused)}{why}." if refused else None
