"""Render plans: cost and time by machine type, the Pareto front, and the candidates.

Several plans appear side by side, like figure 9 of Themis on EC2: a sort's cost with an infinite, a
scaling and a measured network.
"""

from pathlib import Path
from typing import Literal

from tonnage.base import formatting
from tonnage.base.records.plan import Candidate, NamedPlan, Plan, Plans, Range
from tonnage.report.charts import (
    PLAIN,
    Chart,
    Trace,
    bars,
    error_bars,
    grouped_bars_layout,
    layout,
    scatter,
    titled,
)
from tonnage.report.environment import settings_table
from tonnage.report.html_elements import Html, section, table, tag
from tonnage.report.page import PageSection, page_header, render_page, write_page

SHOWN = 12
"""Machine types in the charts; the tables have all."""
TYPE_HEIGHT, PLAN_HEIGHT = 16, 13
COLOURS = ("--work-three", "--read", "--work-two", "--work-one", "--write", "--steal")
MAX_PLANS = len(COLOURS)
"""The number of distinguishable colours."""
COLUMNS = (
    *("Machine type", "Nodes", "Time", "Cost"),
    *("Bottleneck", "Evidence", "Calibrated by", "Storage"),
)
FRONT = "Pareto front of median cost and time"

Figure = Literal["cost_usd", "seconds"]
TITLES: dict[Figure, str] = {"cost_usd": "Cost, USD", "seconds": "Time, s"}


def write_plans(plans: Plans, path: Path) -> Path:
    """Write the page to ``path`` and the plans as JSON next to it."""
    return write_page(plans, render(plans), path)


def render(plans: Plans) -> str:
    charts = [_bars(figure, plans) for figure in TITLES]
    front = _front(plans)
    types = section("types", "Cost and time by machine type", *map(Chart.figure, charts))
    parts = [
        PageSection("types", "Machine types", types),
        PageSection("front", "Front", section("front", "Faster or cheaper", front.figure())),
    ]
    for place, each in enumerate(plans.plans):
        key = f"plan-{place}"
        parts.append(PageSection(key, each.name, _plan(key, each)))
    return render_page(title(plans), _header(plans), parts, [*charts, front])


def title(plans: Plans) -> str:
    """The first sentence, without its full stop."""
    first = plans.plans[0].plan
    whats = {f"{each.plan.job.name} of {formatting.size(each.plan.bytes)}" for each in plans.plans}
    if len(plans.plans) > 1:
        return (
            f"{formatting.several(len(plans.plans), 'plan')}: {formatting.listing(sorted(whats))}"
        )
    return f"{formatting.sentence(whats.pop())[:-1]}: {best_in_words(first)}"


def best_in_words(plan: Plan) -> str:
    """The plan's best candidate in words."""
    if not plan.candidates:
        return "no candidate meets the limits"
    best = plan.candidates[0]
    return (
        f"{best.nodes} x {name_of(best)}, {formatting.duration(best.seconds.median)}, "
        f"{formatting.cents(best.cost_usd.median)}"
    )


def name_of(candidate: Candidate) -> str:
    """A machine type and its storage layout."""
    placed = ", placement group" if candidate.placement else ""
    return f"{candidate.offer} ({candidate.layout}{placed})"


def _header(plans: Plans) -> Html:
    said = [f"{each.name}: {best_in_words(each.plan)}." for each in plans.plans]
    made = max(each.plan.made_at for each in plans.plans)
    lead = tag("p", " ".join(said), class_="lead") if len(said) > 1 else None
    return page_header(formatting.moment(made), title(plans), lead)


def _bars(figure: Figure, plans: Plans) -> Chart:
    """A group for each machine type, best first, with a bar for each plan."""
    best: list[dict[str, Candidate]] = []
    for each in plans.plans:
        first: dict[str, Candidate] = {}
        for candidate in each.plan.candidates:
            first.setdefault(name_of(candidate), candidate)
        best.append(first)
    least: dict[str, float] = {}
    for first in best:
        for name, candidate in first.items():
            value = _range(candidate, figure).median
            least[name] = min(value, least.get(name, value))
    shown = sorted(least, key=least.__getitem__)[:SHOWN]
    grouped = grouped_bars_layout(shown)
    grouped["margin"] |= {"l": 20, "b": 40}
    grouped["yaxis"] |= {"automargin": True}
    grouped["xaxis"] |= {"ticksuffix": "", "title": titled(TITLES[figure])}
    traces: list[Trace] = []
    said = []
    for place, (each, first) in enumerate(zip(plans.plans, best, strict=True)):
        names = [name for name in shown if name in first]
        traces.append(_trace(each.name, names, first, figure, COLOURS[place]))
        for name in names:
            told = _range_text(_range(first[name], figure), figure)
            said.append(f"{each.name}, {first[name].nodes} x {name}: {told}")
    left = len(least) - len(shown)
    sure = formatting.listing(
        sorted({formatting.percent(each.plan.confidence) for each in plans.plans})
    )
    return Chart(
        name=f"chart-{figure.replace('_', '-')}",
        title=f"{TITLES[figure]}, with intervals of {sure}",
        description=f"{TITLES[figure]}, by machine type. {'; '.join(said)}.",
        height=60 + len(shown) * (TYPE_HEIGHT + PLAN_HEIGHT * len(plans.plans)),
        traces=traces,
        layout=grouped,
        legend=_legend(plans),
        note=f"{formatting.several(left, 'more machine type')} in the tables below."
        if left
        else None,
    )


