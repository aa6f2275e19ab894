"""Render where the time of all cores went: one bar, and a table of its parts."""

from tonnage.base import formatting
from tonnage.base.records.application_analysis import (
    ApplicationAnalysis,
    CoreUse,
    CoreUseKind,
    Limit,
)
from tonnage.report.html_elements import Child, Html, colour_bar, section, swatch, table, tag
from tonnage.report.jobs.findings import MANY_CORE_SECONDS, core_time

KEY = "cores"
NAMES: dict[CoreUseKind, str] = {
    "computing": "Computing",
    "garbage collection": "Garbage collection",
    "shuffle fetch": "Waiting for shuffled data",
    "shuffle write": "Writing shuffled data",
    "loading of tasks": "Loading tasks",
    "launch and results": "Launching tasks, sending results",
    "Python or waiting": "Python workers, or waiting",
    "other waits": "Other waits in tasks",
    "lost tasks": "Lost: failed or killed tasks",
    "no stage": "Idle: no stage, the driver alone",
    "too few tasks": "Idle: too few tasks",
    "last tasks": "Idle: a stage's last tasks",
    "between tasks": "Idle: between tasks",
}
COLOURS: dict[CoreUseKind, str] = {
    "computing": "--busy",
    "garbage collection": "--steal",
    "shuffle fetch": "--work-one",
    "shuffle write": "--write",
    "loading of tasks": "--work-two",
    "launch and results": "--work-two-soft",
    "Python or waiting": "--busy-soft",
    "other waits": "--iowait",
    "lost tasks": "--blocked",
    "no stage": "--work-three",
    "too few tasks": "--predicted",
    "last tasks": "--read-soft",
    "between tasks": "--starved",
}
COLOURS_OF_LIMITS: dict[Limit, str] = {
    "computing": "--busy",
    "other waits": "--iowait",
    "shuffle waits": "--work-one",
    "longest task": "--write",
    "too few tasks": "--read",
    "fixed": "--work-three",
}
MORE = 1.01
"""Tasks may report a little more than there was, as clocks differ."""


def core_time_section(analysis: ApplicationAnalysis) -> Html:
    heading = "Where the time of all cores went"
    total, of = sum(each.core_seconds for each in analysis.uses), analysis.core_seconds
    if not total:
        return section(KEY, heading, tag("p", "No core time was reported.", class_="missing"))
    parts: list[Child] = [
        tag("p", _explanation(analysis), class_="note"),
        colour_bar([(each.core_seconds / total, COLOURS[each.kind]) for each in analysis.uses]),
        _table(analysis.uses, total),
        tag(
            "p",
            "A share with “about” is estimated: its counters overlap others, or an assumption "
            "divides it. Each is counted up to what the ones above it leave.",
            class_="note",
        ),
    ]
    if of and total > MORE * of:
        more = f"Tasks report {core_time(total - of)} more than the executors' cores had."
        parts.append(tag("p", f"{more} The shares are of the sum.", class_="note"))
    return section(KEY, heading, *parts)


def share_of(use: CoreUse, total: float) -> str:
    """A share of all core seconds; an estimated one has “about”."""
    share = formatting.percent(use.core_seconds / total)
    return f"about {share}" if use.estimated else share


def _explanation(analysis: ApplicationAnalysis) -> str:
    if analysis.core_seconds is None:
        return (
            "The log does not report the executors' cores, so this is the time of tasks only; how "
            "long cores were idle is not known."
        )
    return (
        "Core seconds = executors x cores x the time that each executor was there: "
        f"{core_time(analysis.core_seconds)}, busy or not."
    )


def _table(uses: list[CoreUse], total: float) -> Html:
    hours = total >= MANY_CORE_SECONDS
    rows: list[list[Child]] = [
        [
            swatch(COLOURS[each.kind], NAMES[each.kind]),
            formatting.significant(each.core_seconds / (3600 if hours else 1)),
            share_of(each, total),
            formatting.sentence(each.formula),
        ]
        for each in uses
    ]
    unit = "Core hours" if hours else "Core seconds"
    columns = ("What cores did", unit, "Share", "How it follows from the log")
    return table("What the cores did", columns, rows, numeric=(unit, "Share"), hide_caption=True)
