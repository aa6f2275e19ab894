"""Charts that these measurements do not support, and why: reports say so instead of a gap."""

from collections.abc import Callable, Sequence

from tonnage.base.records.analysis import (
    Comparison,
    CostEfficiency,
    LabelComparison,
    Omission,
    Subject,
)
from tonnage.base.stats.outliers import LEAST_INSTANCES

# Each chart of an operation, whether it can be drawn, and why not.
_OPERATION_CHARTS: tuple[tuple[str, Callable[[Subject], bool], str], ...] = (
    (
        "Throughput by thread count",
        lambda subject: len(subject.levels) > 1,
        "only one concurrency was measured, or the tool does not state it",
    ),
    (
        "Latency percentiles",
        lambda subject: bool(subject.chosen.latencies),
        "no latency is stated",
    ),
    (
        "Latency histogram",
        lambda subject: bool(subject.latency_histograms),
        "the latencies of single operations are not recorded",
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
        f"fewer than {LEAST_INSTANCES} instances, or all are equal",
    ),
)


def omitted_charts(
    subjects: Sequence[Subject],
    dollars: Sequence[CostEfficiency],
    direct: Sequence[Comparison],
    layouts: Sequence[Comparison],
    by_label: Sequence[LabelComparison],
) -> list[Omission]:
    found = []
    if not any(each.operations for each in dollars):
        found.append(_omission("Operations per dollar", _why_no_price(dollars)))
    if not any(each.bytes for each in dollars):
        found.append(_omission("Megabytes per dollar", _why_no_price(dollars)))
    if not layouts:
        found.append(_omission("Layouts' ratio", "nothing was measured in two layouts"))
    if not by_label:
        found.append(
            _omission("By label", "nothing was measured with two values of a label (--label)")
        )
    elif few := [f"{each.subject}, {each.label}" for each in by_label if not each.is_dense]:
        why = f"fewer than {LEAST_INSTANCES} of each value, or all are equal"
        found.append(Omission(chart="Density by label", why=why, subjects=few))
    if not direct:
        found.append(
            _omission(
                "Direct against buffered",
                "no operation was measured both ways under the same conditions",
            )
        )
    for chart, can_be_drawn, why in _OPERATION_CHARTS:
        lacking = [subject.name for subject in subjects if not can_be_drawn(subject)]
        if lacking:
            found.append(Omission(chart=chart, why=why, subjects=lacking))
    return found


def _omission(chart: str, why: str) -> Omission:
    return Omission(chart=chart, why=why, subjects=[])


def _why_no_price(dollars: Sequence[CostEfficiency]) -> str:
    return "the tools do not state it" if dollars else "these machines have no price (--price)"
