"""Compare the values of a label, such as a region, a zone or a time.

Each value has the median of its instances with its interval, a histogram and a density. Bins are
the same for all values, and shares are relative to each value's own instances, so that few can be
compared with many. Each other value also has a ratio to the first by name (`comparisons`).
"""

from collections.abc import Iterator, Sequence

import numpy as np

from tonnage.base.records import Measurement
from tonnage.base.records.analysis import Comparison, LabelComparison, LabelGroup
from tonnage.base.records.environment import HOST
from tonnage.base.stats.density import REACH, bandwidth, histogram, kernel_density
from tonnage.base.stats.outliers import MIN_INSTANCES
from tonnage.base.stats.samples import FloatArray
from tonnage.model.analysis.comparisons import common_concurrency, compare
from tonnage.model.analysis.estimates import median_estimate, units_of, values_of
from tonnage.model.analysis.grouping import (
    Kinds,
    OperationKind,
    Sample,
    kind_names,
    measurement_ids,
    rate_in,
    unit_of,
)
from tonnage.model.analysis.instances import axis_of

POINTS = 256  # Points of a density

Values = dict[str, list[Sample]]  # Samples of one kind, by value of a label


def ratios(kinds: Kinds, measurements: Sequence[Measurement]) -> list[Comparison]:
    """The ratio of each value of a label to the first by name, for every operation."""
    called = kind_names(list(kinds))
    found = []
    for name, kind, values in _labelled(kinds, measurements):
        base = min(values)
        for value in sorted(values)[1:]:
            sides = (f"{name} {value}", base)
            found.append(compare(called[kind], values[value], values[base], sides))
    return [each for each in found if each]


def side_by_side(kinds: Kinds, measurements: Sequence[Measurement]) -> list[LabelComparison]:
    called = kind_names(list(kinds))
    found = [
        _of_kind(called[kind], name, unit_of(kind, kinds[kind]), values)
        for name, kind, values in _labelled(kinds, measurements)
    ]
    return [each for each in found if each]


def _labelled(
    kinds: Kinds, measurements: Sequence[Measurement]
) -> Iterator[tuple[str, OperationKind, Values]]:
    """Each label but the host name, with each kind that was measured with several of its values."""
    said = {each.id: each.environment.labels for each in measurements if each.environment}
    for name in sorted({name for each in said.values() for name in each} - {HOST}):
        for kind, samples in kinds.items():
            values: Values = {}
            for sample in samples:
                if value := said.get(sample.measurement, {}).get(name):
                    values.setdefault(value, []).append(sample)
            if len(values) > 1:
                yield name, kind, values


def _of_kind(subject: str, label: str, unit: str, values: Values) -> LabelComparison | None:
    number = common_concurrency(*values.values())
    alike = {
        value: [each for each in samples if each.reading.concurrency == number]
        for value, samples in sorted(values.items())
    }
    rates = {
        value: found
        for value, samples in alike.items()
        if (found := values_of(samples, rate_in(unit)))
    }
    if len(rates) < 2:
        return None
    units = {value: np.asarray(units_of(found)[0]) for value, found in rates.items()}
    every = np.concatenate(list(units.values()))
    axis = axis_of(every)
    bars = histogram(every, axis)
    on_axis = {
        value: np.log(each) if axis == "logarithmic" else each for value, each in units.items()
    }
    edges = np.log(bars.edges) if axis == "logarithmic" else np.asarray(bars.edges)
    widths = {value: _width(each) for value, each in on_axis.items()}
    reach = REACH * max((width for width in widths.values() if width), default=0.0)
    places = np.linspace(edges[0] - reach, edges[-1] + reach, POINTS)
    step = float(edges[1] - edges[0])
    labelled = []
    for value, of_value in rates.items():
        median = median_estimate(of_value)
        assert median is not None
        width = widths[value]
        curve = None if width is None else step * kernel_density(on_axis[value], places, width)
        counts, _ = np.histogram(on_axis[value], edges)
        labelled.append(
            LabelGroup(
                value=value,
                rate=median,
                shares=[round(each, 6) for each in (counts / len(on_axis[value])).tolist()],
                densities=None if curve is None else [round(each, 6) for each in curve.tolist()],
                measurements=measurement_ids(alike[value]),
            )
        )
    return LabelComparison(
        subject=subject,
        label=label,
        unit=unit,
        concurrency=number,
        axis=axis,
        edges=list(bars.edges),
        places=(np.exp(places) if axis == "logarithmic" else places).tolist(),
        values=labelled,
        rule=f"bins: {bars.rule}, over all values; density: Gaussian kernels, Silverman's rule for "
        f"each value with at least {MIN_INSTANCES} machines",
    )


def _width(values: FloatArray) -> float | None:
    return bandwidth(values) if values.size >= MIN_INSTANCES and np.ptp(values) > 0 else None
