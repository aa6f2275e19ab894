"""Compare prediction and run, phase by phase, with the terms of the prediction."""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import count

from tonnage.base import formatting
from tonnage.base.records import PredictedPhase, Prediction, Study, Term
from tonnage.report import charts
from tonnage.report.charts import Chart, Trace
from tonnage.report.html_elements import (
    Html,
    cite,
    join,
    missing_note,
    section,
    share_bar,
    table,
    tag,
)

WHOLE = "whole job"
# Longer intervals, in multiples of the longest bar, are cut off to keep bars visible.
WIDEST = 2.5


def prediction_section(study: Study) -> tuple[Html, list[Chart]]:
    heading = "Prediction and run" if study.run else "Prediction"
    if not study.predicted and not study.run:
        return section("prediction", heading, missing_note("No prediction was made.")), []
    rows = _rows(study)
    chart = _chart(rows)
    parts = [chart.figure(), _table(rows), _rule(study.predicted)]
    if study.predicted:
        parts += [_terms(phase) for phase in study.predicted.phases]
        parts.append(_sum_of_phases(study.predicted))
    else:
        parts.append(missing_note("No prediction was made; this is the run."))
    if not study.run:
        parts.insert(0, missing_note("The job was not run, so there is nothing to compare."))
    return section("prediction", heading, *parts), [chart]


@dataclass(frozen=True)
class _PhaseRow:
    """Prediction and result of a phase or of the whole job."""

    name: str
    predicted: PredictedPhase | Prediction | None
    actual: float | None
    predicted_limit: str = "–"
    limit_met: str = "–"


def _rows(study: Study) -> list[_PhaseRow]:
    predicted = {phase.name: phase for phase in study.predicted.phases} if study.predicted else {}
    stages = {phase.name: phase.stages for phase in study.run.phases} if study.run else {}
    # A study that stopped before comparing still has the run's time.
    happened = study.actual or study.run
    rows: list[_PhaseRow] = []
    for phase in happened.phases if happened else []:
        prediction = predicted.pop(phase.name, None)
        known = [stage.name for stage in stages.get(phase.name, [])]
        rows.append(
            _PhaseRow(
                _unlike(formatting.phase(phase.name), rows),
                prediction,
                phase.seconds,
                formatting.resource(prediction.limit) if prediction else "–",
                formatting.bottleneck(phase.bottleneck, known),
            )
        )
    rows += [
        _PhaseRow(formatting.phase(name), prediction, None, formatting.resource(prediction.limit))
        for name, prediction in predicted.items()
    ]
    return [*rows, _PhaseRow(WHOLE, study.predicted, happened.seconds if happened else None)]


def _unlike(name: str, rows: list[_PhaseRow]) -> str:
    """A unique name: a phase may be repeated."""
    taken = [row.name for row in rows]
    numbered = (name if number == 1 else f"{name} {number}" for number in count(1))
    return next(each for each in numbered if each not in taken)


def _chart(rows: list[_PhaseRow]) -> Chart:
    names = [row.name for row in rows]
    predicted = [row for row in rows if row.predicted]
    happened = [row for row in rows if row.actual is not None]
    traces: list[Trace] = []
    legend = []
    layout = charts.grouped_bars_layout(names)
    bars = [row.predicted.seconds for row in predicted if row.predicted]
    longest = max([*bars, *(row.actual or 0 for row in happened)])
    highest = max((row.predicted.high_seconds for row in predicted if row.predicted), default=0)
    is_cut = highest > WIDEST * longest
    if is_cut:
        layout["xaxis"]["range"] = [0, WIDEST * longest]
    if predicted:
        traces.append(_predicted(predicted))
        legend.append(("--predicted", "predicted, with its interval"))
    if happened:
        traces.append(_bars(happened, [row.actual for row in happened], "actual", "--actual"))
        legend.append(("--actual", "actual"))
    return Chart(
        name="chart-prediction",
        title="Seconds, per phase",
        description=f"Seconds predicted and actual: {'; '.join(map(_predicted_and_actual, rows))}.",
        height=44 + 54 * len(rows),
        traces=traces,
        layout=layout,
        legend=legend,
        note=f"The interval extends to {formatting.seconds(highest)}." if is_cut else None,
    )


def _bars(rows: list[_PhaseRow], values: list[float | None], name: str, colour: str) -> Trace:
    hover = f"%{{y}}: %{{x:.2f}} s {name}<extra></extra>"
    return charts.bars([row.name for row in rows], values, name, colour, hover)


def _predicted(rows: list[_PhaseRow]) -> Trace:
    known = [row.predicted for row in rows if row.predicted]
    intervals = [(each.low_seconds, each.seconds, each.high_seconds) for each in known]
    trace = _bars(rows, [each.seconds for each in known], "predicted", "--predicted")
    return trace | {"error_x": charts.error_bars(intervals, width=5)}