def _trace(
    plan: str, names: list[str], first: dict[str, Candidate], figure: Figure, colour: str
) -> Trace:
    ranges = [_range(first[name], figure) for name in names]
    return bars(
        names,
        [each.median for each in ranges],
        plan,
        colour,
        "%{customdata} x %{y}: %{x:,.4~r}<extra>%{fullData.name}</extra>",
        customdata=[first[name].nodes for name in names],
        error_x=error_bars((each.low, each.median, each.high) for each in ranges),
    )


def _front(plans: Plans) -> Chart:
    """Each plan's front as a line on logarithmic axes."""
    traces: list[Trace] = []
    said = []
    for place, each in enumerate(plans.plans):
        points = sorted(each.plan.pareto, key=lambda point: point.seconds)
        traces.append(
            scatter(
                [point.seconds for point in points],
                [point.cost_usd for point in points],
                each.name,
                "%{customdata}: %{x:,.4~r} s, $%{y:,.2f}<extra>%{fullData.name}</extra>",
                line={"color": COLOURS[place], "width": 1.5},
                marker={"size": 6, "color": COLOURS[place]},
                customdata=[f"{point.nodes} x {point.offer}" for point in points],
            )
        )
        ends = dict.fromkeys([*points[:1], *points[-1:]])
        said += [
            f"{each.name}: {point.nodes} x {point.offer} {formatting.duration(point.seconds)}, "
            f"{formatting.cents(point.cost_usd)}"
            for point in ends
        ]
    axis = {"type": "log", "fixedrange": True, **PLAIN}
    return Chart(
        name="chart-front",
        title=FRONT,
        description=f"{FRONT}. From the fastest to the cheapest: {'; '.join(said)}.",
        height=300,
        traces=traces,
        layout=layout(axis | {"title": titled("s")}, axis | {"title": titled("USD")}, l=64),
        legend=_legend(plans),
    )


def _legend(plans: Plans) -> list[tuple[str, str]]:
    names = [each.name for each in plans.plans]
    if len(names) == 1:
        return []
    return [(COLOURS[place], name) for place, name in enumerate(names)]


def _plan(key: str, named: NamedPlan) -> Html:
    plan = named.plan
    rows = [_row(each) for each in plan.candidates]
    notes = [tag("p", formatting.sentence(note), class_="note") for note in plan.notes]
    asked = {
        "data": formatting.size(plan.bytes),
        "catalogs": formatting.listing(plan.catalogs),
        "profiles": formatting.listing(plan.profiles),
        **{name: value for name, value in plan.settings.items() if value not in (None, [])},
        "job": plan.job.settings,
    }
    whys = [[each.offer, each.why] for each in plan.excluded]
    excluded = table("Excluded offers", ("Offer", "Why"), whys)
    more = tag("details", tag("summary", f"{len(plan.excluded)} excluded offers"), excluded)
    return section(
        key,
        named.name,
        tag("p", f"{best_in_words(plan)}."),
        table(f"Candidates, best first. {formatting.sentence(plan.interval_rule)}", COLUMNS, rows),
        *notes,
        settings_table("Request", asked),
        more if plan.excluded else None,
    )


def _row(each: Candidate) -> list[str]:
    longest = max(each.phases, key=lambda phase: phase.seconds, default=None)
    return [
        name_of(each),
        formatting.count(each.nodes),
        _range_text(each.seconds, "seconds"),
        _range_text(each.cost_usd, "cost_usd"),
        longest.bottleneck if longest else "nothing",
        each.evidence,
        formatting.several(len(each.calibrated.runs), "run") if each.calibrated else "nothing",
        f"{formatting.size(each.capacity.needed_bytes)} of "
        f"{formatting.size(each.capacity.have_bytes)}",
    ]


def _range(candidate: Candidate, figure: Figure) -> Range:
    return candidate.cost_usd if figure == "cost_usd" else candidate.seconds


def _range_text(of: Range, figure: Figure) -> str:
    said = formatting.cents if figure == "cost_usd" else formatting.duration
    return f"{said(of.median)} ({said(of.low)} – {said(of.high)})"
