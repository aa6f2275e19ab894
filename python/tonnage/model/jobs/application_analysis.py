"""What follows from an application: the use of its cores, what limited each phase, what to change.

The limit of a phase is the largest term of its time in `model.jobs.application`: what is fixed, its
longest task, or its tasks one after another in the slots; of these, whether there were enough of
them, and whether they mostly computed, waited for shuffled data, or for something else.
"""

from collections.abc import Sequence

from tonnage.base import formatting
from tonnage.base.records.application import Application
from tonnage.base.records.application_analysis import AnalysedPhase, ApplicationAnalysis, Limit
from tonnage.model.jobs.application import StagesAtOnce, join_alike, phases_of, slots_of
from tonnage.model.jobs.application_findings import application_findings
from tonnage.model.jobs.core_time import core_uses, phase_cores, tail_seconds

MOST_PHASES = 20
MOSTLY = 0.5


def analyse_application(application: Application) -> ApplicationAnalysis:
    slots = slots_of(application)
    phases = phases_of(application)
    cores = phase_cores(application, phases)
    uses = core_uses(application, cores, slots)
    stage_seconds = covered_seconds(phases)
    return ApplicationAnalysis(
        application=application,
        slots=slots,
        slots_reported=any(each.cores for each in application.executors),
        core_seconds=application.core_seconds or None,
        stage_seconds=stage_seconds,
        uses=uses,
        phases=[_analysed(each, slots) for each in join_alike(phases, MOST_PHASES)],
        findings=application_findings(application, cores, slots, uses, stage_seconds),
    )


def covered_seconds(phases: Sequence[StagesAtOnce]) -> float:
    """During which some phase ran; those that overlap a little count once."""
    seconds, until = 0.0, 0.0
    for phase in phases:
        begin = min(each.began_seconds for each in phase.stages)
        end = max(each.began_seconds + each.seconds for each in phase.stages)
        seconds += max(end - max(begin, until), 0.0)
        until = max(end, until)
    return seconds


def limit_of(phase: StagesAtOnce, slots: int) -> tuple[Limit, str]:
    """What limited a phase, and the figures that show it."""
    terms = phase.split_seconds(slots)
    tail, seconds = tail_seconds(phase, terms), formatting.seconds
    longest = max(terms.waves, terms.longest_task) + tail
    even = f"divided evenly among the slots, its tasks would take {seconds(terms.evenly)}"
    if terms.fixed - tail > longest + phase.warm_up_seconds:
        return "fixed", (
            f"{seconds(terms.fixed - tail)} are in neither the slots' tasks nor the longest task: "
            "starting and scheduling tasks, and the driver's work between them"
        )
    is_uneven = 0 < terms.evenly <= MOSTLY * longest
    few = terms.waves - terms.evenly
    if terms.longest_task > terms.waves or (is_uneven and tail > few and phase.tasks >= slots):
        return "longest task", f"its longest took {seconds(longest)}; {even}"
    if is_uneven:
        tasks = formatting.several(phase.tasks, "task")
        return "too few tasks", f"{tasks} for {formatting.several(slots, 'slot')}; {even}"
    share = phase.wait_seconds / phase.slot_seconds if phase.slot_seconds else 0.0
    if share > MOSTLY:
        waits = formatting.percent(share)
        return "shuffle waits", f"its tasks waited {waits} of their time to fetch or write blocks"
    if any(each.python for each in phase.stages):
        return (
            "computing",
            "its tasks kept the slots busy, partly in Python, whose CPU time no log has",
        )
    cpu = sum(each.cpu_seconds for each in phase.stages)
    on_cpu = cpu / phase.slot_seconds if phase.slot_seconds else 0.0
    if on_cpu < MOSTLY:
        return "other waits", (
            f"its tasks kept the slots busy, but only {formatting.percent(on_cpu)} of their time "
            "on the CPU: the rest is input, output, pauses, or cores that others used"
        )
    return "computing", (
        f"its tasks kept the slots busy, {formatting.percent(on_cpu)} of their time on the CPU"
    )


def _analysed(phase: StagesAtOnce, slots: int) -> AnalysedPhase:
    stages = phase.stages
    largest = max(stages, key=lambda each: each.task_seconds)
    limit, why = limit_of(phase, slots)
    return AnalysedPhase(
        name=phase.name,
        stages=sorted({each.id for each in stages}),
        times=phase.times,
        seconds=phase.seconds,
        task_seconds=phase.slot_seconds,
        cpu_seconds=sum(each.cpu_seconds for each in stages),
        tasks=phase.tasks,
        median_task_seconds=largest.median_task_seconds,
        p90_task_seconds=largest.p90_task_seconds,
        longest_task_seconds=max(each.longest_task_seconds for each in stages),
        read_bytes=sum(sum(each.read_bytes.values()) for each in stages),
        shuffle_read_bytes=sum(
            each.shuffle_remote_bytes + each.shuffle_local_bytes for each in stages
        ),
        shuffle_written_bytes=sum(each.shuffle_written_bytes for each in stages),
        spilled_bytes=phase.spilled_bytes,
        written_bytes=sum(sum(each.written_bytes.values()) for each in stages),
        limit=limit,
        why=why,
    )
