"""Layouts of the same devices compared: what each carries, and what CPU that costs.

With more of it, and with intervals, `tonnage.model.analysis` compares them; this is what can be
said of one command's measurements in a line each.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from tonnage.artifacts import Measurement, Trial

REFERENCE = "single"
"""The layout that the others are compared with."""


@dataclass(frozen=True)
class Cost:
    """Core seconds for each byte that came out."""

    own: float
    """Of the threads that measured."""
    machine: float
    """Of all that ran meanwhile, the kernel's threads and what had nothing to do with it."""


def ratios(measurements: Sequence[Measurement]) -> dict[str, dict[str, float]]:
    """Of each layout, for each mode, its median rate over that of the `REFERENCE`; if there is one.

    Args:
        measurements: One of each layout, which is in its settings.
    """
    rates = {
        str(each.settings["layout"]): {
            figure.name: figure.median_bytes_per_second for figure in each.figures
        }
        for each in measurements
    }
    reference = rates.get(REFERENCE, {})
    return {
        layout: {mode: rate / reference[mode] for mode, rate in of.items() if reference.get(mode)}
        for layout, of in rates.items()
    }


def costs(measurement: Measurement) -> dict[str, Cost]:
    """For each mode, the medians of what its trials cost."""
    found: dict[str, list[Cost]] = {}
    for trial in measurement.trials:
        if known := _cost(trial):
            found.setdefault(trial.name, []).append(known)
    return {
        mode: Cost(
            own=statistics.median(each.own for each in several),
            machine=statistics.median(each.machine for each in several),
        )
        for mode, several in found.items()
    }


def _cost(trial: Trial) -> Cost | None:
    """What a trial cost; ``None`` if nothing came out of it, or nobody looked."""
    moved = trial.phase.stages[-1].bytes if trial.phase.stages else 0
    if not moved or trial.beside is None:
        return None
    own = sum(stage.cpu_seconds for stage in trial.phase.stages)
    return Cost(own / moved, (own + trial.beside.foreign_cpu_seconds) / moved)
