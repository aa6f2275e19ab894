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

Demands and capacities meet in ``max(disk, cpu)`` as everywhere in the design.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tonnage.artifacts import Measurement, PredictedPhase, Prediction, Term
from tonnage.model.capacity import Capacity, Draws, cpu_per_byte, rate

CONFIDENCE = 0.9
DRAWS = 20_000
SEED = 20_141_105
"""Draws are the same for the same measurements."""
MODEL_SPREAD = 0.015
"""Standard deviation of what the model leaves out: seals, flushes, threads starting."""
INTERVAL_RULE = (
    "middle 90 % of 20,000 draws; each capacity by Student's t on the logarithms of its trials' "
    "rates, the same draw for both passes; 1.5 % for what the model leaves out"
)


@dataclass(frozen=True)
class Shape:
    """The sort that is meant: its size and how the core divides its memory."""

    bytes: int
    cores: int
    open_block_bytes: int
    """Pass one: all open blocks together, when full."""
    partition_bytes: int
    """Pass two: one partition."""


@dataclass(frozen=True)
class Disks:
    """Measurements of the disks as the two passes use them; one and the same for one device."""

    pass_one: Sequence[Measurement]
    """Reading the input's devices, writing the scratch devices."""
    pass_two: Sequence[Measurement]
    """Reading the scratch devices, writing the output's devices."""


def predict(shape: Shape, disks: Disks, cpu: Sequence[Measurement], *, made_at: str) -> Prediction:
    """How long the sort will take, with an interval.

    Args:
        shape: The sort.
        disks: Measurements with trials ``rw``, ``ro`` and ``wo``.
        cpu: Measurements with trials ``partition`` and ``sort``.
        made_at: Now, ISO 8601.

    Raises:
        LookupError: A trial is missing.
    """
    # Half of each open block is full on average, and each was filled while nothing was written.
    held_back = min(shape.open_block_bytes // 2, shape.bytes)
    partition = min(shape.partition_bytes, shape.bytes)
    passes = [
        _Pass("pass_one", "partition", disks.pass_one, held_back),
        _Pass("pass_two", "sort", disks.pass_two, partition),
    ]
    drawn = [_draw(shape, each, cpu) for each in passes]
    total: Draws = np.sum([seconds for _, seconds in drawn], axis=0)
    low, high = _middle(total)
    return Prediction(
        job="sort",
        bytes=shape.bytes,
        made_at=made_at,
        seconds=sum(phase.seconds for phase, _ in drawn),
        low_seconds=low,
        high_seconds=high,
        confidence=CONFIDENCE,
        interval_rule=INTERVAL_RULE,
        phases=[phase for phase, _ in drawn],
    )


def limit_seconds(size_bytes: int, disks: Disks) -> float:
    """What the disks alone need: each byte read and written twice, nothing else (equation 6)."""
    passes = (disks.pass_one, disks.pass_two)
    return sum(size_bytes / rate(measurements, "rw").median for measurements in passes)


@dataclass(frozen=True)
class _Pass:
    name: str
    work: str
    measurements: Sequence[Measurement]
    alone_bytes: int


def _draw(shape: Shape, each: _Pass, cpu: Sequence[Measurement]) -> tuple[PredictedPhase, Draws]:
    """A pass's prediction and the draws behind its interval."""
    size, alone = shape.bytes, each.alone_bytes
    both = rate(each.measurements, "rw")
    read = rate(each.measurements, "ro")
    write = rate(each.measurements, "wo")
    work = cpu_per_byte(cpu, each.work)
    moving = cpu_per_byte(each.measurements, "rw")
    # In pass two the first partition is sorted, by one thread, before anything can be written.
    first_sort = alone * work.median if each.work == "sort" else 0.0

    ramp = alone / read.median + alone / write.median - alone / both.median + first_sort
    disk_seconds = size / both.median
    cpu_seconds = size * (work.median + moving.median) / shape.cores
    seconds = max(disk_seconds + ramp, cpu_seconds)

    generator = np.random.default_rng(SEED)
    slower = both.draw(generator, DRAWS) / both.median
    disk_draws = (disk_seconds + ramp) / slower
    per_byte = work.draw(generator, DRAWS) + moving.draw(generator, DRAWS)
    model = np.exp(MODEL_SPREAD * generator.standard_normal(DRAWS))
    draws: Draws = np.maximum(disk_draws, size * per_byte / shape.cores) * model
    low, high = _middle(draws)
    terms = [
        _term("disk: read and write at once", size, both, disk_seconds, "bytes"),
        _cpu_term(size, shape.cores, work, moving, cpu_seconds),
    ]
    limit = max(terms, key=lambda term: term.seconds).resource
    phase = PredictedPhase(
        name=each.name,
        seconds=seconds,
        low_seconds=low,
        high_seconds=high,
        limit=limit,
        ramp_seconds=ramp,
        terms=terms,
    )
    return phase, draws


def _term(resource: str, demand: float, capacity: Capacity, seconds: float, unit: str) -> Term:
    low, high = capacity.interval(CONFIDENCE)
    return Term(
        resource=resource,
        demand=demand,
        capacity=capacity.median,
        low_capacity=low,
        high_capacity=high,
        unit=unit,
        seconds=seconds,
        source="measured",
        measurements=list(capacity.measurements),
    )


def _cpu_term(size: int, cores: int, work: Capacity, moving: Capacity, seconds: float) -> Term:
    return Term(
        resource="cpu",
        demand=size * (work.median + moving.median),
        capacity=float(cores),
        low_capacity=float(cores),
        high_capacity=float(cores),
        unit="core seconds",
        seconds=seconds,
        source="measured",
        measurements=[*work.measurements, *moving.measurements],
    )


def _middle(draws: Draws) -> tuple[float, float]:
    low, high = np.quantile(draws, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
    return float(low), float(high)
