"""Render plans: cost and time by machine type, as points with the Pareto front, and as tables.

Several plans appear side by side, like figure 9 of Themis on EC2: a sort's cost with an infinite, a
scaling and a measured network.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal

from tonnage.base import formatting
from tonnage.base.records.plan import (
    NO_CORES,
    WITHOUT_CORES,
    Candidate,
    NamedPlan,
    Plan,
    Plans,
    Range,
    Tradeoff,
)
from tonnage.catalog.published.core_speeds import family_of
from tonnage.plan.candidates import best_of_families, first_of_each
from tonnage.report.charts import (
    Chart,
    Trace,
    bars,
    error_bars,
    grouped_bars_layout,
    layout,
    log_axis,
    scatter,
    titled,
)
from tonnage.report.environment import settings_table
from tonnage.report.html_elements import Child, Html, join, section, table, tag
from tonnage.report.page import PageSection, page_header, render_page, write_page

SHOWN = 12
"""Machine types in the bar charts, of more the best of each family; the tables have all."""
ROWS = 20
"""Rows of the table of the best candidates."""
CENTS_UP_TO = 1_000
"""The dollars from which the ends of an interval have no cents, as a phone's columns are narrow."""
TYPE_HEIGHT, PLAN_HEIGHT = 16, 13
COLOURS = ("--work-three", "--read", "--work-two", "--work-one", "--write", "--steal")
MAX_PLANS = len(COLOURS)
"""The number of distinguishable colours."""
COLUMNS = ("Offer", "Time", "Cost", "Layout", "Bottleneck", "Evidence", "Calibrated by", "Storage")
MEETS = "Meets deadline"
POINTS = "Median cost and time of the candidates, and the Pareto front"

TIMES = [
    *(1, 2, 5, 10, 20, 60, 120, 300, 600, 1_200, 1_800, 2_700),
    *(hours * 3_600 for hours in (1, 1.5, 2, 3, 4, 6, 8, 12, 24, 48, 96, 168, 336, 720)),
]
"""Seconds at which the axis of time has marks."""

Figure = Literal["cost_usd", "seconds"]
ON_HOVER = "%{customdata[0]}<extra>%{fullData.name}</extra>"
TITLES: dict[Figure, str] = {"cost_usd": "Cost, USD", "seconds": "Time, s"}


def write_plans(plans: Plans, path: Path) -> Path:
    """Write the page to ``path`` and the plans as JSON next to it."""
    return write_page(plans, render(plans), path)


def render(plans: Plans) -> str:
    charts = [_bars(figure, plans) for figure in TITLES]
    points = _points(plans)
    types = section("types", "Cost and time by machine type", *map(Chart.figure, charts))
    parts = [
        PageSection("types", "Machine types", types),
        PageSection("front", "Front", section("front", "Faster or cheaper", points.figure())),
    ]
    for place, each in enumerate(plans.plans):
        key = f"plan-{place}"
        parts.append(PageSection(key, each.name, _plan(key, each)))
    return render_page(title(plans), _header(plans), parts, [*charts, points])


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
    return _point_text(plan.candidates[0], plan)


def name_of(candidate: Candidate | Tradeoff) -> str:
    """A machine type and its storage layout."""
    placed = ", placement group" if candidate.placement else ""
    return f"{candidate.offer} ({candidate.layout}{placed})"


def _header(plans: Plans) -> Html:
    said = [f"{each.name}: {best_in_words(each.plan)}." for each in plans.plans]
    made = max(each.plan.made_at for each in plans.plans)
    lead = tag("p", " ".join(said), class_="lead") if len(said) > 1 else None
    return page_header(formatting.moment(made), title(plans), lead)


def _bars(figure: Figure, plans: Plans) -> Chart:
    """A group for each machine type, or the best of each family, with a bar for each plan."""
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
    by_name = {name: each for first in best for name, each in first.items()}
    ranked = sorted(least, key=least.__getitem__)
    shown = [name for _, name in first_of_each(ranked, lambda name: _family(by_name[name]), SHOWN)]
    grouped = grouped_bars_layout(shown)
    grouped["margin"] |= {"l": 20, "b": 40}
    grouped["yaxis"] |= {"automargin": True}
    grouped["xaxis"] |= {"ticksuffix": "", "title": titled(TITLES[figure])}
    traces: list[Trace] = []
    said = []
    for place, (each, first) in enumerate(zip(plans.plans, best, strict=True)):
        names = [name for name in shown if name in first]
        traces.append(_trace(each, names, first, figure, COLOURS[place]))
        for name in names:
            told = _range_text(_range(first[name], figure), figure, each.plan.demands_known)
            said.append(f"{each.name}, {first[name].nodes} x {name}: {told}")
    left = len(least) - len(shown)
    return Chart(
        name=f"chart-{figure.replace('_', '-')}",
        title=f"{TITLES[figure]}, {_intervals_in_words(plans)}",
        description=f"{TITLES[figure]}, by machine type. {'; '.join(said)}.",
        height=60 + len(shown) * (TYPE_HEIGHT + PLAN_HEIGHT * len(plans.plans)),
        traces=traces,
        layout=grouped,
        legend=_legend(plans),
        note=f"{formatting.several(left, 'more machine type')} in the tables below."
        if left
        else None,
    )


