"""What CPU a layout costs; what it carries is compared in `tonnage.model.analysis.comparisons`."""

from __future__ import annotations

import statistics
from dataclasses import dataclass

from tonnage.base.records import Measurement, Trial


@dataclass(frozen=True)
class LayoutCost:
    """Core seconds for each byte that came out."""

    own: float
    """Of the threads that measured."""
    machine: float
    """Of all that ran meanwhile, the kernel's threads and what had nothing to do with it."""


def layout_costs(measurement: Measurement) -> dict[str, LayoutCost]:
    """For each mode, the medians of what its trials cost."""
    found: dict[str, list[LayoutCost]] = {}
    for trial in measurement.trials:
        if known := _cost(trial):
            found.setdefault(trial.name, []).append(known)
    return {
        mode: LayoutCost(
            own=statistics.median(each.own for each in several),
            machine=statistics.median(each.machine for each in several),
        )
        for mode, several in found.items()
    }


def _cost(trial: Trial) -> LayoutCost | None:
    """What a trial cost; ``None`` if nothing came out of it, or nobody looked."""
    moved = trial.phase.stages[-1].bytes if trial.phase.stages else 0
    if not moved or trial.beside is None:
        return None
    own = sum(stage.cpu_seconds for stage in trial.phase.stages)
    return LayoutCost(own / moved, (own + trial.beside.foreign_cpu_seconds) / moved)
