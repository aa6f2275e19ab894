"""Analyse measurements: everything that a report draws, computed, and nothing drawn.

Comparable samples are grouped (`grouping`). Each group is analysed by concurrency, by instance,
over time, against other groups (`comparisons`), by label and by cost efficiency. `warnings` lists
reasons to distrust the figures, `findings` the results in sentences. Samples of several instances
are never pooled, and a statistic that too few values cannot support is not estimable.
"""

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from tonnage.base import formatting
from tonnage.base.credibility import scorecard
from tonnage.base.records import ClusterMeasurement, Environment, Measurement
from tonnage.base.records.analysis import Analysis, CitedMeasurement, Machine, Subject
from tonnage.base.records.network_rounds import depends_on_partner
from tonnage.base.stats.cluster_time_series import LEVEL, ClusterFindings, analyse_cluster
from tonnage.base.stats.samples import Series
from tonnage.model.analysis import comparisons, labels
from tonnage.model.analysis.concurrency import (
    concurrencies,
    level,
    levels,
    near_best,
    representative_samples,
)
from tonnage.model.analysis.cost_efficiency import MachinePrice, Price, machine_price, per_dollar
from tonnage.model.analysis.estimates import CONFIDENCE, INSTANCES, as_estimate
from tonnage.model.analysis.findings import findings, omitted_charts, slow_machines
from tonnage.model.analysis.grouping import (
    OperationKind,
    Sample,
    by_instance,
    by_kind,
    instance_of,
    kind_names,
    unit_of,
)
from tonnage.model.analysis.instances import (
    alternating,
    cycles,
    instances,
    latency_histograms,
    lines,
    outliers,
    spread,
)
from tonnage.model.analysis.time_series import chart_series, series_of, steadiness
from tonnage.model.analysis.warnings import measurement_warnings, missing_node_warnings

__all__ = ["Price", "analyse"]

OnShare = Callable[[float], None]  # Called with the completed share of the work


def analyse(
    measurements: Sequence[Measurement],
    prices: Mapping[str, Price] | None = None,
    seed: int = 0,
    clusters: Sequence[ClusterMeasurement] = (),
    on_share: OnShare | None = None,
) -> Analysis:
    """Analyse measurements of any machines and tools, in any order.

    ``prices`` are of hosts or machine types, by name; ``clusters`` only serve to report missing
    nodes. The same ``seed`` and measurements give the same analysis. `ValueError`: there are no
    measurements, or two have the same id.
    """
    _check_unique(measurements)
    kinds = by_kind(sorted(measurements, key=lambda each: each.id))
    names = kind_names(list(kinds))
    costs = {
        instance_of(each): cost
        for each in measurements
        if (cost := machine_price(each, prices or {}))
    }
    subjects, dollars = [], []
    for number, (kind, samples) in enumerate(kinds.items()):
        subject = _subject(f"subject-{number + 1}", kind, names[kind], samples, seed)
        subjects.append(subject)
        of_rest = representative_samples(samples, subject.near_best)
        dollars += per_dollar(subject.name, of_rest, costs)
        if on_share:
            on_share((number + 1) / len(kinds))
    machines = _machines(measurements, costs)
    types = _types(measurements)
    below = [
        said
        for kind, subject in zip(kinds, subjects, strict=True)
        if not depends_on_partner(dict(kind.conditions).get("pattern"))
        for said in slow_machines(subject, types)
    ]
    direct = comparisons.direct_against_buffered(kinds)
    by_layout = comparisons.compare_layouts(kinds)
    by_label = labels.side_by_side(kinds, measurements)
    return Analysis(
        seed=seed,
        confidence=CONFIDENCE,
        false_alarm_level=LEVEL,
        machines=machines,
        subjects=subjects,
        per_dollar=dollars,
        direct_against_buffered=direct,
        layouts=by_layout,
        labels=labels.ratios(kinds, measurements),
        by_label=by_label,
        findings=[*findings(machines, subjects), *below],
        warnings=[
            *missing_node_warnings(clusters),
            *measurement_warnings(measurements, kinds, names),
        ],
        scorecard=scorecard(measurements),
        left_out=omitted_charts(subjects, dollars, direct, by_layout, by_label),
        cited=[_cited(each) for each in measurements],
    )


