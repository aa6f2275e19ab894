"""Render a sweep of reductions over chunk sizes and threads, like figures 4 to 7 of MATE-EC2.

Execution, retrieval, processing and synchronisation time by chunk size, a line for each number of
threads, with the automatically tuned choice among them.
"""

from pathlib import Path

from tonnage.base import formatting
from tonnage.base.records.sweep import ReductionSweep, SweepCell, SweepResult
from tonnage.report.charts import Chart, Trace, layout, scatter, titled, zero_based_axis
from tonnage.report.environment import command_block, machine_facts, settings_table
from tonnage.report.html_elements import Html, fact_list, join, section, table, tag
from tonnage.report.page import PageSection, page_header, render_page, write_page

FIGURES = {
    "seconds": "Execution time",
    "retrieval_seconds": "Retrieval time: a worker's wait for chunks",
    "processing_seconds": "Processing time of a worker",
    "synchronisation_seconds": "Synchronisation time: a worker's wait for the others",
}
COLOURS = ("--work-three", "--read", "--work-two", "--work-one", "--write", "--steal")
FOUND = "--accent"
PLANNED = ("Nodes", "Planned", "Time", "Interval", "Planned bottleneck", "Bottleneck")
COLUMNS = ("Chunk", "Threads", "Time", "Retrieval", "Processing", "Synchronisation", "CPU", "Runs")


def write_sweep(sweep: ReductionSweep, path: Path) -> Path:
    """Write the page to ``path`` and the sweep as JSON next to it."""
    return write_page(sweep, render(sweep), path)


def render(sweep: ReductionSweep) -> str:
    parts, drawn = [], []
    for number, swept in enumerate(sweep.swept):
        charts = [_chart(f"{number}-{name}", name, swept) for name in FIGURES]
        drawn += charts
        body = [tag("p", found_in_words(swept)), *(chart.figure() for chart in charts)]
        name, key = name_of(swept), f"sweep-{number}"
        parts.append(PageSection(key, name, section(key, name, *body, _table(swept))))
    if sweep.compared:
        parts.append(PageSection("plan", "Plan", section("plan", "Plan and runs", _planned(sweep))))
    parts.append(PageSection("circumstances", "Machine", _circumstances(sweep)))
    header = page_header(formatting.moment(sweep.began_at), title(sweep))
    return render_page(title(sweep), header, parts, drawn)


def title(sweep: ReductionSweep) -> str:
    """The first sentence, without its full stop."""
    of = "input" if len(sweep.swept) == 1 else "inputs"
    return f"{formatting.several(sweep.reductions, 'reduction')} of {len(sweep.swept)} {of}"


def name_of(swept: SweepResult) -> str:
    return f"{swept.job} of {formatting.size(swept.bytes)}, {formatting.listing(swept.inputs)}"


def found_in_words(swept: SweepResult) -> str:
    """The tuned choice compared with the fixed ones."""
    found = next((cell for cell in swept.cells if cell.found), None)
    best = None if swept.best is None else swept.cells[swept.best]
    said = []
    if found is not None:
        said.append(f"Tuned while running: {_way(found)}, {formatting.seconds(found.seconds)}.")
    if best is not None:
        given = sum(not cell.found for cell in swept.cells)
        said.append(
            f"The fastest of {given} fixed choices: {_way(best)}, "
            f"{formatting.seconds(best.seconds)}."
        )
    if swept.found_over_best is not None:
        than = ""
        if swept.found_over_chosen is not None:
            chosen = _longer(swept.found_over_chosen)
            than = f", and {chosen} if that choice is selected by other runs than those compared"
        said.append(
            f"The tuned run took {_longer(swept.found_over_best)} than the fastest fixed "
            f"choice{than}."
        )
    return " ".join(said)


def _longer(share: float) -> str:
    return f"{formatting.percent(abs(share - 1))} {'longer' if share >= 1 else 'shorter'}"


def _way(cell: SweepCell) -> str:
    threads = formatting.several(cell.threads, "thread")
    return f"chunks of {formatting.size(cell.chunk_bytes)} by {threads}"


