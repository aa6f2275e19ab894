"""The records that the loop hands on: frozen, versioned, one file each, written atomically.

A record's JSON says what it is and in which version (``"schema": "tonnage.study/1"``). A version
is never changed in place: a reader keeps reading what an older Tonnage wrote. Timelines, which are
long, go to Parquet beside the JSON. Sizes are bytes, times seconds, rates bytes per second; where
a figure is decimal (1 MB = 1e6 B) or binary (MiB) the text says so.
"""

from __future__ import annotations

import dataclasses
import json
import os
import tempfile
import types
import typing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Self

# pyarrow is imported where it is used: it doubles a command's start-up and memory, and a sort must
# not pay for tables that it does not write.


class ArtifactError(Exception):
    """A file that is no artifact, or one of a version that this Tonnage does not know."""


@dataclass(frozen=True, kw_only=True)
class Artifact:
    """A record with a schema. Subclasses name theirs and declare their fields."""

    SCHEMA: ClassVar[str]

    def to_json(self) -> dict[str, Any]:
        """The record as JSON values, its schema first."""
        return {"schema": self.SCHEMA, **dataclasses.asdict(self)}

    def write(self, path: Path) -> Path:
        """Writes the record to ``path``, whole or not at all."""
        write_atomically(path, json.dumps(self.to_json(), indent=1).encode() + b"\n")
        return path

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> Self:
        """The record in ``values``.

        Raises:
            ArtifactError: The values have another schema, or lack a field of this one.
        """
        schema = values.get("schema") if isinstance(values, dict) else None
        if schema != cls.SCHEMA:
            raise ArtifactError(f"expected {cls.SCHEMA}, found {schema!r}")
        try:
            artifact: Self = _build(cls, values)
        except TypeError as why:
            raise ArtifactError(f"no whole {cls.SCHEMA}: {why}") from why
        return artifact

    @classmethod
    def read(cls, path: Path) -> Self:
        """The record that ``path`` holds.

        Raises:
            ArtifactError: The file is not JSON, has another schema, or lacks a field; the message
                names it.
            OSError: It cannot be read.
        """
        try:
            values = json.loads(path.read_bytes())
        except ValueError as why:
            raise ArtifactError(f"{path} is not JSON: {why}") from why
        try:
            return cls.from_json(values)
        except ArtifactError as why:
            raise ArtifactError(f"{path}: {why}") from why


@dataclass(frozen=True, kw_only=True)
class Device:
    """A block device, or another thing that holds a directory."""

    name: str
    directories: list[str]
    file_system: str
    mount_options: str
    scheduler: str | None
    rotational: bool | None
    size_bytes: int | None
    model: str | None


@dataclass(frozen=True, kw_only=True)
class Environment(Artifact):
    """What a measurement or a run was done on, captured without being asked."""

    SCHEMA: ClassVar[str] = "tonnage.environment/1"

    host: str
    kernel: str
    operating_system: str
    virtualisation: str
    cpu_model: str
    cores: int
    memory_bytes: int
    memory_limit_bytes: int | None
    load_average: float
    devices: list[Device]
    versions: dict[str, str]
    debug_build: bool


@dataclass(frozen=True, kw_only=True)
class Stage:
    """What a stage of a graph did (idea 2 of the design: every stage is probed)."""

    name: str
    kind: str
    workers: int
    bytes: int
    records: int
    busy_seconds: float
    starved_seconds: float
    blocked_seconds: float
    cpu_seconds: float
    memory_bytes: int
    config: dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Phase:
    """One run of one graph."""

    name: str
    graph: str
    began_seconds: float
    seconds: float
    bottleneck: str
    memory_bytes: int
    disk_modes: list[dict[str, Any]]
    stages: list[Stage]


@dataclass(frozen=True, kw_only=True)
class Step:
    """Which trial of a sweep."""

    operation: str
    outstanding: int
    round: int


