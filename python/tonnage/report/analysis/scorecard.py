"""Render the credibility rules, omitted charts, machines and measurements."""

from tonnage.base import formatting
from tonnage.base.records.analysis import Analysis, CitedMeasurement, Omission
from tonnage.report.html_elements import (
    Child,
    Html,
    cite,
    code,
    code_block,
    fact_list,
    join,
    missing_note,
    section,
    slug,
    table,
    tag,
)

VERDICTS = {"pass": "✓ passed", "short": "✗ failed", "unknown": "? unknown"}


def scorecard_section(analysis: Analysis) -> Html:
    cells: list[list[Child]] = [
        [
            formatting.sentence(rule.rule).rstrip("."),
            VERDICTS[rule.verdict],
            formatting.sentence(rule.reason),
        ]
        for rule in analysis.scorecard
    ]
    level = formatting.percent(analysis.false_alarm_level)
    confidence = formatting.percent(analysis.confidence)
    how = (
        "A value is the median over machines, each counted once with its own median; for a single "
        "machine it is the median over trials. Intervals are distribution-free order statistics at "
        f"{confidence}; with too few values they are not estimable, and the tables state how many "
        "are missing. Latency percentiles are each machine's own and are never pooled. Outliers, "
        f"modes and cycles are each falsely found in {level} of healthy clusters, per operation."
    )
    parts: list[Child] = [
        table("Six rules for credible results", ["Rule", "Verdict", "Why"], cells),
        tag("h3", "Method"),
        tag("p", how),
        tag("h3", "Omitted charts"),
    ]
    if analysis.left_out:
        parts.append(tag("ul", *map(_left_out, analysis.left_out), class_="warnings"))
    else:
        parts.append(tag("p", "None."))
    return section("belief", "Credibility", *parts)


def sources_section(analysis: Analysis) -> Html:
    rows: list[list[Child]] = [
        [
            each.name,
            each.description,
            "unknown" if each.usd_per_hour is None else f"{each.usd_per_hour:g}",
            each.price_source or "–",
            join(map(cite, each.measurements), Html("<br>")),
        ]
        for each in analysis.machines
    ]
    columns = ["Machine", "Description", "USD per hour", "Price source", "Measurements"]
    parts: list[Child] = [
        table("Machines", columns, rows, numeric=["USD per hour"])
        if rows
        else missing_note("No machines."),
        tag("h3", "Measurements"),
        *map(_cited, analysis.cited),
    ]
    return section("sources", "Machines and measurements", *parts)


def _left_out(each: Omission) -> Html:
    of = f" ({formatting.listing(each.subjects)})" if each.subjects else ""
    return tag("li", tag("b", each.chart), f": {each.why}{of}.")


def _cited(each: CitedMeasurement) -> Html:
    summary = tag(
        "summary", code(each.id), f" · {each.machine} · {formatting.moment(each.began_at)}"
    )
    known = fact_list(
        [
            ("Kind", each.kind),
            ("Measured by", formatting.listing(each.tools) or "Tonnage"),
            ("Metrics", formatting.count(each.readings)),
            ("Stopping rule", each.stopping_rule or "not stated"),
            ("Page cache", each.page_cache or "not stated"),
        ]
    )
    body = [
        known,
        tag("h4", "Command"),
        code_block(formatting.command(each.command), f"command of {each.id}"),
    ]
    return tag("details", summary, *body, id=f"measurement-{slug(each.id)}")
