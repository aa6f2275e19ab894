"""What a study found, in plain words: prediction, limit, what held each phase up, what to doubt."""

from __future__ import annotations

from typing import Any

from tonnage.artifacts import Phase, Study

HIGH_LOAD = 0.5
"""Above this many runnable threads a core, others had a good part of the machine."""


def findings(study: Study) -> list[str]:
    """What a reader should know before the charts."""
    found = []
    run, limit, predicted = study.run, study.limit, study.predicted
    if run and limit and predicted:
        inside = predicted.low_seconds <= run.seconds <= predicted.high_seconds
        found.append(
            f"The sort took {run.seconds:.1f} s; {predicted.seconds:.1f} s were predicted, and it "
            f"is {'inside' if inside else 'outside'} the interval of {predicted.low_seconds:.1f} "
            f"to {predicted.high_seconds:.1f} s."
        )
        found.append(
            f"The disks alone would need {limit.seconds:.1f} s: the sort came to "
            f"{limit.efficiency:.0%} of what they carry."
        )
    for phase in study.actual.phases if study.actual else []:
        if phase.predicted_seconds is not None:
            found.append(f"{phase.name.replace('_', ' ').capitalize()}: {phase.why}.")
    return found


def why(phase: Phase) -> str:
    """In words, what kept a phase from being faster."""
    stage = next(stage for stage in phase.stages if stage.name == phase.bottleneck)
    busy = stage.busy_seconds / stage.workers / phase.seconds if phase.seconds else 0.0
    if stage.kind in ("read", "write"):
        verb = "reading" if stage.kind == "read" else "writing"
        return f"the disk was {verb} {busy:.0%} of the time; the other stages waited for it"
    cpu = stage.cpu_seconds / stage.busy_seconds if stage.busy_seconds else 0.0
    return (
        f"the {stage.name} stage's {stage.workers} threads were at work {busy:.0%} of the time, "
        f"{cpu:.0%} of that on a core"
    )


def warnings(study: Study) -> list[str]:
    """What makes the figures say less than they seem to."""
    found = []
    environment = study.environment
    if environment.debug_build:
        found.append("This is a debug build: its speeds say nothing. Build with --release.")
    if environment.load_average > HIGH_LOAD * environment.cores:
        found.append(
            f"The machine was busy with something else at the start (load average "
            f"{environment.load_average:.1f} on {environment.cores} cores)."
        )
    phases = [trial.phase for measured in study.measurements for trial in measured.trials]
    phases += study.run.phases if study.run else []
    said = (_disk_warning(mode) for phase in phases for mode in phase.disk_modes)
    return [*found, *dict.fromkeys(filter(None, said))]


def _disk_warning(mode: dict[str, Any]) -> str | None:
    why = f": {mode['why']}" if mode["why"] else ""
    if not mode["direct"]:
        return f"Files went through the page cache{why}."
    return None if mode["registered"] else f"Buffers were not registered with the kernel{why}."
