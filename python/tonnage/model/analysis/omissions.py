"""What cannot be drawn of these measurements, and why: a page says so instead of leaving a hole."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tonnage.base.records.analysis import (
    Comparison,
    CostEfficiency,
    LabelComparison,
    Omission,
    Subject,
)
from tonnage.base.stats.outliers import LEAST_INSTANCES

# Each chart of a subject, whether it can be drawn, and why not.
_OF_SUBJECTS: tuple[tuple[str, Callable[[Subject], bool], str], ...] = (
    (
        "Throughput by thread count",
        lambda subject: len(subject.levels) > 1,
        "only one number outstanding was measured, or the tool does not say how many were",
    ),
    (
        "Latency percentiles",
        lambda subject: bool(subject.chosen.latencies),
        "no latency is stated",
    ),
    (
        "Latency histogram",
        lambda subject: bool(subject.latency_histograms),
        "the latencies of single operations are not kept",
    ),
    (
        "Variation across instances",
        lambda subject: subject.lines is not None,
        "one instance, or neither latencies nor rates over time",
    ),
    (
        "Throughput over time",
        lambda subject: bool(subject.courses),
        "a single rate for each instance, or none",
    ),
    (
        "Instances by throughput",
        lambda subject: subject.spread is not None,
        f"fewer than {LEAST_INSTANCES} instances, or all gave the same",
    ),
)


def omitted_charts(
    subjects: Sequence[Subject],
    dollars: Sequence[CostEfficiency],
    direct: Sequence[Comparison],
    layouts: Sequence[Comparison],
    by_label: Sequence[LabelComparison],
) -> list[Omission]:
    """The charts that are left out."""
    found = []
    if not any(each.operations for each in dollars):
        found.append(_whole("Operations per dollar", _unpriced(dollars)))
    if not any(each.bytes for each in dollars):
        found.append(_whole("Megabytes per dollar", _unpriced(dollars)))
    if not layouts:
        found.append(_whole("Layouts' ratio", "nothing was measured in two layouts"))
    if not by_label:
        found.append(
            _whole("By label", "nothing was measured with two values of a label (--label)")
        )
    elif few := [f"{each.subject}, {each.label}" for each in by_label if not each.is_dense]:
        why = f"fewer than {LEAST_INSTANCES} of each value, or all gave the same"
        found.append(Omission(chart="Density by label", why=why, subjects=few))
    if not direct:
        found.append(
            _whole("Direct against buffered", "nothing was measured both ways, alike in all else")
        )
    for chart, can_be_drawn, why in _OF_SUBJECTS:
        lacking = [subject.name for subject in subjects if not can_be_drawn(subject)]
        if lacking:
            found.append(Omission(chart=chart, why=why, subjects=lacking))
    return found


def _whole(chart: str, why: str) -> Omission:
    return Omission(chart=chart, why=why, subjects=[])


def _unpriced(dollars: Sequence[CostEfficiency]) -> str:
    return "the tools do not say" if dollars else "no price of these machines is given (--price)"