def _predicted_and_actual(row: _PhaseRow) -> str:
    parts = []
    if row.predicted:
        parts.append(
            f"{formatting.seconds(row.predicted.seconds)} predicted ({_interval_text(row)})"
        )
    if row.actual is not None:
        parts.append(f"{formatting.seconds(row.actual)} actual")
    return f"{row.name} {', '.join(parts)}"


def _interval_text(row: _PhaseRow) -> str:
    each = row.predicted
    if each is None:
        return "–"
    return formatting.seconds_between(each.low_seconds, each.high_seconds)


def _table(rows: list[_PhaseRow]) -> Html:
    columns = ["Phase", "Predicted", "Interval", "Actual", "Inside"]
    columns += ["Predicted bottleneck", "Bottleneck"]
    known = [row.predicted.seconds for row in rows if row.predicted]
    seconds = formatting.seconds_like(max([*known, *(row.actual or 0 for row in rows)]))
    cells = [
        [
            row.name,
            seconds(row.predicted.seconds) if row.predicted else "–",
            _interval(row, seconds),
            seconds(row.actual) if row.actual is not None else "–",
            _inside(row),
            row.predicted_limit,
            row.limit_met,
        ]
        for row in rows
    ]
    return table(
        "Predicted and actual seconds of each phase",
        columns,
        cells,
        numeric=("Predicted", "Interval", "Actual", "Inside"),
        marked=[len(rows) - 1],
        hide_caption=True,
    )


def _interval(row: _PhaseRow, seconds: Callable[[float], str]) -> str:
    if row.predicted is None:
        return "–"
    return f"{seconds(row.predicted.low_seconds)} – {seconds(row.predicted.high_seconds)}"


def _inside(row: _PhaseRow) -> str:
    if row.predicted is None or row.actual is None:
        return "–"
    return "yes" if row.predicted.low_seconds <= row.actual <= row.predicted.high_seconds else "no"


def _rule(predicted: Prediction | None) -> Html | None:
    if predicted is None:
        return None
    made = f"Made {formatting.moment(predicted.made_at)}, before the job started. "
    rule = f"Interval of {formatting.percent(predicted.confidence)}: "
    return tag("p", f"{made}{rule}{predicted.interval_rule.rstrip('.')}.", class_="note")


def _terms(phase: PredictedPhase) -> Html:
    slowest = max((term.seconds for term in phase.terms), default=0.0)
    seconds = formatting.seconds_like(slowest)
    rows = [_term(term, slowest, seconds(term.seconds)) for term in phase.terms]
    limits = [place for place, term in enumerate(phase.terms) if term.resource == phase.limit]
    caption = f"Terms of {formatting.phase(phase.name)}: the slowest resource decides"
    columns = ["Resource", "Demand", "Capacity", "Seconds", "Of the slowest", "Source"]
    numeric = ("Demand", "Capacity", "Seconds")
    sums = tag("p", _sum(phase), class_="note sum")
    return join([table(caption, columns, rows, numeric=numeric, marked=limits), sums])


def _sum(phase: PredictedPhase) -> str:
    seconds = formatting.seconds_like(phase.seconds, more=1)
    slowest = next((seconds(t.seconds) for t in phase.terms if t.resource == phase.limit), "–")
    time = f"{slowest} of {formatting.resource(phase.limit)}"
    if phase.limit.startswith("disk"):
        sign = "−" if phase.ramp_seconds < 0 else "+"
        ramp = seconds(abs(phase.ramp_seconds))
        time = f"({time}, {sign} {ramp} of filling and draining the pipeline)"
    return (
        f"{time} × {phase.rehearsal_factor:.3f}, the slowdown in rehearsals,"
        f" = {seconds(phase.seconds)} predicted."
    )


def _sum_of_phases(predicted: Prediction) -> Html:
    seconds = formatting.seconds_like(predicted.seconds, more=1)
    parts = [
        f"{seconds(each.seconds)} of {formatting.phase(each.name)}" for each in predicted.phases
    ]
    parts.append(f"{seconds(predicted.other_seconds)} outside of phases, as in rehearsals")
    said = f"The {WHOLE}: {' + '.join(parts)} = {seconds(predicted.seconds)} predicted."
    if by := predicted.calibrated:
        runs = formatting.several(len(by.runs), "run")
        said += f" Calibrated by {runs} of up to {formatting.size(by.bytes)}: {', '.join(by.runs)}."
    else:
        said += " Not calibrated by any run."
    return tag("p", said, class_="note sum")


def _term(term: Term, slowest: float, seconds: str) -> list[Html | str]:
    cited = [cite(identifier) for identifier in term.measurements]
    return [
        formatting.resource(term.resource),
        formatting.demand(term.demand, term.unit),
        formatting.capacity(term.low_capacity, term.capacity, term.high_capacity, term.unit),
        seconds,
        share_bar((term.seconds / slowest if slowest else 0, "accent")),
        join([term.source, *cited], Html("<br>")),
    ]
