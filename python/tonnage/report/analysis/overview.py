"""What a reader takes away: the headline, what was found, and every operation in a row."""

from __future__ import annotations

from tonnage.base import formatting
from tonnage.base.records.analysis import Analysis, Subject
from tonnage.report.analysis.number_format import (
    interval,
    measurement_links,
    rate,
    sample_size,
    unit,
)
from tonnage.report.html import Child, Html, missing_note, section, table, tag

COLUMNS = [
    *(
        "Operation",
        "Outstanding",
        "Median",
        "Interval",
        "Of",
        "Variation",
        "Half take",
        "99 % take",
    ),
    "From",
]
NUMERIC = ("Outstanding", "Median", "Interval", "Variation", "Half take", "99 % take")


def title(analysis: Analysis) -> str:
    """The first sentence, without its full stop."""
    known = [each.name for each in analysis.machines if each.known]
    imported = len(analysis.machines) - len(known)
    if not known:
        return f"What {formatting.several(imported, 'imported result')} tell{'s' * (imported == 1)}"
    said = f"What {formatting.count(len(known))} machines carry"
    if len(known) == 1:
        said = f"What one machine carries: {known[0]}"
    return f"{said}; and {formatting.several(imported, 'imported result')}" if imported else said


def header(analysis: Analysis) -> Html:
    """The head of the page."""
    # What was imported only says when that was done.
    begun = sorted({each.began_at for each in analysis.cited if each.machine != each.id})
    when = " to ".join(map(formatting.moment, dict.fromkeys([*begun[:1], *begun[-1:]])))
    warned = len(analysis.warnings)
    notice = None
    if warned:
        said = f"{formatting.several(warned, 'warning')} about these figures"
        notice = tag("p", tag("a", said, href="#warnings"), class_="notice", role="note")
    tiles = [
        tag("div", tag("dt", name), tag("dd", tag("b", figure), tag("small", beside)))
        for name, figure, beside in _tiles(analysis)
    ]
    return tag(
        "header",
        tag("p", tag("b", "Tonnage"), f" · {when or 'imported'}", class_="eyebrow"),
        tag("h1", f"{title(analysis)}."),
        tag("p", _lead(analysis), class_="lead"),
        notice,
        tag("dl", *tiles, class_="tiles"),
    )


def overview_section(analysis: Analysis) -> Html:
    """The section."""
    found = [tag("li", said) for said in analysis.findings]
    doubts = [tag("li", said) for said in analysis.warnings]
    parts: list[Child] = [
        tag("ul", *found, class_="findings") if found else missing_note("Nothing was found."),
        tag("h3", "Warnings", id="warnings"),
        tag("ul", *doubts, class_="warnings") if doubts else tag("p", "None."),
        tag("h3", "Every operation"),
    ]
    if analysis.subjects:
        parts.append(table("Medians, and how surely", COLUMNS, _rows(analysis), numeric=NUMERIC))
    else:
        parts.append(missing_note("These measurements hold no readings."))
    return section("overview", "What was found", *parts)


def _lead(analysis: Analysis) -> str:
    subjects = analysis.subjects
    apples = {each.instance for subject in subjects for each in subject.bad_apples}
    moody = {each.instance for subject in subjects for each in subject.alternating}
    cyclic = {each.instance or "the fleet" for subject in subjects for each in subject.cycles}
    said = [
        f"{formatting.several(len(names), one)}"
        for names, one in ((apples, "bad apple"), (moody, "machine"), (cyclic, "cycle"))
        if names
    ]
    if moody:
        place = 1 if apples else 0
        said[place] += " that alternate" + ("s" if len(moody) == 1 else "") + " between speeds"
    if not said:
        return "Nothing that does not belong was found."
    return f"Found: {formatting.listing(said)}."


def _tiles(analysis: Analysis) -> list[tuple[str, str, str]]:
    known = sum(each.known for each in analysis.machines)
    readings = sum(each.readings for each in analysis.cited)
    cited = formatting.several(len(analysis.cited), "measurement")
    passed = sum(1 for rule in analysis.scorecard if rule.verdict == "pass")
    return [
        ("Machines", formatting.count(known), _alone(known, len(analysis.machines) - known)),
        ("Operations", formatting.count(len(analysis.subjects)), "of one tool, in one way, each"),
        ("Readings", formatting.count(readings), f"in {cited}"),
        (
            "Rules passed",
            f"{passed} of {len(analysis.scorecard)}",
            "for results that can be believed",
        ),
    ]


def _alone(known: int, imported: int) -> str:
    if imported:
        return f"and {formatting.several(imported, 'imported result')} of unknown ones"
    return "says nothing about others" if known == 1 else "each counts once"


def _rows(analysis: Analysis) -> list[list[Child]]:
    return [_row(subject) for subject in analysis.subjects]


def _row(subject: Subject) -> list[Child]:
    figure = unit(subject)
    latencies = {each.name: each.seconds.value for each in subject.chosen.latencies}
    variation = subject.variation
    return [
        tag("a", subject.name, href=f"#{subject.key}"),
        queue_depths(subject),
        rate(subject.rate, subject),
        interval(subject.rate, figure),
        sample_size(subject.rate),
        "–" if variation is None else formatting.percent(variation),
        formatting.latency(latencies["p50"]) if "p50" in latencies else "–",
        formatting.latency(latencies["p99"]) if "p99" in latencies else "–",
        measurement_links(subject.chosen.measurements),
    ]


def queue_depths(subject: Subject) -> str:
    """How many operations were outstanding."""
    numbers = subject.concurrencies
    if not numbers:
        return "not said"
    return str(numbers[0]) if len(numbers) == 1 else f"{numbers[0]} – {numbers[-1]}"
