"""Render an application of another engine: time, use of its cores, limits, what to change."""

from collections.abc import Sequence
from pathlib import Path

from tonnage.base import formatting
from tonnage.base.records.application import Application, ExecutorShape
from tonnage.base.records.application_analysis import ApplicationAnalysis
from tonnage.report.environment import settings_table
from tonnage.report.html_elements import (
    Child,
    Html,
    fact_list,
    missing_note,
    section,
    table,
    tag,
)
from tonnage.report.jobs.core_time import core_time_section, share_of
from tonnage.report.jobs.findings import core_time, findings_section, saving
from tonnage.report.jobs.phases import phases_section
from tonnage.report.jobs.stages_over_time import timeline_section
from tonnage.report.page import (
    PageSection,
    Tile,
    notice,
    page_header,
    render_page,
    tile_list,
    write_page,
)

NAME_LENGTH = 80
IDLE = ("no stage", "too few tasks", "last tasks", "between tasks")
LOG = "log"


def write_application(analysis: ApplicationAnalysis, path: Path) -> Path:
    """Write the page to ``path`` and the analysis as JSON next to it."""
    return write_page(analysis, render(analysis), path)


def render(analysis: ApplicationAnalysis) -> str:
    timeline, charts = timeline_section(analysis)
    seconds, total = analysis.application.seconds, total_core_seconds(analysis)
    return render_page(
        title(analysis.application),
        _header(analysis),
        [
            PageSection("cores", "Core time", core_time_section(analysis)),
            PageSection("timeline", "Over time", timeline),
            PageSection("phases", "Phases", phases_section(analysis)),
            PageSection(
                "findings", "What to change", findings_section(analysis.findings, seconds, total)
            ),
            PageSection(LOG, "Application", _log_section(analysis.application)),
        ],
        charts,
    )


def title(application: Application) -> str:
    """The first sentence, without its full stop."""
    name = (application.name or application.id or application.engine)[:NAME_LENGTH]
    return f"{name}: {formatting.duration(application.seconds)} on {_executors(application)}"


def summary_lines(analysis: ApplicationAnalysis) -> list[str]:
    """The page's main figures, for a terminal."""
    total = total_core_seconds(analysis)
    lines = [f"{title(analysis.application)}."]
    if analysis.uses:
        most = sorted(analysis.uses, key=lambda each: -each.core_seconds)[:3]
        parts = formatting.listing(f"{each.kind} {share_of(each, total)}" for each in most)
        lines.append(f"Core time: {core_time(total)}, most of it {parts}.")
    lines += [
        f"{each.name}: saves at most {saving(each, analysis.application.seconds, total)}."
        for each in analysis.findings
    ]
    return lines


def total_core_seconds(analysis: ApplicationAnalysis) -> float:
    return sum(each.core_seconds for each in analysis.uses)


def _executors(application: Application) -> str:
    shapes = application.largest_cluster()
    if not shapes:
        return "an unknown number of executors"
    return formatting.listing(map(_executors_alike, shapes[:3]))


def _executors_alike(shape: ExecutorShape) -> str:
    executors = formatting.several(shape.executors, "executor")
    if shape.cores is None:
        return executors
    each = " each" if shape.executors > 1 else ""
    return f"{executors} of {formatting.several(shape.cores, 'core')}{each}"


def _header(analysis: ApplicationAnalysis) -> Html:
    application = analysis.application
    engine = f"{application.engine.capitalize()} {application.version}".strip()
    failed = formatting.several(application.failed_jobs, "job")
    return page_header(
        f"{engine} · {formatting.moment(application.began_at)}",
        title(application),
        tag("p", *_lead(analysis), class_="lead"),
        None
        if application.ended
        else notice("The application had not ended: all figures are of what its log has.", LOG),
        notice(f"{failed} failed", "phases") if application.failed_jobs else None,
        tile_list(_tiles(analysis)),
    )


