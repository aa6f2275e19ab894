"""The sentences that open the report of an analysis, and the charts that it cannot draw."""

import statistics
from collections.abc import Callable, Mapping, Sequence

from tonnage.base import formatting
from tonnage.base.records.analysis import (
    Comparison,
    CostEfficiency,
    CyclicInstance,
    LabelComparison,
    Machine,
    MultimodalInstance,
    Omission,
    Outlier,
    Subject,
)
from tonnage.base.stats.outliers import MIN_INSTANCES, MIN_SHARE
from tonnage.model.analysis.estimates import INSTANCES, TRIALS

MAX_CLUSTERS = 1_000  # Rarer false alarms are not estimated reliably
MAX_TOLD = 12  # With more operations than this, a table is clearer than sentences
SINGLE = (
    "This is a single machine. Another machine of the same type may be much faster or slower; "
    "this analysis cannot show by how much."
)
UNKNOWN = (
    "Imported results do not state their machine. Each counts as a separate machine, which may be "
    "wrong."
)


def findings(measured: Sequence[Machine], subjects: Sequence[Subject]) -> list[str]:
    found = [SINGLE] if sum(each.known for each in measured) == 1 else []
    found += [UNKNOWN] if not all(each.known for each in measured) else []
    for subject in subjects:
        if len(subjects) <= MAX_TOLD:
            found += _rate_findings(subject)
        found += [_outlier(subject, each) for each in subject.outliers]
        found += [_multimodal(subject, each) for each in subject.alternating]
        found += [_cycles(subject, each) for each in subject.cycles]
        if len(subject.instances) >= MIN_INSTANCES and not (
            subject.outliers or subject.alternating or subject.cycles
        ):
            machines = formatting.several(len(subject.instances), "machine")
            found.append(f"{subject.name}: none of {machines} stands out.")
    return found


def _rate_findings(subject: Subject) -> list[str]:
    rate = subject.rate
    if rate is None:
        return []
    figure = formatting.per_second(rate.value, subject.unit)
    counted = formatting.count(rate.size)
    of = {
        INSTANCES: f"the median of {counted} machines",
        TRIALS: f"the median of {counted} trials" if rate.size > 1 else "in a single trial",
    }[rate.over]
    between = "too few values for a confidence interval"
    if rate.low is not None and rate.high is not None:
        low, high = (formatting.per_second(each, subject.unit) for each in (rate.low, rate.high))
        between = (
            f"between {low} and {high} with {formatting.percent(rate.confidence or 0)} confidence"
        )
    said = [f"{subject.name}: {figure}, {of}{_queue_depths(subject)}; {between}."]
    if subject.near_best is not None and len(subject.levels) > 1:
        most = max(each.concurrency or 0 for each in subject.levels)
        if subject.near_best < most:
            said.append(
                f"{subject.name}: queue depth {subject.near_best} reaches 95 % of the best rate; "
                f"tested up to {most}."
            )
    return said


def _queue_depths(subject: Subject) -> str:
    numbers = subject.concurrencies
    if not numbers:
        return ""
    if len(numbers) == 1:
        return f", at queue depth {numbers[0]}"
    return f", at queue depths {numbers[0]} to {numbers[-1]}"


def _outlier(subject: Subject, each: Outlier) -> str:
    what = "is a slow outlier" if each.worse else "is a fast outlier"
    if each.rate == 0:
        how = "with a rate of zero"
    elif each.ratio >= 2 or each.ratio <= 0.5:
        factor = max(each.ratio, 1 / each.ratio)
        way = "faster" if each.ratio > 1 else "slower"
        how = f"{formatting.significant(factor, 2)} times {way} than the median machine"
    else:
        way = "above" if each.ratio > 1 else "below"
        how = f"{formatting.percent(abs(each.ratio - 1))} {way} the median machine"
    return f"{subject.name}: {each.instance} {what}, {how} ({_confidence(each.false_alarm)})."


