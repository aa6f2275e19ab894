"""Render the bottleneck and the stages of each phase."""

import re
from collections.abc import Callable

from tonnage.base import formatting
from tonnage.base.records import ActualPhase, Limit, Phase, Stage, Study
from tonnage.report.html_elements import (
    Child,
    Html,
    cite,
    code,
    join,
    missing_note,
    section,
    share_bar,
    table,
    tag,
)

COLUMNS = ["Stage", "Workers", "Moved", "Time", "Busy", "Blocked", "Starved", "CPU", "Memory"]
NUMERIC = ("Workers", "Moved", "Busy", "Blocked", "Starved", "CPU", "Memory")


def limits_section(study: Study) -> Html:
    findings = [tag("li", finding) for finding in study.findings]
    parts: list[Child] = [tag("ul", *findings, class_="findings")] if findings else []
    if study.limit:
        parts.append(_limit(study.limit))
    why = list(study.actual.phases) if study.actual else []
    if study.run is None:
        parts.append(missing_note("The job was not run."))
    else:
        for phase in study.run.phases:
            # Phases with the same name are in the same order in both.
            found = next((each for each in why if each.name == phase.name), None)
            if found:
                why.remove(found)
            parts.append(_phase(phase, found))
    return section("limits", "Bottlenecks", *parts)


def graph_drawing(graph: str) -> Html:
    """Draw the core's one-line graph as boxes and arrows."""
    pieces = re.split(r" -(\S+)-> ", graph)
    boxes: list[Html] = []
    for place, piece in enumerate(pieces):
        if place % 2:
            arrow = tag("span", "→", aria_hidden="true")
            boxes.append(tag("li", tag("small", piece), arrow, class_="flow"))
            continue
        stage = re.fullmatch(r"(.+) x(\d+)", piece)
        if stage is None:
            return code(graph)
        workers = tag("small", f"×{stage[2]}")
        boxes.append(tag("li", stage[1], " ", workers, class_="stage"))
    return tag("ol", *boxes, class_="graph", aria_label=f"graph: {graph}")


def stages_table(phase: Phase, caption: str) -> Html:
    times = [
        (each.busy_seconds, each.blocked_seconds, each.starved_seconds) for each in phase.stages
    ]
    seconds = formatting.seconds_like(max(map(max, times), default=0.0))
    rows = [_stage(stage, seconds) for stage in phase.stages]
    marked = [place for place, stage in enumerate(phase.stages) if stage.name == phase.bottleneck]
    return table(caption, COLUMNS, rows, numeric=NUMERIC, marked=marked)


def _limit(limit: Limit) -> Html:
    cited = [cite(identifier) for identifier in limit.measurements]
    return tag(
        "p",
        f"The disks alone would need {formatting.seconds(limit.seconds)},"
        f" {formatting.percent(limit.efficiency)} of the job's time; {limit.rule}. ",
        join([Html("Measured by "), join(cited, Html(", ")), "."]) if cited else None,
    )


def _phase(phase: Phase, found: ActualPhase | None) -> Html:
    name = formatting.phase(phase.name)
    heading = tag("h3", name, tag("small", f" {formatting.seconds(phase.seconds)}"))
    if found:
        limit = formatting.bottleneck(found.bottleneck, [stage.name for stage in phase.stages])
        verdict = tag("p", tag("b", f"Limited by {limit}. "), formatting.sentence(found.why))
    else:
        verdict = tag("p", "The busiest stage: ", tag("b", phase.bottleneck), ".")
    used = formatting.memory(phase.memory_bytes)
    caption = f"Stages of {name}; their buffers and indexes used {used}"
    return join([heading, verdict, graph_drawing(phase.graph), stages_table(phase, caption)])


def _stage(stage: Stage, seconds: Callable[[float], str]) -> list[Child]:
    lived = stage.busy_seconds + stage.blocked_seconds + stage.starved_seconds
    shares = (
        (stage.busy_seconds, "busy"),
        (stage.blocked_seconds, "blocked"),
        (stage.starved_seconds, "starved"),
    )
    return [
        stage.name,
        formatting.count(stage.workers),
        formatting.size(stage.bytes),
        share_bar(*((spent / lived if lived else 0, kind) for spent, kind in shares)),
        seconds(stage.busy_seconds),
        seconds(stage.blocked_seconds),
        seconds(stage.starved_seconds),
        seconds(stage.cpu_seconds),
        formatting.memory(stage.memory_bytes) if stage.memory_bytes else "–",
    ]
