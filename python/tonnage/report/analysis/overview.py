"""Render the headline, the findings, and a row for each operation."""

from tonnage.base import formatting
from tonnage.base.records.analysis import Analysis, Subject
from tonnage.report.analysis.number_format import (
    interval,
    measurement_links,
    rate,
    sample_size,
    unit,
)
from tonnage.report.html_elements import Child, Html, missing_note, section, table, tag
from tonnage.report.page import Tile, notice, page_header, tile_list

COLUMNS = [
    *("Operation", "Queue depth", "Median", "Interval", "Sample", "Variation", "p50", "p99"),
    "From",
]
NUMERIC = ("Queue depth", "Median", "Interval", "Variation", "p50", "p99")


def title(analysis: Analysis) -> str:
    """The first sentence, without its full stop."""
    known = [each.name for each in analysis.machines if each.known]
    imported = len(analysis.machines) - len(known)
    if not known:
        return formatting.several(imported, "imported result")
    said = f"Throughput of {formatting.count(len(known))} machines"
    if len(known) == 1:
        said = f"Throughput of {known[0]}"
    return f"{said}, and {formatting.several(imported, 'imported result')}" if imported else said


def header(analysis: Analysis) -> Html:
    # Imported results only have the time of the import.
    begun = sorted({each.began_at for each in analysis.cited if each.machine != each.id})
    when = " to ".join(map(formatting.moment, dict.fromkeys([*begun[:1], *begun[-1:]])))
    said = f"{formatting.several(len(analysis.warnings), 'warning')} about these figures"
    return page_header(
        when or "imported",
        title(analysis),
        tag("p", _lead(analysis), class_="lead"),
        notice(said, "warnings") if analysis.warnings else None,
        tile_list(Tile(*each) for each in _tiles(analysis)),
    )


def overview_section(analysis: Analysis) -> Html:
    found = [tag("li", said) for said in analysis.findings]
    caveats = [tag("li", said) for said in analysis.warnings]
    parts: list[Child] = [
        tag("ul", *found, class_="findings") if found else missing_note("No findings."),
        tag("h3", "Warnings", id="warnings"),
        tag("ul", *caveats, class_="warnings") if caveats else tag("p", "None."),
        tag("h3", "Every operation"),
    ]
    if analysis.subjects:
        rows = map(_row, analysis.subjects)
        parts.append(table("Medians with intervals", COLUMNS, rows, numeric=NUMERIC))
    else:
        parts.append(missing_note("These measurements have no metrics."))
    return section("overview", "Findings", *parts)


def _lead(analysis: Analysis) -> str:
    subjects = analysis.subjects
    outliers = {each.instance for subject in subjects for each in subject.bad_apples}
    alternating = {each.instance for subject in subjects for each in subject.alternating}
    cyclic = {each.instance or "the cluster" for subject in subjects for each in subject.cycles}
    found = [
        formatting.several(len(names), one)
        for names, one in ((outliers, "slow outlier"), (alternating, "machine"), (cyclic, "cycle"))
        if names
    ]
    if alternating:
        verb = "alternates" if len(alternating) == 1 else "alternate"
        found[1 if outliers else 0] += f" that {verb} between speeds"
    if not found:
        return "No outliers, mode changes or cycles were found."
    return f"Found: {formatting.listing(found)}."


def _tiles(analysis: Analysis) -> list[tuple[str, str, str]]:
    known = sum(each.known for each in analysis.machines)
    readings = sum(each.readings for each in analysis.cited)
    cited = formatting.several(len(analysis.cited), "measurement")
    passed = sum(1 for rule in analysis.scorecard if rule.verdict == "pass")
    return [
        (
            "Machines",
            formatting.count(known),
            _imported_note(known, len(analysis.machines) - known),
        ),
        (
            "Operations",
            formatting.count(len(analysis.subjects)),
            "of different tools or conditions",
        ),
        ("Metrics", formatting.count(readings), f"in {cited}"),
        ("Rules passed", f"{passed} of {len(analysis.scorecard)}", "for credible results"),
    ]


def _imported_note(known: int, imported: int) -> str:
    if imported:
        return f"and {formatting.several(imported, 'imported result')} of unknown machines"
    return "not representative of other machines" if known == 1 else "each counts once"


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
    numbers = subject.concurrencies
    if not numbers:
        return "not stated"
    return str(numbers[0]) if len(numbers) == 1 else f"{numbers[0]} – {numbers[-1]}"