@dataclass(frozen=True, kw_only=True)
class Latency:
    """Seconds from the moment an operation was meant to begin to the moment it was seen done.

    ``bins`` are the histogram: the greatest latency of each bin, and how many operations it holds;
    a latency is off by at most the share ``error_bound``. ``None`` where nothing was counted.
    """

    count: int
    mean: float | None
    p50: float | None
    p90: float | None
    p99: float | None
    p999: float | None
    max: float | None
    error_bound: float
    bins: list[list[float]]


@dataclass(frozen=True, kw_only=True)
class Beside:
    """What happened beside a trial, as the kernel counts; ``None`` where it does not.

    Core seconds are foreign that other processes used, and stolen that the hypervisor gave to
    other machines. ``queue`` is how the kernel treats the device's queue.
    """

    device: str
    device_reads: int | None
    device_read_bytes: int | None
    device_writes: int | None
    device_written_bytes: int | None
    foreign_cpu_seconds: float
    stolen_cpu_seconds: float
    dirty_bytes_before: int | None
    dirty_bytes_after: int | None
    queue: dict[str, str]


@dataclass(frozen=True, kw_only=True)
class Trial(Artifact):
    """One trial of a measurement: a graph that ran for a set time, or through its data once.

    ``warm_up_seconds`` is how much of its beginning was not counted. ``rates`` are the raw samples:
    bytes per second moved in each window after that. A trial of single operations also has its
    ``step``, their rate, CPU and latencies, and for each worker the operations of each second.
    """

    SCHEMA: ClassVar[str] = "tonnage.trial/1"

    name: str
    bytes_per_second: float
    cpu_seconds_per_byte: float
    warm_up_seconds: float
    rates: list[float]
    phase: Phase
    began_at: str | None = None
    step: Step | None = None
    settings: dict[str, Any] = field(default_factory=dict)
    operations_per_second: float | None = None
    cpu_seconds_per_operation: float | None = None
    latency: Latency | None = None
    each_second: list[list[int]] = field(default_factory=list)
    beside: Beside | None = None


@dataclass(frozen=True, kw_only=True)
class Figure:
    """What trials of one kind come to: their median, between the slowest and the fastest."""

    name: str
    trials: int
    median_bytes_per_second: float
    low_bytes_per_second: float
    high_bytes_per_second: float


@dataclass(frozen=True, kw_only=True)
class Measurement(Artifact):
    """Trials of one kind in one place. ``id`` is how predictions cite it."""

    SCHEMA: ClassVar[str] = "tonnage.measurement/1"

    id: str
    kind: str
    began_at: str
    command: list[str]
    environment: Environment
    settings: dict[str, Any]
    stopping_rule: str
    page_cache: str
    figures: list[Figure] = field(default_factory=list)
    trials: list[Trial]


@dataclass(frozen=True, kw_only=True)
class Term:
    """What one resource would need for one phase: ``seconds = demand / capacity``."""

    resource: str
    demand: float
    capacity: float
    low_capacity: float
    high_capacity: float
    unit: str
    seconds: float
    source: str
    measurements: list[str]


@dataclass(frozen=True, kw_only=True)
class PredictedPhase:
    """A phase's time: that of ``limit``, its slowest resource, times ``rehearsal_factor``.

    The disk's time is its term's and ``ramp_seconds``: what filling and draining the pipeline add
    (or, where one way alone is faster, spare). The factor is by how much rehearsals took longer.
    """

    name: str
    seconds: float
    low_seconds: float
    high_seconds: float
    limit: str
    ramp_seconds: float
    rehearsal_factor: float = 1.0
    terms: list[Term]


@dataclass(frozen=True, kw_only=True)
class Prediction(Artifact):
    """How long a job will take, with an interval, written before the job starts.

    ``seconds`` is the sum of the phases' and of ``other_seconds``, which pass outside of them.
    """

    SCHEMA: ClassVar[str] = "tonnage.prediction/1"

    job: str
    bytes: int
    made_at: str
    seconds: float
    low_seconds: float
    high_seconds: float
    confidence: float
    interval_rule: str
    other_seconds: float = 0.0
    phases: list[PredictedPhase]


