"""Render the phases of an application: what limited each, its tasks and its bytes."""

from tonnage.base import formatting
from tonnage.base.records.application_analysis import AnalysedPhase, ApplicationAnalysis
from tonnage.report.html_elements import Child, Html, section, swatch, table, tag
from tonnage.report.jobs.core_time import COLOURS_OF_LIMITS

KEY = "phases"
COLUMNS = (
    *("Phase", "Time", "Limited by", "Tasks", "Median task", "p90", "Longest"),
    *("Read", "Shuffle read", "Shuffle written", "Spilled", "Written"),
)
NUMERIC = (*COLUMNS[1:2], *COLUMNS[3:])


def phases_section(analysis: ApplicationAnalysis) -> Html:
    seconds = formatting.seconds_like(max(each.seconds for each in analysis.phases))
    rows = [_row(each, seconds(each.seconds)) for each in analysis.phases]
    longest = max(range(len(rows)), key=lambda place: analysis.phases[place].seconds)
    slots = formatting.several(analysis.slots, "slot")
    of_slots = "as the executors' cores allow"
    if not analysis.slots_reported:
        of_slots = "as many as ran at once in some stage, since the log reports no cores"
    said = (
        "Stages that ran at once are a phase; phases of the same stages, as iterations have, are "
        f"one. Tasks ran in {slots}, {of_slots}. A phase takes the slots' tasks one after another, "
        "or its longest task if that takes longer, and what is fixed; the largest of these limits "
        "it. A plan is made from the same terms."
    )
    return section(
        KEY,
        "What limited each phase",
        tag("p", said, class_="note"),
        table("Phases", COLUMNS, rows, numeric=NUMERIC, marked=[longest], hide_caption=True),
    )


def _row(phase: AnalysedPhase, seconds: str) -> list[Child]:
    tasks = formatting.count(phase.tasks)
    return [
        phase.name,
        seconds,
        limit_cell(COLOURS_OF_LIMITS[phase.limit], phase.limit, phase.why),
        tasks if phase.times == 1 else f"{phase.times} x {tasks}",
        formatting.seconds(phase.median_task_seconds),
        formatting.seconds(phase.p90_task_seconds),
        formatting.seconds(phase.longest_task_seconds),
        *map(
            _bytes,
            (
                phase.read_bytes,
                phase.shuffle_read_bytes,
                phase.shuffle_written_bytes,
                phase.spilled_bytes,
                phase.written_bytes,
            ),
        ),
    ]


def limit_cell(colour: str, limit: str, why: str) -> Html:
    """What limited a phase, and why, in a cell of a wide table."""
    reason = tag("small", formatting.sentence(why))
    return tag("span", swatch(colour, limit), reason, class_="limit")


def _bytes(count: int) -> str:
    return formatting.size(count) if count else "–"
