"""The time of a two-pass sort on one machine, from what its disks and cores were seen to carry.

The documents' 2-IO model (Themis on EC2, equations 2, 4 and 6, with the network taken as infinite)
says ``T = D / B + D / B`` with B the read/write bandwidth of the storage. Two things are added
here, since what is to be predicted is a run and not a limit:

* **CPU is a resource of each phase** (the document leaves compute-bound jobs out, section 3.3.4):
  its demand is the CPU seconds a byte costs in the stages' own benchmarks.
* **A pipeline fills and drains.** The first bytes of a phase are read before any is written, and
  the last are written when all are read. Of D bytes, R are read alone, R are written alone and
  ``D - R`` move both ways at once::

      seconds = R / B_read + (D - R) / B_both + R / B_write

  In pass one R is what the open blocks hold, half of each on average; in pass two it is a
  partition, and while the first is sorted nothing moves at all.

That is the disk's time; with the CPU's it meets in ``max(disk, cpu)`` as everywhere in the design.

Benchmarks of single resources are optimistic: in the job, disks and cores meet. So the model can be
given rehearsals, small sorts that were really run: what they took beyond what the model says of
them is a factor for each pass, and what passed before and between the passes is added.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tonnage.base.records import Measurement, PredictedPhase, Prediction, RunRecord, Term
from tonnage.base.records.calibration import CalibrationSource, run_name
from tonnage.model.capacity import Capacity, Draws, cpu_per_byte, throughput

PASSES = {"pass_one": "partition", "pass_two": "sort"}
"""The passes, and the trial that measures each one's work."""
DISK, CPU = "disk: read and write at once", "cpu"
"""The resources that a pass is limited by."""
CONFIDENCE = 0.9
DRAWS = 20_000
SEED = 20_141_105
"""Draws are the same for the same measurements."""
INTERVAL_RULE = (
    "middle 90 % of 20,000 draws; each capacity, and the factor by which rehearsals were "
    "slower, by Student's t on the logarithms of its samples, the same draw for both passes"
)


@dataclass(frozen=True)
class SortShape:
    """The sort that is meant: its size and how the core divides its memory."""

    bytes: int
    cores: int
    open_block_bytes: int
    """Pass one: all open blocks together, when full."""
    partition_bytes: int
    """Pass two: one partition."""


@dataclass(frozen=True)
class Rehearsal:
    """A small sort that was run: its shape, and what it took."""

    shape: SortShape
    record: RunRecord

    def seconds(self, phase: str) -> float:
        """Seconds of the phases of this name."""
        return sum(each.seconds for each in self.record.phases if each.name == phase)

    @property
    def other_seconds(self) -> float:
        """Seconds outside the two passes: the sample, opening and closing."""
        return self.record.seconds - self.seconds("pass_one") - self.seconds("pass_two")


@dataclass(frozen=True)
class DiskMeasurements:
    """Measurements of the disks as the two passes use them; one and the same for one device."""

    pass_one: Sequence[Measurement]
    """Reading the input's devices, writing the scratch devices."""
    pass_two: Sequence[Measurement]
    """Reading the scratch devices, writing the output's devices."""


def predict(
    shape: SortShape,
    disks: DiskMeasurements,
    cpu: Sequence[Measurement],
    rehearsals: Sequence[Rehearsal] = (),
    *,
    made_at: str,
) -> Prediction:
    """How long the sort will take, with an interval.

    Args:
        shape: The sort.
        disks: Measurements with trials ``rw``, ``ro`` and ``wo``.
        cpu: Measurements with trials ``partition`` and ``sort``.
        rehearsals: Small sorts on the same machine; without any the model is not corrected.
        made_at: Now, ISO 8601.

    Raises:
        LookupError: A trial is missing.
    """
    passes = [_PassModel(name, disks, cpu) for name in PASSES]
    factors = [each.factors(rehearsals) for each in passes]
    # One spread for both passes: it is the same machine, and each pass has few samples.
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
        phases.append(each.predicted(shape, factor.median, draws))
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
    """What the disks alone need: each byte read and written twice, nothing else (equation 6)."""
    passes = (disks.pass_one, disks.pass_two)
    return sum(size_bytes / throughput(measurements, "rw").median for measurements in passes)


class _PassModel:
    """One pass: what it demands of disks and cores, and what they carry."""

    def __init__(self, name: str, disks: DiskMeasurements, cpu: Sequence[Measurement]) -> None:
        measurements = disks.pass_one if name == "pass_one" else disks.pass_two
        self._name = name
        self._both = throughput(measurements, "rw")
        self._read = throughput(measurements, "ro")
        self._write = throughput(measurements, "wo")
        self._work = cpu_per_byte(cpu, PASSES[name])
        self._moving = cpu_per_byte(measurements, "rw")

    def ramp_seconds(self, shape: SortShape) -> float:
        """What filling and draining add to moving everything both ways at once."""
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
        """All bytes both ways at once, and what filling and draining add."""
        return shape.bytes / self._both.median + self.ramp_seconds(shape)

    def cpu_seconds(self, shape: SortShape) -> float:
        """The stage's work and the moving, shared by the cores."""
        return shape.bytes * (self._work.median + self._moving.median) / shape.cores

    def seconds(self, shape: SortShape) -> float:
        """The slower of disks and cores."""
        return max(self.disk_seconds(shape), self.cpu_seconds(shape))

    def factors(self, rehearsals: Sequence[Rehearsal]) -> Capacity:
        """By how much rehearsals took longer than the model says; one where there are none."""
        samples = [each.seconds(self._name) / self.seconds(each.shape) for each in rehearsals]
        return Capacity(samples=tuple(samples) or (1.0,), measurements=())

    def draws(self, shape: SortShape) -> Draws:
        """Seconds as the capacities vary; the same seed draws the same moods for every pass."""
        generator = np.random.default_rng([SEED, 1])
        faster = self._both.draw(generator, DRAWS) / self._both.median
        per_byte = self._work.draw(generator, DRAWS) + self._moving.draw(generator, DRAWS)
        disk = self.disk_seconds(shape) / faster
        draws: Draws = np.maximum(disk, shape.bytes * per_byte / shape.cores)
        return draws

    def predicted(self, shape: SortShape, factor: float, draws: Draws) -> PredictedPhase:
        """The record of this pass's prediction."""
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
