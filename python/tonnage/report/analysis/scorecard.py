"""How far to believe it: the six rules, what could not be drawn, machines and measurements."""

from __future__ import annotations

from tonnage.base import formatting
from tonnage.base.records.analysis import Analysis, CitedMeasurement, Omission
from tonnage.report.html import (
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

VERDICTS = {"pass": "✓ passed", "short": "✗ falls short", "unknown": "? unknown"}


def scorecard_section(analysis: Analysis) -> Html:
    """The section."""
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
        "A figure is the median over instances, each of which counts once with its own median; of "
        "a single machine it is the median over trials. Intervals are of order statistics, which "
        f"assume no distribution, at {confidence}; where there are too few values for one it is "
        "not estimable, and the tables say how many lack. Percentiles of latency are each "
        "instance's own and are never pooled. Bad apples, modes and cycles are each found in "
        f"{level} of fleets that have none, of each operation."
    )
    parts: list[Child] = [
        table("Six rules for results that can be believed", ["Rule", "Verdict", "Why"], cells),
        tag("h3", "How it was computed"),
        tag("p", how),
        tag("h3", "Charts that were left out"),
    ]
    if analysis.left_out:
        parts.append(tag("ul", *map(_left_out, analysis.left_out), class_="warnings"))
    else:
        parts.append(tag("p", "None."))
    return section("belief", "How far to believe it", *parts)


def sources_section(analysis: Analysis) -> Html:
    """The section of machines, and of measurements that figures are from."""
    rows: list[list[Child]] = [
        [
            each.name,
            each.description,
            "not given" if each.usd_per_hour is None else f"{each.usd_per_hour:g}",
            each.price_source or "–",
            join(map(cite, each.measurements), Html("<br>")),
        ]
        for each in analysis.machines
    ]
    columns = ["Machine", "What it is", "USD per hour", "Price from", "Measurements"]
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
            ("Readings", formatting.count(each.readings)),
            ("Stopping rule", each.stopping_rule or "not said"),
            ("Page cache", each.page_cache or "not said"),
        ]
    )
    body = [
        known,
        tag("h4", "Command"),
        code_block(formatting.command(each.command), f"command of {each.id}"),
    ]
    return tag("details", summary, *body, id=f"measurement-{slug(each.id)}")
