"""Render what to change first."""

from collections.abc import Sequence

from tonnage.base import formatting
from tonnage.base.records.finding import Finding
from tonnage.report.html_elements import Child, Html, code, join, missing_note, section, tag

KEY = "findings"
MANY_CORE_SECONDS = 36_000
"""So many are stated in hours."""
OVERLAP = (
    "What each could save is a bound that the record gives, not a forecast. The same time may be "
    "in several, so they do not add up."
)


def findings_section(findings: Sequence[Finding], seconds: float, core_seconds: float) -> Html:
    """The findings in their order; shares are of a run's seconds and core seconds."""
    heading = "What to change first"
    if not findings:
        said = "Nothing stands out: no change would save more than a few percent."
        return section(KEY, heading, missing_note(said))
    found = [tag("li", _finding(each, seconds, core_seconds)) for each in findings]
    return section(
        KEY, heading, tag("ol", *found, class_="changes"), tag("p", OVERLAP, class_="note")
    )


def core_time(core_seconds: float) -> str:
    """Seconds of cores, or hours if there are many."""
    if core_seconds >= MANY_CORE_SECONDS:
        return f"{formatting.significant(core_seconds / 3600)} core hours"
    return f"{formatting.significant(core_seconds)} core seconds"


def _finding(finding: Finding, seconds: float, core_seconds: float) -> Html:
    settings: list[Child] = []
    if finding.settings:
        names = join(map(code, finding.settings), Html(", "))
        settings = [tag("p", "Settings: ", names, class_="setting")]
    return join(
        [
            tag("h3", finding.name),
            tag("p", tag("b", f"Saves at most {saving(finding, seconds, core_seconds)}.")),
            tag("p", finding.fact),
            tag("p", finding.change),
            *settings,
            tag("p", f"The bound: {finding.formula}.", class_="note"),
        ]
    )


def saving(finding: Finding, seconds: float, core_seconds: float) -> str:
    """What a change could save at most, in words."""
    of_time = f"{formatting.duration(finding.seconds)} of the run"
    if seconds:
        of_time += f" ({formatting.percent(finding.seconds / seconds)})"
    if finding.core_seconds is None:
        return of_time
    share = f" ({formatting.percent(finding.core_seconds / core_seconds)})" if core_seconds else ""
    return f"{core_time(finding.core_seconds)}{share}, or {of_time}"
