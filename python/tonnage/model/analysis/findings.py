"""What an analysis found, in plain words: the sentences that open its page."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence

from tonnage.base import formatting
from tonnage.base.records.analysis import (
    CyclicInstance,
    Machine,
    MultimodalInstance,
    Outlier,
    Subject,
)
from tonnage.base.stats.outliers import LEAST_INSTANCES, LEAST_SHARE
from tonnage.model.analysis.estimates import INSTANCES, TRIALS

MOST_FLEETS = 1_000
"""Beyond that, chance is less well known than how rare it is."""
TOLD_AT_MOST = 12
"""Of more subjects than this a table tells more than sentences would."""
SINGLE = (
    "This is a single machine. Another one of the same kind may be much faster or slower, and "
    "nothing here says by how much."
)
UNKNOWN = (
    "Imported results do not say on which machine they were measured. Each counts as a machine of "
    "its own, which it may not be."
)


def findings(machines: Sequence[Machine], subjects: Sequence[Subject]) -> list[str]:
    """What a reader should know before the charts."""
    found = [SINGLE] if sum(each.known for each in machines) == 1 else []
    found += [UNKNOWN] if not all(each.known for each in machines) else []
    for subject in subjects:
        if len(subjects) <= TOLD_AT_MOST:
            found += _gave(subject)
        found += [_outlier(subject, each) for each in subject.outliers]
        found += [_alternates(subject, each) for each in subject.alternating]
        found += [_cycles(subject, each) for each in subject.cycles]
        if len(subject.instances) >= LEAST_INSTANCES and not (
            subject.outliers or subject.alternating or subject.cycles
        ):
            instances = formatting.several(len(subject.instances), "instance")
            found.append(f"{subject.name}: none of {instances} stands out.")
    return found


def _gave(subject: Subject) -> list[str]:
    rate = subject.rate
    if rate is None:
        return []
    figure = formatting.per_second(rate.value, subject.unit)
    counted = formatting.count(rate.size)
    of = {
        INSTANCES: f"the median of {counted} instances",
        TRIALS: f"the median of {counted} trials" if rate.size > 1 else "in a single trial",
    }[rate.over]
    between = "its interval is not estimable from so few"
    if rate.low is not None and rate.high is not None:
        low, high = (formatting.per_second(each, subject.unit) for each in (rate.low, rate.high))
        between = (
            f"between {low} and {high} with {formatting.percent(rate.confidence or 0)} confidence"
        )
    said = [f"{subject.name}: {figure}, {of}{_outstanding(subject)}; {between}."]
    if subject.near_best is not None and len(subject.levels) > 1:
        most = max(each.concurrency or 0 for each in subject.levels)
        if subject.near_best < most:
            said.append(
                f"{subject.name}: {subject.near_best} outstanding "
                f"{'is' if subject.near_best == 1 else 'are'} enough for 95 % of the best; up to "
                f"{most} were tried."
            )
    return said


def _outstanding(subject: Subject) -> str:
    numbers = subject.concurrencies
    if not numbers:
        return ""
    if len(numbers) == 1:
        return f", with {numbers[0]} outstanding"
    return f", with {numbers[0]} to {numbers[-1]} outstanding"


def _outlier(subject: Subject, each: Outlier) -> str:
    what = "is a bad apple" if each.worse else "is better than the others"
    if each.rate == 0:
        how = "it did nothing"
    elif each.ratio >= 2 or each.ratio <= 0.5:
        factor = max(each.ratio, 1 / each.ratio)
        way = "faster" if each.ratio > 1 else "slower"
        how = f"{formatting.significant(factor, 2)} times {way} than the median instance"
    else:
        way = "above" if each.ratio > 1 else "below"
        how = f"{formatting.percent(abs(each.ratio - 1))} {way} the median instance"
    return f"{subject.name}: {each.instance} {what}, {how} ({_sure(each.false_alarm)})."


def slow_machines(subject: Subject, types: Mapping[str, str | None]) -> list[str]:
    """Who is far below the others of its type, where they are too few for more to be said.

    Args:
        subject: What each gave by itself, whoever else took part.
        types: Those of all machines.
    """
    named = {each.instance for each in subject.outliers}
    rates: dict[str, dict[str, float]] = {}
    for each in subject.instances:
        if type_ := types.get(each.name):
            rates.setdefault(type_, {})[each.name] = each.rate.value
    found = []
    for type_, alike in rates.items():
        middle = statistics.median(alike.values())
        if len(alike) >= LEAST_INSTANCES or not middle:
            continue
        kind = f"{formatting.several(len(alike), 'machine')} of type {type_}"
        found += [
            f"{subject.name}: {name} gives {formatting.percent(rate / middle)} of the median of "
            f"{kind}; so few do not tell whether that is chance."
            for name, rate in alike.items()
            if rate < (1 - LEAST_SHARE) * middle and name not in named
        ]
    return found


def _alternates(subject: Subject, each: MultimodalInstance) -> str:
    modes = formatting.listing(
        f"{formatting.per_second(mode.value, subject.unit)} ({formatting.percent(mode.share)} of the time)"
        for mode in each.modes
    )
    return f"{subject.name}: {each.instance} alternates between {modes}; its median says little."


def _cycles(subject: Subject, each: CyclicInstance) -> str:
    who = each.instance or "the fleet as a whole"
    share = (
        "" if each.amplitude_share is None else f" by {formatting.percent(each.amplitude_share)}"
    )
    period = formatting.duration(each.period_seconds)
    return (
        f"{subject.name}: {who} rises and falls{share} with a period of {period} "
        f"({_sure(each.false_alarm)})."
    )


def _sure(false_alarm: float) -> str:
    """How often chance alone does as much in fleets that have nothing to find."""
    fleets = min(round(1 / max(false_alarm, 1e-9)), MOST_FLEETS)
    rounded = fleets // 10 ** (len(str(fleets)) - 1) * 10 ** (len(str(fleets)) - 1)
    return f"by chance in fewer than one of {formatting.count(rounded)} fleets"