def _subject(
    key: str, kind: OperationKind, name: str, samples: Sequence[Sample], seed: int
) -> Subject:
    unit = unit_of(kind, samples)
    by_level = levels(samples)
    near = near_best(by_level, unit)
    rest = representative_samples(samples, near)
    numbers = concurrencies(rest)
    series = series_of(rest, unit)
    found = _cluster_findings(series, seed)
    courses, highest = chart_series(series, steadiness(rest))
    order = [each.name for each in found.instances] if found else list(by_instance(rest))
    medians = {each.name: each.median.value for each in found.instances} if found else {}
    return Subject(
        key=key,
        name=name,
        tool=kind.tool,
        operation=kind.operation,
        block_bytes=kind.block_bytes,
        direct=kind.direct,
        layout=kind.layout,
        cached=kind.cached,
        unit=unit,
        levels=by_level,
        near_best=near,
        concurrencies=numbers,
        chosen=level(rest, numbers[0] if len(numbers) == 1 else None),
        instances=instances(found, rest) if found else [],
        quantiles=[as_estimate(each, INSTANCES) for each in found.percentiles] if found else [],
        variation=found.variation if found else None,
        variation_over_time=_variation_over_time(found) if found else None,
        lines=lines(rest, series),
        courses=courses,
        highest=highest,
        latency_histograms=latency_histograms(order, rest),
        spread=spread(medians, rest, seed),
        outliers=outliers(found, rest) if found else [],
        alternating=alternating(found, rest) if found else [],
        cycles=cycles(found, rest) if found else [],
    )


def _cluster_findings(series: Mapping[str, Series], seed: int) -> ClusterFindings | None:
    moved = [name for name, each in series.items() if np.median(each.values) > 0]
    if 2 * len(moved) <= len(series):
        return None
    return analyse_cluster(series, confidence=CONFIDENCE, seed=seed)


def _variation_over_time(found: ClusterFindings) -> float | None:
    known = [each.variation for each in found.instances if each.variation is not None]
    return float(np.median(known)) if known else None


def _types(measurements: Sequence[Measurement]) -> dict[str, str | None]:
    return {
        instance_of(each): each.environment.machine_type
        for each in measurements
        if each.environment
    }


def _machines(
    measurements: Sequence[Measurement], costs: Mapping[str, MachinePrice]
) -> list[Machine]:
    by_machine: dict[str, list[Measurement]] = {}
    for each in measurements:
        by_machine.setdefault(instance_of(each), []).append(each)
    return [
        Machine(
            name=name,
            known=by_machine[name][0].environment is not None,
            description=_described(by_machine[name][0].environment),
            usd_per_hour=costs[name].price.usd_per_hour if name in costs else None,
            price_source=costs[name].price.source if name in costs else None,
            measurements=[each.id for each in by_machine[name]],
        )
        for name in sorted(by_machine)
    ]


def _described(environment: Environment | None) -> str:
    if environment is None:
        return "imported: unknown machine"
    return (
        f"{formatting.several(environment.cores, 'core')}, {environment.cpu_model}, "
        f"{formatting.memory(environment.memory_bytes)}, {environment.virtualisation}"
    )


def _cited(measurement: Measurement) -> CitedMeasurement:
    return CitedMeasurement(
        id=measurement.id,
        kind=measurement.kind,
        machine=instance_of(measurement),
        tools=list(
            dict.fromkeys(
                " ".join(filter(None, (each.source.tool, each.source.version)))
                for each in measurement.readings
            )
        ),
        began_at=measurement.began_at,
        command=measurement.command,
        stopping_rule=measurement.stopping_rule,
        page_cache=measurement.page_cache,
        readings=len(measurement.readings),
    )


def _check_unique(measurements: Sequence[Measurement]) -> None:
    if not measurements:
        raise ValueError("no measurements")
    seen: set[str] = set()
    for each in measurements:
        if each.id in seen:
            raise ValueError(f"measurement {each.id} is listed twice")
        seen.add(each.id)