def _intervals_in_words(plans: Plans) -> str:
    known = [each.plan for each in plans.plans if each.plan.demands_known]
    if not known:
        return WITHOUT_CORES
    sure = formatting.listing(sorted({formatting.percent(each.confidence) for each in known}))
    rest = f", or {WITHOUT_CORES}" if len(known) < len(plans.plans) else ""
    return f"with intervals of {sure}{rest}"


def _family(each: Candidate) -> tuple[str, str, bool]:
    return each.provider, family_of(each.provider, each.offer), each.placement


def _trace(
    named: NamedPlan, names: list[str], first: dict[str, Candidate], figure: Figure, colour: str
) -> Trace:
    ranges = [_range(first[name], figure) for name in names]
    intervals = [(each.low, each.median, each.high) for each in ranges]
    return bars(
        names,
        [each.median for each in ranges],
        named.name,
        colour,
        "%{customdata} x %{y}: %{x:,.4~r}<extra>%{fullData.name}</extra>",
        customdata=[first[name].nodes for name in names],
        **({"error_x": error_bars(intervals)} if named.plan.demands_known else {}),
    )


def _points(plans: Plans) -> Chart:
    """Each plan's candidates as points and its front as a line, on logarithmic axes."""
    traces: list[Trace] = []
    said = []
    has_search = any(len(each.plan.candidates) > ROWS for each in plans.plans)
    for place, each in enumerate(plans.plans):
        points = sorted(each.plan.pareto, key=lambda point: point.seconds)
        candidates = each.plan.candidates
        traces.append(
            scatter(
                [one.seconds.median for one in candidates],
                [one.cost_usd.median for one in candidates],
                each.name,
                ON_HOVER,
                marker={"size": 4, "color": COLOURS[place], "opacity": 0.4},
                customdata=[(_point_text(one, each.plan), one.offer) for one in candidates],
                meta=f"plan-{place}-search",
            )
        )
        traces.append(
            scatter(
                [point.seconds for point in points],
                [point.cost_usd for point in points],
                each.name,
                ON_HOVER,
                line={"color": COLOURS[place], "width": 1.5},
                marker={"size": 6, "color": COLOURS[place]},
                customdata=[(_point_text(point, each.plan), point.offer) for point in points],
                meta=f"plan-{place}-search",
            )
        )
        ends = dict.fromkeys([*points[:1], *points[-1:]])
        said += [f"{each.name}: {_point_text(point, each.plan)}" for point in ends]
    return Chart(
        name="chart-front",
        title=POINTS,
        description=f"{POINTS}. From the fastest to the cheapest: {'; '.join(said)}.",
        height=340,
        traces=traces,
        layout=layout(_time_axis(), log_axis(_costs(plans) or [1.0], "USD"), l=64),
        legend=_legend(plans),
        note="A click on a point searches for its machine type." if has_search else None,
    )


def _point_text(point: Candidate | Tradeoff, plan: Plan) -> str:
    seconds, usd = point.seconds, point.cost_usd
    seconds = seconds.median if isinstance(seconds, Range) else seconds
    usd = usd.median if isinstance(usd, Range) else usd
    rent = f"{point.nodes} x {name_of(point)}"
    without = "" if plan.demands_known else f" {WITHOUT_CORES}"
    return f"{rent}, {formatting.duration(seconds)}, {formatting.cents(usd)}{without}"


def _time_axis() -> dict[str, Any]:
    """A logarithmic axis for seconds, with marks as people say times."""
    return log_axis([1.0]) | {
        "tickvals": TIMES,
        "ticktext": [formatting.duration(each) for each in TIMES],
    }


def _costs(plans: Plans) -> list[float]:
    return [each.cost_usd.median for named in plans.plans for each in named.plan.candidates]


def _legend(plans: Plans) -> list[tuple[str, str]]:
    names = [each.name for each in plans.plans]
    if len(names) == 1:
        return []
    return [(COLOURS[place], name) for place, name in enumerate(names)]


def _plan(key: str, named: NamedPlan) -> Html:
    plan = named.plan
    caveats = [
        f"{each.offer}: {formatting.sentence(note)}"
        for each in plan.candidates[:1]
        for note in each.notes
    ]
    asked = {
        "data": formatting.size(plan.bytes),
        "catalogs": formatting.listing(plan.catalogs),
        "profiles": formatting.listing(plan.profiles),
        **{name: value for name, value in plan.settings.items() if value not in (None, [])},
        "job": plan.job.settings,
    }
    whys = [[each.offer, each.why] for each in plan.excluded]
    excluded = table("Excluded offers", ("Offer", "Why"), whys)
    count = formatting.several(len(plan.excluded), "excluded offer")
    more = tag("details", tag("summary", count), excluded)
    return section(
        key,
        named.name,
        tag("p", f"{best_in_words(plan)}."),
        _list([*map(formatting.sentence, plan.notes), *caveats]),
        *_candidates(key, plan),
        settings_table("Request", asked),
        more if plan.excluded else None,
    )


