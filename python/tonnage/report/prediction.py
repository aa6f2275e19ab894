"""The prediction beside what happened: each phase, and the terms that each was predicted from."""

from __future__ import annotations

from tonnage.artifacts import PredictedPhase, Prediction, Study, Term
from tonnage.report import charts, words
from tonnage.report.charts import Chart, Trace
from tonnage.report.markup import Html, bar, join, missing, section, slug, table, tag

WHOLE = "whole job"


def prediction(study: Study) -> tuple[Html, list[Chart]]:
    """The section and its charts."""
    heading = "Prediction and truth" if study.actual else "Prediction"
    if not study.predicted and not study.actual:
        return section("prediction", heading, missing("No prediction was made.")), []
    rows = _rows(study)
    chart = _chart(rows)
    parts = [chart.element(), _table(rows), _interval(study.predicted)]
    if study.predicted:
        parts += [_terms(phase) for phase in study.predicted.phases]
    else:
        parts.append(missing("No prediction was made; this is what happened."))
    if not study.actual:
        parts.insert(0, missing("The job was not run, so there is no truth beside the prediction."))
    return section("prediction", heading, *parts), [chart]


class _Row:
    """A phase, or the whole job: what was predicted of it and what happened."""

    def __init__(
        self,
        name: str,
        predicted: PredictedPhase | Prediction | None,
        actual: float | None,
        limits: tuple[str | None, str | None] = (None, None),
    ) -> None:
        self.name, self.predicted, self.actual, self.limits = name, predicted, actual, limits


def _rows(study: Study) -> list[_Row]:
    predicted = {phase.name: phase for phase in study.predicted.phases} if study.predicted else {}
    actual = {phase.name: phase for phase in study.actual.phases} if study.actual else {}
    rows = []
    for name in dict.fromkeys([*actual, *predicted]):
        foreseen, happened = predicted.get(name), actual.get(name)
        limits = (foreseen and foreseen.limit, happened and happened.bottleneck)
        rows.append(_Row(words.phase(name), foreseen, happened and happened.seconds, limits))
    whole = study.actual.seconds if study.actual else None
    return [*rows, _Row(WHOLE, study.predicted, whole)]


def _chart(rows: list[_Row]) -> Chart:
    names = [row.name for row in rows]
    foreseen = [row for row in rows if row.predicted]
    happened = [row for row in rows if row.actual is not None]
    traces: list[Trace] = []
    legend = []
    if foreseen:
        traces.append(_predicted(foreseen))
        legend.append(("--predicted", "predicted, with its interval"))
    if happened:
        traces.append(_bars(happened, "actual", "--actual"))
        legend.append(("--actual", "actual"))
    return Chart(
        name="chart-prediction",
        title="Seconds, per phase",
        says="Seconds predicted and actual: " + "; ".join(map(_said, rows)) + ".",
        height=44 + 54 * len(rows),
        traces=traces,
        layout=charts.beside(names),
        legend=legend,
    )


def _bars(rows: list[_Row], name: str, colour: str) -> Trace:
    return {
        "type": "bar",
        "orientation": "h",
        "name": name,
        "x": [row.actual for row in rows],
        "y": [row.name for row in rows],
        "marker": {"color": colour},
        "hovertemplate": f"%{{y}}: %{{x:.2f}} s {name}<extra></extra>",
    }


def _predicted(rows: list[_Row]) -> Trace:
    known = [row.predicted for row in rows if row.predicted]
    seconds = [each.seconds for each in known]
    return _bars(rows, "predicted", "--predicted") | {
        "x": seconds,
        "error_x": {
            "type": "data",
            "symmetric": False,
            "array": [each.high_seconds - each.seconds for each in known],
            "arrayminus": [each.seconds - each.low_seconds for each in known],
            "color": "--ink",
            "thickness": 1.5,
            "width": 5,
        },
    }


def _said(row: _Row) -> str:
    parts = []
    if row.predicted:
        parts.append(f"{words.seconds(row.predicted.seconds)} predicted ({_between(row)})")
    if row.actual is not None:
        parts.append(f"{words.seconds(row.actual)} actual")
    return f"{row.name} {', '.join(parts)}"


def _between(row: _Row) -> str:
    each = row.predicted
    if each is None:
        return "–"
    return words.seconds_between(each.low_seconds, each.high_seconds, each.seconds)


def _table(rows: list[_Row]) -> Html:
    columns = ["Phase", "Predicted", "Interval", "Actual", "Inside", "Limit foreseen", "Limit met"]
    cells = [
        [
            row.name,
            words.seconds(row.predicted.seconds) if row.predicted else "–",
            _between(row),
            words.seconds(row.actual) if row.actual is not None else "–",
            _inside(row),
            words.resource(row.limits[0]) if row.limits[0] else "–",
            words.resource(row.limits[1]) if row.limits[1] else "–",
        ]
        for row in rows
    ]
    return table(
        "Predicted and actual seconds of each phase",
        columns,
        cells,
        numeric=("Predicted", "Interval", "Actual"),
        marked=[len(rows) - 1],
        hide_caption=True,
    )


def _inside(row: _Row) -> str:
    if row.predicted is None or row.actual is None:
        return "–"
    return "yes" if row.predicted.low_seconds <= row.actual <= row.predicted.high_seconds else "no"


def _interval(predicted: Prediction | None) -> Html | None:
    if predicted is None:
        return None
    made = f"Made {words.moment(predicted.made_at)}, before the job began. "
    rule = f"Interval ({words.percent(predicted.confidence)}): {predicted.interval_rule}."
    return tag("p", made + rule.replace("..", "."), class_="note")


def _terms(phase: PredictedPhase) -> Html:
    slowest = max((term.seconds for term in phase.terms), default=0.0)
    rows = [_term(term, slowest) for term in phase.terms]
    limits = [place for place, term in enumerate(phase.terms) if term.resource == phase.limit]
    ramp = words.seconds(phase.ramp_seconds)
    caption = (
        f"What {words.phase(phase.name)} was predicted from: its slowest resource's time"
        f" and {ramp} to fill and drain the pipeline"
    )
    columns = ["Resource", "Demand", "Capacity", "Seconds", "", "Source"]
    return table(caption, columns, rows, numeric=("Demand", "Capacity", "Seconds"), marked=limits)


def _term(term: Term, slowest: float) -> list[Html | str]:
    cited = [
        tag("a", tag("code", identifier), href=f"#measurement-{slug(identifier)}")
        for identifier in term.measurements
    ]
    return [
        words.resource(term.resource),
        words.demand(term.demand, term.unit),
        words.capacity(term.low_capacity, term.capacity, term.high_capacity, term.unit),
        words.seconds(term.seconds),
        bar((term.seconds / slowest if slowest else 0, "accent")),
        join([term.source, " " if cited else None, join(cited, Html(", "))]),
    ]
