"""Predicted and true times and costs of published runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from tonnage.base import formatting
from tonnage.base.records.base import to_builtins
from tonnage.cli.output.candidates import candidate_text, seconds_range, usd, usd_range
from tonnage.plan.backtest.predict import Prediction, Skipped


def backtest_values(found: Sequence[Prediction | Skipped]) -> dict[str, Any]:
    return {
        "records": [_values(each) for each in found if isinstance(each, Prediction)],
        "skipped": [
            {"record": each.record.name, "why": each.why}
            for each in found
            if isinstance(each, Skipped)
        ],
    }


def backtest_lines(found: Sequence[Prediction | Skipped]) -> Iterator[str]:
    for each in found:
        if isinstance(each, Prediction):
            yield from _lines(each)
    for each in found:
        if isinstance(each, Skipped):
            yield f"Skipped: {each.record.name}: {each.why}."


def _values(each: Prediction) -> dict[str, Any]:
    record, candidate = each.record, each.candidate
    return {
        "record": record.name,
        "nodes": record.nodes,
        "layout": candidate.layout,
        "seconds_predicted": to_builtins(candidate.seconds),
        "seconds_true": record.seconds,
        "seconds_error": each.seconds_error,
        "usd_predicted": to_builtins(candidate.cost_usd),
        "usd_true": record.usd,
        "usd_error": each.usd_error,
        "inside": each.inside,
        "usd_inside": each.usd_inside,
        "phases": [to_builtins(phase) for phase in candidate.phases],
        "put_in": each.put_in,
        "source": record.source,
    }


def _lines(each: Prediction) -> Iterator[str]:
    record, candidate = each.record, each.candidate
    what = f"{candidate_text(candidate)}, {formatting.size(record.bytes)}"
    yield f"{record.name} ({record.year}): {what}"
    yield (
        f"  time  {seconds_range(candidate.seconds)}, true {formatting.duration(record.seconds)}: "
        f"{_error(each.seconds_error)}, {_inside(each.inside)}"
    )
    if record.usd is not None and each.usd_error is not None:
        yield (
            f"  cost  {usd_range(candidate.cost_usd)}, true {usd(record.usd)}: "
            f"{_error(each.usd_error)}, {_inside(bool(each.usd_inside))}"
        )
    limits = ", ".join(f"{phase.bottleneck} ({phase.name})" for phase in candidate.phases)
    yield f"  limited by {limits}"
    for fact in each.put_in:
        yield f"  put in: {fact}"
    yield f"  source: {record.source}"


def _error(error: float) -> str:
    return f"{100 * error:+.0f} %"


def _inside(inside: bool) -> str:
    return "inside the interval" if inside else "outside the interval"
