"""Render the headline and the key figures."""

from tonnage.base import formatting
from tonnage.base.records import Prediction, RunRecord, Study
from tonnage.report.html_elements import Html, join, tag
from tonnage.report.page import Tile, notice, page_header, tile_list

# Shorter phases are not in the headline.
NAMED_SHARE = 0.05

STEPS_MISSING = {
    "predicted": "no prediction was made",
    "run": "the job was not run",
    "actual": "prediction and run were not compared",
    "validation": "the output was not validated",
    "limit": "the disks' limit was not computed",
}


def title(study: Study) -> str:
    """The first sentence, without its full stop."""
    run, predicted = study.run, study.predicted
    if run:
        after = f"; predicted {_predicted(predicted)}" if predicted else ""
        return f"Sorted {formatting.size(run.bytes)} in {formatting.seconds(run.seconds)}{after}"
    if predicted:
        return f"Sorting {formatting.size(predicted.bytes)} should take {_predicted(predicted)}"
    if study.measurements:
        return "Throughput of this machine"
    return "A study that has just started"


def header(study: Study) -> Html:
    said = f"{formatting.several(len(study.warnings), 'warning')} about these figures"
    return page_header(
        f"{study.environment.host} · {formatting.moment(study.began_at)}",
        title(study),
        tag("p", " ".join(_lead(study)), class_="lead"),
        _cut_short(study),
        notice(said, "warnings") if study.warnings else None,
        tile_list(_tiles(study)),
    )


def _predicted(predicted: Prediction) -> str:
    low, high = predicted.low_seconds, predicted.high_seconds
    between = formatting.seconds_between(low, high)
    return f"{formatting.seconds(predicted.seconds)} ({between})"


def _lead(study: Study) -> list[str]:
    sentences = []
    if study.limit:
        sentences.append(
            f"The job reached {formatting.percent(study.limit.efficiency)} of the disks' limit."
        )
    if study.actual:
        ran = {phase.name: phase.stages for phase in study.run.phases} if study.run else {}
        met = [
            (phase.name, formatting.bottleneck(phase.bottleneck, stages), phase.seconds)
            for phase in study.actual.phases
            for stages in [[each.name for each in ran.get(phase.name, [])]]
        ]
        sentences += _limited("Limited by", met, study.actual.seconds)
    elif study.predicted:
        phases = [
            (phase.name, formatting.resource(phase.limit), phase.seconds)
            for phase in study.predicted.phases
        ]
        sentences += _limited("Predicted bottleneck", phases, study.predicted.seconds)
    return sentences


def _limited(begin: str, phases: list[tuple[str, str, float]], whole: float) -> list[str]:
    """The bottleneck, by phase if phases differ."""
    by_limit: dict[str, list[str]] = {}
    for name, limit, seconds in phases:
        if seconds >= NAMED_SHARE * whole:
            by_limit.setdefault(limit, []).append(formatting.phase(name))
    if not by_limit:
        return []
    if len(by_limit) == 1:
        return [f"{begin}: {next(iter(by_limit))}."]
    parts = [f"{limit} ({formatting.listing(names)})" for limit, names in by_limit.items()]
    return [f"{begin}: {'; '.join(parts)}."]


def _tiles(study: Study) -> list[Tile]:
    found = []
    run, predicted = study.run, study.predicted
    if run:
        sorted_ = f"to sort {formatting.size(run.bytes)}"
        found.append(Tile("Actual", formatting.seconds(run.seconds), sorted_))
    if predicted:
        low, high = predicted.low_seconds, predicted.high_seconds
        between = formatting.seconds_between(low, high)
        note = f"{between} with {formatting.percent(predicted.confidence)} confidence"
        found.append(Tile("Predicted", formatting.seconds(predicted.seconds), note))
    if study.error_fraction is not None:
        size = formatting.percent(abs(study.error_fraction))
        found.append(Tile("Prediction error", size, _error(run, predicted)))
    if study.limit:
        least = formatting.seconds(study.limit.seconds)
        note = f"of the disks' limit, {least}"
        if study.limit.efficiency > 1:
            note += f"; {formatting.ABOVE_LIMIT}"
        found.append(Tile("Efficiency", formatting.percent(study.limit.efficiency), note))
    if run:
        found += _resources(run)
        found += _verified(study, run)
    return found


def _error(run: RunRecord | None, predicted: Prediction | None) -> str | None:
    if run is None or predicted is None:
        return None
    inside = predicted.low_seconds <= run.seconds <= predicted.high_seconds
    way = "too long" if predicted.seconds > run.seconds else "too short"
    return f"predicted {way}; {'inside' if inside else 'outside'} the interval"


def _resources(run: RunRecord) -> list[Tile]:
    budget = run.settings.get("memory_bytes")
    note = "of the whole process"
    if budget:
        note += f"; budget of {formatting.memory(budget)} for buffers and indexes"
    return [Tile("Peak memory", formatting.memory(run.peak_memory_bytes), note), cpu_tile(run)]


def cpu_tile(run: RunRecord) -> Tile:
    seconds, size = run.cpu_seconds, run.bytes
    per_gigabyte = formatting.significant(seconds / (size / 1e9)) if size else "–"
    total = f"{formatting.significant(seconds)} core-seconds in total"
    return Tile("CPU, core-seconds per GB", per_gigabyte, total)


def _verified(study: Study, run: RunRecord) -> list[Tile]:
    found, checksum = study.validation, tag("code", run.checksum)
    if found is None:
        return [
            Tile("Records", formatting.count(run.records), "not validated"),
            Tile("Checksum", "Not verified", checksum),
        ]
    order = f"{formatting.count(found.unordered)} out of order" if found.unordered else "in order"
    note = f"{order}, {formatting.count(found.duplicate_keys)} duplicate keys"
    verdict = "✓ Verified" if found.matches_input else "✗ Differs from the input"
    return [
        Tile("Records", formatting.count(found.records), note),
        Tile("Checksum", verdict, join([checksum, " of the output"])),
    ]


def _cut_short(study: Study) -> Html | None:
    lacking = [said for name, said in STEPS_MISSING.items() if getattr(study, name) is None]
    if not study.measurements:
        lacking.insert(0, "nothing was measured")
    if not lacking:
        return None
    done = (
        f" Done: {formatting.listing(map(formatting.phase, study.steps))}." if study.steps else ""
    )
    what = f"This study is incomplete: {formatting.listing(lacking)}.{done}"
    return tag("p", what, class_="notice", role="note")