def slow_machines(subject: Subject, types: Mapping[str, str | None]) -> list[str]:
    """Machines far below the median of their type, where there are too few for a test.

    Only for operations in which each machine's rate does not depend on the others.
    """
    named = {each.instance for each in subject.outliers}
    rates: dict[str, dict[str, float]] = {}
    for each in subject.instances:
        if type_ := types.get(each.name):
            rates.setdefault(type_, {})[each.name] = each.rate.value
    found = []
    for type_, alike in rates.items():
        middle = statistics.median(alike.values())
        if len(alike) >= MIN_INSTANCES or not middle:
            continue
        kind = f"{formatting.several(len(alike), 'machine')} of type {type_}"
        found += [
            f"{subject.name}: {name} reaches {formatting.percent(rate / middle)} of the median of "
            f"{kind}; with so few machines this may be chance."
            for name, rate in alike.items()
            if rate < (1 - MIN_SHARE) * middle and name not in named
        ]
    return found


def _multimodal(subject: Subject, each: MultimodalInstance) -> str:
    modes = formatting.listing(
        f"{formatting.per_second(mode.value, subject.unit)} "
        f"({formatting.percent(mode.share)} of the time)"
        for mode in each.modes
    )
    return (
        f"{subject.name}: {each.instance} alternates between {modes}; its median is not "
        "representative."
    )


def _cycles(subject: Subject, each: CyclicInstance) -> str:
    who = each.instance or "the cluster as a whole"
    share = (
        "" if each.amplitude_share is None else f" by {formatting.percent(each.amplitude_share)}"
    )
    period = formatting.duration(each.period_seconds)
    return (
        f"{subject.name}: {who} rises and falls{share} with a period of {period} "
        f"({_confidence(each.false_alarm)})."
    )


def _confidence(false_alarm: float) -> str:
    """The frequency of this false alarm in clusters with nothing to find."""
    clusters = min(round(1 / max(false_alarm, 1e-9)), MAX_CLUSTERS)
    rounded = clusters // 10 ** (len(str(clusters)) - 1) * 10 ** (len(str(clusters)) - 1)
    return f"fewer than 1 false alarm per {formatting.count(rounded)} healthy clusters"


# Each chart of an operation, whether it can be drawn, and why not.
_OPERATION_CHARTS: tuple[tuple[str, Callable[[Subject], bool], str], ...] = (
    (
        "Throughput by queue depth",
        lambda subject: len(subject.levels) > 1,
        "only one queue depth was measured, or the tool does not state it",
    ),
    (
        "Latency percentiles",
        lambda subject: bool(subject.chosen.latencies),
        "no tool states a latency",
    ),
    (
        "Latency histogram",
        lambda subject: bool(subject.latency_histograms),
        "latencies of single operations were not recorded",
    ),
    (
        "Variation across machines",
        lambda subject: subject.lines is not None,
        "only one machine, or neither latencies nor rates over time",
    ),
    (
        "Throughput over time",
        lambda subject: bool(subject.courses),
        "at most one rate for each machine",
    ),
    (
        "Machines by throughput",
        lambda subject: subject.spread is not None,
        f"fewer than {MIN_INSTANCES} machines, or all of them are equal",
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
        found.append(_omission("Operations per dollar", _why_no_price(dollars, "operations")))
    if not any(each.bytes for each in dollars):
        found.append(_omission("Megabytes per dollar", _why_no_price(dollars, "bytes")))
    if not layouts:
        found.append(_omission("Layouts' ratio", "no operation was measured in two layouts"))
    if not by_label:
        why = "no operation was measured with two values of a label"
        found.append(_omission("By label", why))
    elif few := [f"{each.subject}, {each.label}" for each in by_label if not each.is_dense]:
        why = f"fewer than {MIN_INSTANCES} machines for a value, or all of them are equal"
        found.append(Omission(chart="Density by label", why=why, subjects=few))
    if not direct:
        why = (
            "no operation was measured with both direct and buffered I/O under the same conditions"
        )
        found.append(_omission("Direct against buffered", why))
    for chart, can_be_drawn, why in _OPERATION_CHARTS:
        lacking = [subject.name for subject in subjects if not can_be_drawn(subject)]
        if lacking:
            found.append(Omission(chart=chart, why=why, subjects=lacking))
    return found


def _omission(chart: str, why: str) -> Omission:
    return Omission(chart=chart, why=why, subjects=[])


def _why_no_price(dollars: Sequence[CostEfficiency], counted: str) -> str:
    if dollars:
        return f"no rate is stated in {counted}"
    return "no price of these machines is known; add prices"