def _list(notes: Sequence[str]) -> Html | None:
    items = [tag("li", note) for note in notes]
    return tag("ul", *items, class_="findings") if items else None


def _candidates(key: str, plan: Plan) -> list[Html]:
    """The best of each family, and folded with a search if there are more, all."""
    count = formatting.several(len(plan.candidates), "candidate")
    best = best_of_families(plan.candidates, ROWS)
    rule = formatting.sentence(plan.interval_rule if plan.demands_known else NO_CORES)
    if len(best) == len(plan.candidates):
        return [_candidate_table(f"All {count}, best first. {rule}", plan, best)]
    caption = f"The best of each family, {len(best)} of {count}, under their ranks. {rule}"
    every = _candidate_table(f"All {count}, best first", plan, [*enumerate(plan.candidates, 1)])
    search = tag(
        "p",
        tag("label", "Search by offer, family or provider", for_=f"{key}-search"),
        tag("input", type="search", id=f"{key}-search", data_search=f"{key}-all"),
        tag("span", role="status"),
        class_="search",
        hidden=True,
    )
    fold = tag("details", tag("summary", f"All {count}"), every, id=f"{key}-all")
    return [search, _candidate_table(caption, plan, best), fold]


def _candidate_table(caption: str, plan: Plan, ranked: Sequence[tuple[int, Candidate]]) -> Html:
    in_time = plan.demands_known and plan.settings["deadline_seconds"] is not None
    columns = (*COLUMNS, MEETS) if in_time else COLUMNS
    rows = [_row(rank, each, plan.demands_known, in_time) for rank, each in ranked]
    return tag(
        "div",
        table(caption, columns, rows, numeric=("Time", "Cost", MEETS)),
        class_="candidates",
    )


def _row(rank: int, each: Candidate, demands_known: bool, in_time: bool) -> list[Child]:
    longest = max(each.phases, key=lambda phase: phase.seconds, default=None)
    runs = formatting.several(len(each.calibrated.runs), "run") if each.calibrated else "nothing"
    rent = f"{formatting.count(each.nodes)} x {each.offer}"
    family = family_of(each.provider, each.offer)
    placed = ", placement group" if each.placement else ""
    row: list[Child] = [
        _two_lines(rent, f"rank {formatting.count(rank)}, {each.provider} {family}"),
        _range_cell(each.seconds, "seconds", demands_known),
        _range_cell(each.cost_usd, "cost_usd", demands_known),
        f"{each.layout}{placed}",
        longest.bottleneck if longest else "nothing",
        each.evidence,
        runs,
        _storage(each),
    ]
    return [*row, formatting.percent(each.deadline_probability or 0.0)] if in_time else row


def _storage(each: Candidate) -> Child:
    disks, memory = each.capacity, each.memory
    stored = f"{formatting.size(disks.needed_bytes)} of {formatting.size(disks.have_bytes)}"
    if memory is None:
        return stored
    needed, available = map(formatting.memory, (memory.needed_bytes, memory.have_bytes))
    return _two_lines(stored, f"memory: {needed} of {available}")


def _two_lines(first: str, second: str) -> Html:
    return join([first, tag("br"), tag("small", second)])


def _range_cell(of: Range, figure: Figure, demands_known: bool) -> Child:
    """The median above the interval; its low end alone if more than was counted takes time."""
    if demands_known:
        return _two_lines(*_middle_and_ends(of, figure))
    return f"at least {_formatter(of.low, figure)(of.low)}"


def _range(candidate: Candidate, figure: Figure) -> Range:
    return candidate.cost_usd if figure == "cost_usd" else candidate.seconds


def _range_text(of: Range, figure: Figure, demands_known: bool) -> str:
    middle, ends = _middle_and_ends(of, figure)
    return f"{middle} ({ends})" if demands_known else f"{middle} {WITHOUT_CORES}"


def _middle_and_ends(of: Range, figure: Figure) -> tuple[str, str]:
    said = formatting.cents if figure == "cost_usd" else formatting.duration
    end = _formatter(of.high, figure)
    return said(of.median), f"{end(of.low)} – {end(of.high)}"


def _formatter(largest: float, figure: Figure) -> Callable[[float], str]:
    if figure == "seconds":
        return formatting.duration
    return _whole_usd if largest >= CENTS_UP_TO else formatting.cents


def _whole_usd(usd: float) -> str:
    return f"${usd:,.0f}"