@dataclass(frozen=True, kw_only=True)
class RunRecord(Artifact):
    """What a job did."""

    SCHEMA: ClassVar[str] = "tonnage.run/1"

    job: str
    began_at: str
    command: list[str]
    environment: Environment
    settings: dict[str, Any]
    records: int
    bytes: int
    checksum: str
    seconds: float
    cpu_seconds: float
    peak_memory_bytes: int
    repartitioned_bytes: int = 0
    phases: list[Phase]


@dataclass(frozen=True, kw_only=True)
class Validation:
    """What the validator found in the output."""

    records: int
    checksum: str
    unordered: int
    duplicate_keys: int
    seconds: float
    matches_input: bool


@dataclass(frozen=True, kw_only=True)
class Limit:
    """What the disks alone would need (2-IO), and how near the job came."""

    seconds: float
    efficiency: float
    rule: str
    measurements: list[str]


@dataclass(frozen=True, kw_only=True)
class ActualPhase:
    """A phase beside its prediction."""

    name: str
    seconds: float
    predicted_seconds: float | None
    bottleneck: str
    why: str


@dataclass(frozen=True, kw_only=True)
class Actual:
    """The job's times."""

    seconds: float
    phases: list[ActualPhase]


@dataclass(frozen=True, kw_only=True)
class Study(Artifact):
    """The whole loop on one machine. Fields are filled as the loop goes on; ``steps`` says how far.

    A study that was cut short is readable: it has what was done by then.
    """

    SCHEMA: ClassVar[str] = "tonnage.study/1"

    began_at: str
    command: list[str]
    environment: Environment
    settings: dict[str, Any]
    steps: list[str] = field(default_factory=list)
    measurements: list[Measurement] = field(default_factory=list)
    rehearsals: list[RunRecord] = field(default_factory=list)
    predicted: Prediction | None = None
    run: RunRecord | None = None
    actual: Actual | None = None
    validation: Validation | None = None
    limit: Limit | None = None
    error_fraction: float | None = None
    findings: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    files: dict[str, str] = field(default_factory=dict)
    report: str | None = None


def write_atomically(path: Path, content: bytes) -> None:
    """Writes ``content`` to ``path`` so that a reader, or a crash, never sees a part of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, unfinished = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(unfinished, 0o644)
        os.replace(unfinished, path)
        _flush(path.parent)  # The name is durable when its directory is.
    except BaseException:
        Path(unfinished).unlink(missing_ok=True)
        raise


def _flush(directory: Path) -> None:
    handle = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def write_table(path: Path, columns: dict[str, list[Any]]) -> Path:
    """Writes columns of equal length as Parquet, whole or not at all."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    content = pa.BufferOutputStream()
    pq.write_table(pa.table(columns), content)
    write_atomically(path, content.getvalue().to_pybytes())
    return path


def read_table(path: Path) -> dict[str, list[Any]]:
    """The columns of a Parquet file."""
    import pyarrow.parquet as pq

    columns: dict[str, list[Any]] = pq.read_table(path).to_pydict()
    return columns


def _build(kind: Any, values: Any) -> Any:
    """``values`` as the declared type ``kind``; fields that it does not know are left out."""
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin in (typing.Union, types.UnionType):
        some = next(argument for argument in arguments if argument is not types.NoneType)
        return None if values is None else _build(some, values)
    if origin is list:
        return [_build(arguments[0], value) for value in values]
    if isinstance(kind, type) and dataclasses.is_dataclass(kind):
        hints = typing.get_type_hints(kind)
        names = [known.name for known in dataclasses.fields(kind) if known.name in values]
        return kind(**{name: _build(hints[name], values[name]) for name in names})
    return values