def _chart(key: str, figure: str, swept: SweepResult) -> Chart:
    given = [cell for cell in swept.cells if not cell.found]
    sizes = sorted({cell.chunk_bytes for cell in swept.cells})
    threads = sorted({cell.threads for cell in given})
    colour = {each: COLOURS[place % len(COLOURS)] for place, each in enumerate(threads)}
    traces: list[Trace] = []
    for each in threads:
        cells = [cell for cell in given if cell.threads == each]
        traces.append(_trace(cells, figure, formatting.several(each, "thread"), colour[each]))
    found = [cell for cell in swept.cells if cell.found]
    if found:
        trace = _trace(found, figure, f"tuned: {_way(found[0])}", FOUND)
        trace["marker"] |= {"symbol": "star", "size": 13}
        traces.append(trace)
    said = [f"{_way(cell)}: {formatting.seconds(getattr(cell, figure))}" for cell in swept.cells]
    legend = [(colour[each], formatting.several(each, "thread")) for each in threads]
    across = {
        "type": "log",
        "tickvals": sizes,
        "ticktext": [formatting.significant(size / 1e6, 3) for size in sizes],
        "fixedrange": True,
        "title": titled("chunk size, MB"),
    }
    return Chart(
        name=f"chart-{key}",
        title=f"{FIGURES[figure]}, s",
        description=f"{FIGURES[figure]} by chunk size and number of threads. {'; '.join(said)}.",
        height=260,
        traces=traces,
        layout=layout(across, zero_based_axis(nticks=6)),
        legend=[*legend, *([(FOUND, "tuned while running")] if found else [])],
    )


def _trace(cells: list[SweepCell], figure: str, name: str, colour: str) -> Trace:
    return scatter(
        [cell.chunk_bytes for cell in cells],
        [getattr(cell, figure) for cell in cells],
        name,
        "%{y:,.4~r} s<extra>%{fullData.name}</extra>",
        line={"color": colour, "width": 1.5},
        marker={"size": 6, "color": colour},
    )


def _table(swept: SweepResult) -> Html:
    """A row for each cell; the best fixed choice and the tuned one are marked."""
    rows = [
        [
            formatting.size(cell.chunk_bytes) + (", tuned" if cell.found else ""),
            str(cell.threads),
            *(formatting.seconds(getattr(cell, name)) for name in FIGURES),
            formatting.seconds(cell.cpu_seconds),
            str(cell.reductions),
        ]
        for cell in swept.cells
    ]
    marked = [place for place, cell in enumerate(swept.cells) if cell.found or place == swept.best]
    caption = (
        f"Medians of each choice; worker times are means over {swept.workers}, "
        f"with {formatting.memory(swept.memory_bytes)} for chunks"
    )
    return table(caption, COLUMNS, rows, numeric=COLUMNS[1:], marked=marked)


def _planned(sweep: ReductionSweep) -> Html:
    """A row for each reduction with a plan."""
    rows = []
    for each in sweep.compared:
        (phase,) = each.phases
        planned = each.planned
        if planned:
            between = formatting.seconds_between(planned.seconds.low, planned.seconds.high)
            rows.append(
                [
                    f"{planned.candidate.nodes} x {planned.candidate.offer}",
                    f"{formatting.seconds(planned.seconds.median)} ({between})",
                    formatting.seconds(phase.seconds),
                    "inside" if planned.inside else "outside",
                    phase.planned_bottleneck or "",
                    formatting.resource(phase.bottleneck),
                ]
            )
    notes = dict.fromkeys(
        formatting.sentence(note) for each in sweep.compared for note in each.notes
    )
    said = table("Each reduction and its plan", PLANNED, rows, numeric=PLANNED[1:3])
    return join([said, *(tag("p", note, class_="note") for note in notes)])


def _circumstances(sweep: ReductionSweep) -> Html:
    return section(
        "circumstances",
        "Machine, settings, versions",
        machine_facts(sweep.environment),
        settings_table("Settings of the last reduction", sweep.settings),
        tag("h3", "Versions"),
        fact_list(sweep.environment.versions.items()),
        command_block("The last reduction", sweep.command),
    )
