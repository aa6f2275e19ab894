"""Rates and latencies by concurrency, the number of operations outstanding, and the knee.

Long trials use the knee, the smallest concurrency whose median rate is within 5 % of the best: more
operations wait longer without a higher rate.
"""

from collections.abc import Callable, Sequence

from tonnage.base.records.analysis import ConcurrencyLevel, Percentile
from tonnage.base.stats.knee import knee
from tonnage.model.analysis.conditions import LONG
from tonnage.model.analysis.estimates import median_estimate, values_of
from tonnage.model.analysis.grouping import Sample, measurement_ids

PERCENTILES = ("mean", "p50", "p90", "p99", "p999", "max")


def levels(samples: Sequence[Sample]) -> list[ConcurrencyLevel]:
    """A level for each concurrency, ascending; from exploratory trials if there are any."""
    explored = [each for each in samples if each.suite != LONG] or samples
    numbers = {each.reading.concurrency for each in explored}
    return [
        level([each for each in explored if each.reading.concurrency == number], number)
        for number in sorted(numbers, key=lambda number: (number is None, number or 0))
    ]


def level(samples: Sequence[Sample], concurrency: int | None) -> ConcurrencyLevel:
    latencies = [(name, median_estimate(values_of(samples, latency(name)))) for name in PERCENTILES]
    by_operation = median_estimate(values_of(samples, _cpu_of_operation))
    return ConcurrencyLevel(
        concurrency=concurrency,
        bandwidth=median_estimate(
            values_of(samples, lambda each: each.reading.bandwidth_bytes_per_second)
        ),
        operations=median_estimate(
            values_of(samples, lambda each: each.reading.operations_per_second)
        ),
        latencies=[
            Percentile(name=name, seconds=estimate) for name, estimate in latencies if estimate
        ],
        cpu_seconds_per_operation=by_operation.value if by_operation else None,
        cpu_seconds_per_byte=cpu_of_byte(samples),
        measurements=measurement_ids(samples),
    )


def near_best(found: Sequence[ConcurrencyLevel], unit: str) -> int | None:
    """The smallest concurrency within 5 % of the best; None if there is only one."""
    rates = {
        each.concurrency: rate.value
        for each in found
        if each.concurrency is not None and (rate := each.rate(unit))
    }
    return knee(rates) if len(rates) > 1 else None


def representative_samples(samples: Sequence[Sample], near: int | None) -> list[Sample]:
    """The samples for all further statistics: the long trials, or those at the knee."""
    long = [each for each in samples if each.suite == LONG]
    if long:
        return long
    if near is None:
        return list(samples)
    return [each for each in samples if each.reading.concurrency == near]


def concurrencies(samples: Sequence[Sample]) -> list[int]:
    return sorted({n for each in samples if (n := each.reading.concurrency) is not None})


def latency(name: str) -> Callable[[Sample], float | None]:
    def of(sample: Sample) -> float | None:
        value: float | None = getattr(sample.reading.latency_seconds, name)
        return value

    return of


def cpu_of_byte(samples: Sequence[Sample]) -> float | None:
    """The median core seconds for each byte, of the threads that move it."""
    found = median_estimate(values_of(samples, _cpu_of_byte))
    return found.value if found else None


def _cpu_of_byte(sample: Sample) -> float | None:
    return sample.trial.cpu_seconds_per_byte if sample.trial else None


def _cpu_of_operation(sample: Sample) -> float | None:
    return sample.trial.cpu_seconds_per_operation if sample.trial else None
