"""Predict a two-pass sort on one machine from measurements of its disks and cores.

The 2-IO model (Themis on EC2, equations 2, 4 and 6, with an infinite network) is
``T = D / B + D / B`` with B the read/write bandwidth of the storage. Two terms are added here, to
predict a run rather than a limit:

* **CPU is a resource of each phase** (the study excludes compute-bound jobs, section 3.3.4):
  its demand is the CPU seconds for each byte in the benchmarks of the stages.
* **A pipeline fills and drains.** The first bytes of a phase are read before any is written, and
  the last are written when all are read. Of D bytes, R are read alone, R are written alone and
  ``D - R`` move both ways at once::

      seconds = R / B_read + (D - R) / B_both + R / B_write

  In pass one R is the content of the open blocks, half of each on average. In pass two it is a
  partition, and nothing moves while the first one is sorted.

That is the disk time; a pass takes ``max(disk, cpu)``.

Benchmarks of single resources are optimistic, since a job uses disks and cores at the same time. So
the model accepts rehearsals: small sorts that were run. The ratio of their times to the model's
times is a factor for each pass; the time before and between their passes is added.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tonnage.base.records import Measurement, PredictedPhase, Prediction, RunRecord, Term
from tonnage.base.records.calibration import CalibrationSource, run_name
from tonnage.model.capacity import Capacity, Draws, cpu_per_byte, throughput

PASSES = {"pass_one": "partition", "pass_two": "sort"}
"""The passes, and the trial that measures the CPU work of each."""
DISK, CPU = "disk: read and write at once", "cpu"  # The resources that may limit a pass
CONFIDENCE = 0.9
DRAWS = 20_000
SEED = 20_141_105  # Fixed, so that the same measurements give the same draws
INTERVAL_RULE = (
    "middle 90 % of 20,000 draws; each capacity, and the slow-down of rehearsals, follows "
    "Student's t on the logarithms of its samples, with the same draw for both passes"
)


@dataclass(frozen=True)
class SortShape:
    """The size of a sort, and how the core divides its memory."""

    bytes: int
    cores: int
    open_block_bytes: int  # Pass one: all open blocks together, when full
    partition_bytes: int  # Pass two: one partition


@dataclass(frozen=True)
class Rehearsal:
    shape: SortShape
    record: RunRecord

    def seconds(self, phase: str) -> float:
        return sum(each.seconds for each in self.record.phases if each.name == phase)

    @property
    def other_seconds(self) -> float:
        """Seconds outside the two passes: sampling, opening and closing files."""
        return self.record.seconds - self.seconds("pass_one") - self.seconds("pass_two")


@dataclass(frozen=True)
class DiskMeasurements:
    """Measurements of the disks as the two passes use them; the same for a single device."""

    pass_one: Sequence[Measurement]  # Reading the input devices, writing the scratch devices
    pass_two: Sequence[Measurement]  # Reading the scratch devices, writing the output devices


def predict(
    shape: SortShape,
    disks: DiskMeasurements,
    cpu: Sequence[Measurement],
    rehearsals: Sequence[Rehearsal] = (),
    *,
    made_at: str,
) -> Prediction:
    """Predict the time of the sort, with an interval; `LookupError` if a trial is missing.

    ``disks`` need trials ``rw``, ``ro`` and ``wo``, ``cpu`` needs ``partition`` and ``sort``.
    ``rehearsals`` ran on the same machine and correct the model.
    """
    passes = [_PassModel(name, disks, cpu) for name in PASSES]
    factors = [each.factors(rehearsals) for each in passes]
    # One spread for both passes, since each has few samples of the same machine.
    pooled = Capacity(
        samples=tuple(factor / of.median for of in factors for factor in of.samples),
        measurements=(),
    )
    generator = np.random.default_rng([SEED, 0])
    beyond = pooled.draw(generator, DRAWS) if rehearsals else np.ones(DRAWS)
    other = float(np.median([each.other_seconds for each in rehearsals])) if rehearsals else 0.0
    phases, total = [], np.full(DRAWS, other)
    for each, factor in zip(passes, factors, strict=True):
        draws = each.draws(shape) * factor.median * beyond
        total = total + draws
        phases.append(each.predict(shape, factor.median, draws))
    low, high = _middle(total)
    return Prediction(
        job="sort",
        bytes=shape.bytes,
        made_at=made_at,
        seconds=other + sum(phase.seconds for phase in phases),
        low_seconds=low,
        high_seconds=high,
        confidence=CONFIDENCE,
        interval_rule=INTERVAL_RULE,
        other_seconds=other,
        phases=phases,
        calibrated=_calibrated(rehearsals),
    )


def _calibrated(rehearsals: Sequence[Rehearsal]) -> CalibrationSource | None:
    if not rehearsals:
        return None
    return CalibrationSource(
        runs=[run_name(each.record.job, each.record.began_at) for each in rehearsals],
        nodes=1,
        bytes=max(each.record.bytes for each in rehearsals),
    )


def limit_seconds(size_bytes: int, disks: DiskMeasurements) -> float:
    """The time that the disks alone need to read and write each byte twice (equation 6)."""
    passes = (disks.pass_one, disks.pass_two)
    return sum(size_bytes / throughput(measurements, "rw").median for measurements in passes)


class _PassModel:
    def __init__(self, name: str, disks: DiskMeasurements, cpu: Sequence[Measurement]) -> None:
        measurements = disks.pass_one if name == "pass_one" else disks.pass_two
        self._name = name
        self._both = throughput(measurements, "rw")
        self._read = throughput(measurements, "ro")
        self._write = throughput(measurements, "wo")
        self._work = cpu_per_byte(cpu, PASSES[name])
        self._moving = cpu_per_byte(measurements, "rw")

    def ramp_seconds(self, shape: SortShape) -> float:
        """What filling and draining the pipeline add to moving all bytes both ways at once."""
        if self._name == "pass_one":
            # Half of each open block is full on average.
            alone, waiting = min(shape.open_block_bytes // 2, shape.bytes), 0.0
        else:
            # The first partition is sorted, by one thread, before anything can be written.
            alone = min(shape.partition_bytes, shape.bytes)
            waiting = alone * self._work.median
        one_way = alone / self._read.median + alone / self._write.median
        return one_way - alone / self._both.median + waiting

    def disk_seconds(self, shape: SortShape) -> float:
        return shape.bytes / self._both.median + self.ramp_seconds(shape)

    def cpu_seconds(self, shape: SortShape) -> float:
        # The work of the stage and the copying, shared by the cores.
        return shape.bytes * (self._work.median + self._moving.median) / shape.cores

    def seconds(self, shape: SortShape) -> float:
        return max(self.disk_seconds(shape), self.cpu_seconds(shape))

    def factors(self, rehearsals: Sequence[Rehearsal]) -> Capacity:
        """The ratios of rehearsals' times to the model's; 1 if there are none."""
        samples = [each.seconds(self._name) / self.seconds(each.shape) for each in rehearsals]
        return Capacity(samples=tuple(samples) or (1.0,), measurements=())

    def draws(self, shape: SortShape) -> Draws:
        """Seconds as the capacities vary; the seed is the same for both passes."""
        generator = np.random.default_rng([SEED, 1])
        faster = self._both.draw(generator, DRAWS) / self._both.median
        per_byte = self._work.draw(generator, DRAWS) + self._moving.draw(generator, DRAWS)
        disk = self.disk_seconds(shape) / faster
        draws: Draws = np.maximum(disk, shape.bytes * per_byte / shape.cores)
        return draws

    def predict(self, shape: SortShape, factor: float, draws: Draws) -> PredictedPhase:
        low, high = _middle(draws)
        terms = [
            _term(DISK, shape.bytes, self._both, shape.bytes / self._both.median),
            Term(
                resource=CPU,
                demand=shape.bytes * (self._work.median + self._moving.median),
                capacity=float(shape.cores),
                low_capacity=float(shape.cores),
                high_capacity=float(shape.cores),
                unit="core seconds",
                seconds=self.cpu_seconds(shape),
                source="measured",
                measurements=[*self._work.measurements, *self._moving.measurements],
            ),
        ]
        return PredictedPhase(
            name=self._name,
            seconds=self.seconds(shape) * factor,
            low_seconds=low,
            high_seconds=high,
            limit=DISK if self.disk_seconds(shape) >= self.cpu_seconds(shape) else CPU,
            ramp_seconds=self.ramp_seconds(shape),
            rehearsal_factor=factor,
            terms=terms,
        )


def _term(resource: str, demand: float, capacity: Capacity, seconds: float) -> Term:
    low, high = capacity.interval(CONFIDENCE)
    return Term(
        resource=resource,
        demand=demand,
        capacity=capacity.median,
        low_capacity=low,
        high_capacity=high,
        unit="bytes",
        seconds=seconds,
        source="measured",
        measurements=list(capacity.measurements),
    )


def _middle(draws: Draws) -> tuple[float, float]:
    low, high = np.quantile(draws, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
    return float(low), float(high)
