"""Which readings are of the same thing: the same operation of one tool, done in the same way.

Only those are put together. What tells them apart is the tool, the operation, the block size,
whether it went past the page cache, the layout of the disks, whether only a cache can have given
it, and what else a tool says of how it was done. How many were outstanding, and when it was, are
what a subject is looked at over. An instance is a host; of what was imported, which does not say
where it was measured, each measurement is one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from tonnage import words
from tonnage.artifacts import Measurement, Reading, Trial

MANNERS = (
    "engine",
    "submission",
    "shared",
    "segments",
    "flush",
    "connections_per_pair",
    "endpoints",
    "job",
    "object",
    "tool_operation",
    "test",
    "order",
    "timing",
    "interface",
    "api",
    "access",
    "type",
    "protocol",
    "device",
    "path_type",
    "synchronous_writes",
    "file_bytes",
)
"""Details of a reading that say how it was done; the others are what was found."""
LARGE_BYTES = 1 << 20
"""Blocks of this size and more are reckoned in bytes, smaller ones at random in operations."""
OURS = "tonnage"


@dataclass(frozen=True)
class Sample:
    """A reading, where it was made, and when."""

    instance: str
    measurement: str
    reading: Reading
    trial: Trial | None = None
    moment: float | None = None
    """When its trial began, in seconds since 1970."""

    @property
    def suite(self) -> str | None:
        """What its trial was for: to explore, or for long."""
        return self.trial.step.suite if self.trial and self.trial.step else None


@dataclass(frozen=True)
class Kind:
    """What tells samples apart."""

    tool: str
    label: str
    operation: str
    block_bytes: int | None
    direct: bool | None
    layout: str | None
    cached: bool
    manner: tuple[tuple[str, str], ...]

    def described(self) -> dict[str, str]:
        """Each property in words that can follow the name."""
        return {
            "block": f"blocks of {_size(self.block_bytes)}",
            "direct": {True: "direct", False: "buffered", None: "access unknown"}[self.direct],
            "layout": f"layout {self.layout}" if self.layout else "without a layout",
            "cached": "from a cache" if self.cached else "not from a cache",
            **{name: f"{name.replace('_', ' ')} {value}" for name, value in self.manner},
        }


def instance_of(measurement: Measurement) -> str:
    """The host; or the measurement itself, where that is not known."""
    return measurement.environment.host if measurement.environment else measurement.id


def samples_of(measurement: Measurement) -> list[Sample]:
    """All readings of a measurement."""
    instance, name = instance_of(measurement), measurement.id
    ours = [
        Sample(instance, name, trial.reading, trial, _moment(trial))
        for trial in measurement.trials
        if trial.reading
    ]
    return ours + [Sample(instance, name, reading) for reading in measurement.imported]


def by_kind(measurements: Iterable[Measurement]) -> dict[Kind, list[Sample]]:
    """Samples that are of the same thing, in order of their names."""
    found: dict[Kind, list[Sample]] = {}
    for measurement in measurements:
        layout = measurement.settings.get("layout")
        for sample in samples_of(measurement):
            kind = kind_of(sample, layout if isinstance(layout, str) else None)
            found.setdefault(kind, []).append(sample)
    return {kind: found[kind] for kind in sorted(found, key=_order)}


def kind_of(sample: Sample, layout: str | None = None) -> Kind:
    """What a sample is of; ``layout`` is its measurement's, if that has one."""
    reading, trial = sample.reading, sample.trial
    details = reading.details
    own = details.get("layout")
    named = trial.step.operation if trial and trial.step else None
    return Kind(
        tool=reading.source.tool,
        label=named or _label(reading),
        operation=reading.operation,
        block_bytes=reading.block_bytes,
        direct=reading.direct,
        layout=own if isinstance(own, str) else layout,
        cached=bool(reading.cached),
        manner=tuple(
            (name.removesuffix("_bytes"), _in_words(name, details[name]))
            for name in MANNERS
            if details.get(name) is not None
        ),
    )


def names(kinds: Sequence[Kind]) -> dict[Kind, str]:
    """A name for each, with no more in it than tells it from the others."""
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


def unit_of(kind: Kind, samples: Sequence[Sample]) -> str:
    """Whether the subject is reckoned in bytes or in operations."""
    if all(each.reading.bandwidth_bytes_per_second is None for each in samples):
        return "operations"
    small = kind.block_bytes is not None and kind.block_bytes < LARGE_BYTES
    counted = all(each.reading.operations_per_second is not None for each in samples)
    return "operations" if small and counted and kind.operation.startswith("rand") else "bytes"


def rate_of(reading: Reading, unit: str) -> float | None:
    """A reading's rate in the unit; None where the tool does not say."""
    if unit == "bytes":
        return reading.bandwidth_bytes_per_second
    return reading.operations_per_second


def rate_in(unit: str, times: float = 1.0) -> Callable[[Sample], float | None]:
    """What tells a sample's rate in the unit, multiplied."""

    def of(sample: Sample) -> float | None:
        rate = rate_of(sample.reading, unit)
        return None if rate is None else times * rate

    return of


def by_instance(samples: Iterable[Sample]) -> dict[str, list[Sample]]:
    """Samples of each instance, instances in order of their names."""
    found: dict[str, list[Sample]] = {}
    for sample in samples:
        found.setdefault(sample.instance, []).append(sample)
    return {name: found[name] for name in sorted(found)}


def cited(samples: Iterable[Sample]) -> list[str]:
    """The measurements that samples come from."""
    return list(dict.fromkeys(sample.measurement for sample in samples))


def _label(reading: Reading) -> str:
    if reading.source.tool == OURS:
        return reading.operation
    size = f" {_size(reading.block_bytes)}" if reading.block_bytes is not None else ""
    return f"{reading.source.tool}: {reading.operation}{size}"


def _in_words(name: str, value: object) -> str:
    return (
        _size(value)
        if name.endswith("_bytes") and isinstance(value, int)
        else (words.setting(name, value))
    )


def _size(block_bytes: int | None) -> str:
    """A block's size in words."""
    if block_bytes is None:
        return "unknown size"
    return words.memory(block_bytes) if block_bytes >= 1024 else f"{block_bytes} B"


def _order(kind: Kind) -> tuple[bool, str, str, int, str]:
    """Ours first, then by operation, small blocks before large ones."""
    rest = (kind.label, kind.direct, kind.layout, kind.cached, kind.manner)
    named = kind.label if kind.tool == OURS else kind.operation
    return (kind.tool != OURS, kind.tool, named, kind.block_bytes or 0, str(rest))


def _moment(trial: Trial) -> float | None:
    try:
        return datetime.fromisoformat(trial.began_at).timestamp() if trial.began_at else None
    except ValueError:
        return None
