"""What a study found, in plain words: prediction, limit, and what held each phase up."""

from __future__ import annotations

from collections.abc import Sequence

from tonnage.artifacts import Environment, Measurement, Phase, Study


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
    found.extend(_warnings(study.environment, study.measurements))
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


def _warnings(environment: Environment, measurements: Sequence[Measurement]) -> list[str]:
    """What makes the figures less than they could be."""
    found = []
    if environment.debug_build:
        found.append("This is a debug build: its speeds say nothing. Build with --release.")
    if environment.load_average > environment.cores / 2:
        found.append(
            f"The machine was busy with something else at the start (load average "
            f"{environment.load_average:.1f} on {environment.cores} cores)."
        )
    trials = [trial for measurement in measurements for trial in measurement.trials]
    reasons = {mode["why"] for trial in trials for mode in trial.phase.disk_modes if mode["why"]}
    found.extend(f"The disks were not used in the best way: {reason}." for reason in reasons)
    return found