def _lead(analysis: ApplicationAnalysis) -> list[Child]:
    total = total_core_seconds(analysis)
    said: list[Child] = []
    if analysis.core_seconds is not None and total:
        shares = dict.fromkeys(("computing", "idle"), 0.0)
        for each in analysis.uses:
            if each.kind == "computing" or each.kind in IDLE:
                shares["computing" if each.kind == "computing" else "idle"] += each.core_seconds
        computing, idle = (formatting.percent(each / total) for each in shares.values())
        said.append(f"Of the cores' time, {computing} was computing and about {idle} idle. ")
    if analysis.findings:
        first = analysis.findings[0]
        at_most = saving(first, analysis.application.seconds, total)
        link = tag("a", first.name, href="#findings")
        said += ["To change first: ", link, f", which saves at most {at_most}."]
    return said


def _tiles(analysis: ApplicationAnalysis) -> list[Tile]:
    application = analysis.application
    stages = application.stages
    tasks, failed = (
        sum(getattr(each, name) for each in stages) for name in ("tasks", "failed_tasks")
    )
    without = max(application.seconds - analysis.stage_seconds, 0.0)
    all_executors = formatting.several(len(application.executors), "executor")
    cores = "the log does not report cores"
    if analysis.core_seconds is not None:
        cores = f"{core_time(analysis.core_seconds)} together"
    slots = formatting.several(analysis.slots, "slot")
    return [
        Tile(
            "Time",
            formatting.duration(application.seconds),
            f"of which {formatting.duration(without)} without a stage",
        ),
        Tile("Tasks at once", slots, f"{all_executors} in all; {cores}"),
        Tile(
            "Tasks",
            formatting.count(tasks),
            f"{formatting.count(failed)} failed; {formatting.several(len(stages), 'stage')}",
        ),
        Tile("Read", _sum(analysis, "read_bytes"), "of input, and of cached data"),
        Tile(
            "Shuffled",
            _sum(analysis, "shuffle_written_bytes"),
            f"written; {_sum(analysis, 'shuffle_read_bytes')} read",
        ),
        Tile("Spilled", _sum(analysis, "spilled_bytes"), "to disk, for lack of memory"),
        Tile("Written", _sum(analysis, "written_bytes"), "of output"),
    ]


def _sum(analysis: ApplicationAnalysis, field: str) -> str:
    return formatting.size(sum(getattr(each, field) for each in analysis.phases))


def _log_section(application: Application) -> Html:
    notes = [tag("li", formatting.sentence(note)) for note in application.notes]
    parts: list[Child] = [
        tag("h3", "Notes"),
        tag("ul", *notes, class_="warnings") if notes else tag("p", "None."),
        fact_list(
            [
                ("Name", application.name or "unknown"),
                ("Id", application.id or "unknown"),
                ("Attempt", application.attempt or "none"),
                ("Engine", f"{application.engine} {application.version}".strip()),
                ("Began", formatting.moment(application.began_at)),
                ("Ended", "yes" if application.ended else "no"),
            ]
        ),
        tag("h3", "Executors"),
        _executors_table(application.largest_cluster()),
    ]
    if application.cached:
        rows = [
            [each.name, formatting.size(each.memory_bytes), formatting.size(each.disk_bytes)]
            for each in application.cached
        ]
        columns = ("Data set", "In memory", "On disk")
        caption = "Cached data sets, the most of each"
        parts.append(table(caption, columns, rows, numeric=columns[1:]))
    parts += [
        tag("h3", "Settings"),
        settings_table("Settings of the engine that state its size", dict(application.settings))
        if application.settings
        else missing_note("The log does not state any."),
    ]
    return section(LOG, "Application, executors, settings", *parts)


def _executors_table(shapes: Sequence[ExecutorShape]) -> Html:
    if not shapes:
        return missing_note("The log does not report any.")
    rows = [
        [
            formatting.count(each.executors),
            formatting.count(each.hosts),
            formatting.count(each.cores) if each.cores is not None else "unknown",
            formatting.memory(each.memory_bytes) if each.memory_bytes is not None else "unknown",
        ]
        for each in shapes
    ]
    columns = ("Executors", "Machines", "Cores of each", "Memory for data of each")
    caption = "Executors at the first moment at which most of them ran"
    return table(caption, columns, rows, numeric=columns[1:])
