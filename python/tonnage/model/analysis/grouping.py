"""Group comparable samples: the same operation of one tool, under the same conditions.

Groups differ in the tool, the operation, the block size, direct or buffered I/O, the layout of the
disks, whether the figure is of a cache, and the other `conditions`. Concurrency and time vary
within a group. An instance is a host. Imported measurements, which do not state their machine, are
one instance each, or one for each host that they name. A network round is one value, since its
endpoints depend on each other: that of the slowest, and the sum; in addition each endpoint is an
instance.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from tonnage.base.records import Measurement, Metric, Trial
from tonnage.base.records.network_rounds import NET, between_machines
from tonnage.model.analysis import cpu_cost
from tonnage.model.analysis.conditions import Conditions, block_size, conditions_of, places

LARGE_BYTES = 1 << 20
"""Random operations on smaller blocks are counted as operations, all others in bytes."""
OURS = "tonnage"
NAMES_HOSTS = {"fio", "sysstat"}
"""Tools that name the host that was measured; the host of iperf3 is the peer."""
EACH = "each endpoint"


@dataclass(frozen=True)
class Sample:
    instance: str
    measurement: str
    reading: Metric
    trial: Trial | None = None
    began_seconds: float | None = None  # Start of its trial, in seconds since 1970
    part: str | None = None  # The part of a network round: the slowest endpoint, all, or each

    @property
    def suite(self) -> str | None:
        return self.trial.step.suite if self.trial and self.trial.step else None


@dataclass(frozen=True)
class OperationKind:
    tool: str
    label: str
    operation: str
    block_bytes: int | None
    direct: bool | None
    layout: str | None
    cached: bool
    conditions: Conditions
    place: Conditions = ()

    def described(self) -> dict[str, str]:
        """Each property as text that can follow the name."""
        return {
            "block": f"blocks of {block_size(self.block_bytes)}",
            "direct": {True: "direct", False: "buffered", None: "access unknown"}[self.direct],
            "layout": f"layout {self.layout}" if self.layout else "without a layout",
            "cached": "from a cache" if self.cached else "not from a cache",
            **{name: f"{name} {value}" for name, value in self.conditions + self.place},
        }


Kinds = Mapping[OperationKind, Sequence[Sample]]


def instance_of(measurement: Measurement) -> str:
    """The host; or the measurement itself, if the host is unknown."""
    return measurement.environment.host if measurement.environment else measurement.id


def samples_of(measurement: Measurement) -> list[Sample]:
    instance, name = instance_of(measurement), measurement.id
    if measurement.kind == NET and not between_machines(measurement):
        return list(_of_rounds(measurement))
    ours = [
        Sample(instance, name, trial.reading, trial, _moment(trial))
        for trial in measurement.trials
        if trial.reading
    ]
    return ours + [
        Sample(f"{instance}, {host}" if host else instance, name, reading)
        for reading, host in zip(measurement.imported, _hosts(measurement), strict=True)
    ]


def by_kind(measurements: Iterable[Measurement]) -> dict[OperationKind, list[Sample]]:
    several = list(measurements)
    where = places(several)
    found: dict[OperationKind, list[Sample]] = {}
    for measurement in several:
        for sample in samples_of(measurement):
            kind = kind_of(sample, measurement, where.get(measurement.id, ()))
            found.setdefault(kind, []).append(sample)
    return {kind: found[kind] for kind in sorted(found, key=_order)}


def kind_of(sample: Sample, measurement: Measurement, place: Conditions = ()) -> OperationKind:
    reading, trial = sample.reading, sample.trial
    layout = reading.details.get("layout") or measurement.settings.get("layout")
    named = (trial.step.operation if trial and trial.step else None) or _label(reading)
    return OperationKind(
        tool=reading.source.tool,
        label=f"{named}, {sample.part}" if sample.part else named,
        operation=reading.operation,
        block_bytes=reading.block_bytes,
        direct=reading.direct,
        layout=layout if isinstance(layout, str) else None,
        cached=bool(reading.cached),
        conditions=conditions_of(measurement, reading, trial),
        place=place,
    )


def kind_names(kinds: Sequence[OperationKind]) -> dict[OperationKind, str]:
    """A name for each kind, with only the properties that distinguish it from the others."""
    found = {}
    for kind in kinds:
        alike = [other for other in kinds if (other.tool, other.label) == (kind.tool, kind.label)]
        described = [other.described() for other in alike]
        own = kind.described()
        apart = [
            own[name]
            for name in dict.fromkeys(name for each in described for name in each)
            if name in own and len({each.get(name) for each in described}) > 1
        ]
        found[kind] = ", ".join([kind.label, *apart])
    return found


def unit_of(kind: OperationKind, samples: Sequence[Sample]) -> str:
    if all(each.reading.bandwidth_bytes_per_second is None for each in samples):
        return "operations"
    small = kind.block_bytes is not None and kind.block_bytes < LARGE_BYTES
    counted = all(each.reading.operations_per_second is not None for each in samples)
    return "operations" if small and counted and kind.operation.startswith("rand") else "bytes"


def rate_of(reading: Metric, unit: str) -> float | None:
    if unit == "bytes":
        return reading.bandwidth_bytes_per_second
    return reading.operations_per_second


def rate_in(unit: str, times: float = 1.0) -> Callable[[Sample], float | None]:
    """A getter of a sample's rate in the unit, times a factor."""

    def of(sample: Sample) -> float | None:
        rate = rate_of(sample.reading, unit)
        return None if rate is None else times * rate

    return of


def by_instance(samples: Iterable[Sample]) -> dict[str, list[Sample]]:
    found: dict[str, list[Sample]] = {}
    for sample in samples:
        found.setdefault(sample.instance, []).append(sample)
    return {name: found[name] for name in sorted(found)}


def measurement_ids(samples: Iterable[Sample]) -> list[str]:
    return list(dict.fromkeys(sample.measurement for sample in samples))


def _label(reading: Metric) -> str:
    if reading.source.tool == OURS:
        return reading.operation
    block = f" {block_size(reading.block_bytes)}" if reading.block_bytes is not None else ""
    return f"{reading.source.tool}: {reading.operation}{block}"


def _order(kind: OperationKind) -> tuple[bool, str, str, int, str]:
    """Sort key: our own first, then by operation, small blocks before large ones."""
    rest = (kind.label, kind.direct, kind.layout, kind.cached, kind.conditions, kind.place)
    named = kind.label if kind.tool == OURS else kind.operation
    return (kind.tool != OURS, kind.tool, named, kind.block_bytes or 0, str(rest))


def _of_rounds(measurement: Measurement) -> Iterator[Sample]:
    host, name = instance_of(measurement), measurement.id
    for together in cpu_cost.round_directions(measurement):
        parts = [(host, part, trial) for part, trial in cpu_cost.round_summary(together).items()]
        parts += [(f"{host}, {_endpoint(trial)}", EACH, trial) for trial in together]
        for instance, part, trial in parts:
            if trial.reading:
                yield Sample(instance, name, trial.reading, trial, _moment(trial), part)


def _hosts(measurement: Measurement) -> list[str | None]:
    named = [reading.details.get("host") for reading in measurement.imported]
    tools = {reading.source.tool for reading in measurement.imported}
    several = len({*filter(None, named)}) > 1 and tools <= NAMES_HOSTS
    return [host if several else None for host in named]


def _endpoint(trial: Trial) -> str:
    return trial.name.rpartition(", ")[2]


def _moment(trial: Trial) -> float | None:
    try:
        return datetime.fromisoformat(trial.began_at).timestamp() if trial.began_at else None
    except ValueError:
        return None
