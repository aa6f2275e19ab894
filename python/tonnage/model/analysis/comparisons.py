"""Compare groups that differ in one property only: direct against buffered, layouts.

Ratios are of medians. If at least two instances measured both, the result is the median over their
own ratios, in which differences between machines cancel. Otherwise the medians of both sides are
divided. Then each side's interval gets half of the error, and the low end of one is divided by the
high end of the other (Bonferroni), so that both hold at once.
"""

import dataclasses
from collections.abc import Callable, Mapping, Sequence

from tonnage.base.records import SINGLE, Measurement
from tonnage.base.records.analysis import Comparison, Estimate
from tonnage.base.stats.quantiles import quantile_estimate
from tonnage.model.analysis.concurrency import cpu_of_byte
from tonnage.model.analysis.conditions import STRIPE
from tonnage.model.analysis.estimates import (
    CONFIDENCE,
    INSTANCES,
    as_estimate,
    median_estimate,
    medians_of,
    units_of,
    values_of,
)
from tonnage.model.analysis.grouping import (
    Kinds,
    OperationKind,
    Sample,
    by_kind,
    kind_names,
    measurement_ids,
    rate_in,
)


def direct_against_buffered(kinds: Kinds) -> list[Comparison]:
    """Direct over buffered, for every operation that was measured with both."""
    found = []
    for name, same in _comparable(
        kinds, lambda kind: dataclasses.replace(kind, direct=None)
    ).items():
        ways = {kind.direct: kind for kind in same}
        if {True, False} <= ways.keys():
            sides = ("direct", _buffered(ways[False]))
            found.append(compare(name, kinds[ways[True]], kinds[ways[False]], sides))
    return [each for each in found if each]


def compare_layouts(kinds: Kinds) -> list[Comparison]:
    """Every layout, with each stripe size, over the single device or else the first by name."""
    found = []
    for name, same in _comparable(kinds, _without_layout).items():
        ways = _by_layout(same)
        if not ways:
            continue
        base = SINGLE if SINGLE in ways else min(ways)
        found += [
            compare(name, kinds[ways[layout]], kinds[ways[base]], (layout, base))
            for layout in sorted(ways)
            if layout != base
        ]
    return [each for each in found if each]


def compare_layouts_of(measurements: Sequence[Measurement]) -> list[Comparison]:
    return compare_layouts(by_kind(measurements))


def ratio_of_medians(
    above: Mapping[str, Sequence[float]], below: Mapping[str, Sequence[float]]
) -> Estimate | None:
    """The ratio of medians of values by instance; None if there is none."""
    top, bottom = medians_of(above), medians_of(below)
    both = [name for name in top if bottom.get(name)]
    if len(both) > 1:
        ratios = [top[name] / bottom[name] for name in both]
        return as_estimate(quantile_estimate(ratios, 0.5, CONFIDENCE), INSTANCES)
    confidence = 1 - (1 - CONFIDENCE) / 2
    over, under = median_estimate(above, confidence), median_estimate(below, confidence)
    if over is None or under is None or not under.value:
        return None
    low = high = None
    if over.low is not None and over.high is not None and under.low and under.high:
        low, high = over.low / under.high, over.high / under.low
    return Estimate(
        share=0.5,
        value=over.value / under.value,
        low=low,
        high=high,
        confidence=None if low is None else CONFIDENCE,
        size=min(over.size, under.size),
        effective_size=min(over.effective_size, under.effective_size),
        over=units_of(above)[1] if over.size <= under.size else units_of(below)[1],
        lacking=max(over.lacking, under.lacking),
    )


def compare(
    name: str, tops: Sequence[Sample], bottoms: Sequence[Sample], ways: tuple[str, str]
) -> Comparison | None:
    """Compare two groups of samples at a common concurrency; None if they have none."""
    number = common_concurrency(tops, bottoms)
    if number is None and not _without_concurrency(tops, bottoms):
        return None
    tops = [each for each in tops if each.reading.concurrency == number]
    bottoms = [each for each in bottoms if each.reading.concurrency == number]
    for unit in ("bytes", "operations"):
        found = ratio_of_medians(values_of(tops, rate_in(unit)), values_of(bottoms, rate_in(unit)))
        if found:
            return Comparison(
                subject=name,
                way=ways[0],
                than=ways[1],
                concurrency=number,
                ratio=found,
                way_cpu_seconds_per_byte=cpu_of_byte(tops),
                than_cpu_seconds_per_byte=cpu_of_byte(bottoms),
                measurements=measurement_ids([*tops, *bottoms]),
            )
    return None


def common_concurrency(*sides: Sequence[Sample]) -> int | None:
    shared = set.intersection(*({each.reading.concurrency for each in side} for side in sides))
    return max((number for number in shared if number is not None), default=None)


def _comparable(
    kinds: Kinds, bare: Callable[[OperationKind], OperationKind]
) -> dict[str, list[OperationKind]]:
    """Groups of kinds that only differ in the compared property, by a name without it.

    Figures of caches come first, so that they only count where there is nothing else.
    """
    found: dict[OperationKind, list[OperationKind]] = {}
    for kind in sorted(kinds, key=lambda kind: not kind.cached):
        found.setdefault(dataclasses.replace(bare(kind), cached=False), []).append(kind)
    several = {kind: same for kind, same in found.items() if len(same) > 1}
    called = kind_names(list(several))
    return {called[kind]: same for kind, same in several.items()}


def _without_layout(kind: OperationKind) -> OperationKind:
    conditions = tuple(each for each in kind.conditions if each[0] != STRIPE)
    return dataclasses.replace(kind, layout=None, conditions=conditions)


def _by_layout(same: Sequence[OperationKind]) -> dict[str, OperationKind]:
    """Kinds by layout; with the stripe size if a layout has several."""
    laid_out = [kind for kind in same if kind.layout]
    stripes = {(kind.layout, dict(kind.conditions).get(STRIPE)) for kind in laid_out}
    several = len(stripes) > len({layout for layout, _ in stripes})
    return {
        f"{kind.layout}, {STRIPE} {stripe}"
        if several and (stripe := dict(kind.conditions).get(STRIPE))
        else str(kind.layout): kind
        for kind in laid_out
    }


def _buffered(kind: OperationKind) -> str:
    return "buffered (from a cache)" if kind.cached else "buffered"


def _without_concurrency(tops: Sequence[Sample], bottoms: Sequence[Sample]) -> bool:
    return all(any(each.reading.concurrency is None for each in side) for side in (tops, bottoms))
