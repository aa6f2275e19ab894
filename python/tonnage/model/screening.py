"""Which machines of a fleet are slow or faulty, how sure that is, and which nobody can judge.

A machine is held against those that are alike: of the same provider and type. What it carries, over
the median of its kind, is judged with all others' (`tonnage.statistics.instances`), so that small
kinds share what is known of how machines vary. A kind of fewer than `LEAST_ALIKE` has no usual:
its machines are named as not judged. Who did not measure is faulty, whatever the reason.
"""

from __future__ import annotations

import statistics
from dataclasses import dataclass

from tonnage.artifacts import FleetMeasurement, FleetNode
from tonnage.statistics.instances import LEAST_INSTANCES, outliers

LEAST_ALIKE = 3
LEVEL = 0.05
"""Fleets without any slow machine in which one is called so. Who is named is looked at again."""
FAULTY = "does not measure"


@dataclass(frozen=True)
class Suspect:
    """A machine that is better left out."""

    node: str
    what: str
    """The kind of trial in which it is slow, or `FAULTY`."""
    ratio_to_median: float | None
    """What it carries over the median of its kind; None if it did not measure."""
    confidence: float
    """One less the share of healthy fleets in which some machine lies that far out."""


@dataclass(frozen=True)
class Screened:
    """What a screening found."""

    suspects: list[Suspect]
    """Those that did not measure, then from the slowest on."""
    not_judged: dict[str, str]
    """Nodes with why."""


def screen(measured: FleetMeasurement) -> Screened:
    """What a fleet's measurement says of its machines."""
    suspects = [
        Suspect(each.node, FAULTY, ratio_to_median=None, confidence=1.0)
        for each in measured.missing
    ]
    not_judged: dict[str, str] = {}
    slow = []
    for name in sorted({name for node in measured.nodes for name in _rates(node)}):
        ratios = _ratios(measured, name, not_judged)
        if len(ratios) < LEAST_INSTANCES:
            few = f"fewer than {LEAST_INSTANCES} machines can be compared"
            not_judged |= dict.fromkeys(ratios, few)
            continue
        slow += [
            Suspect(each.name, name, each.value, confidence=1 - each.false_alarm)
            for each in outliers(ratios, level=LEVEL)
            if each.worse
        ]
    slow.sort(key=lambda each: (each.ratio_to_median or 0.0, each.node))
    return Screened(suspects + slow, not_judged)


def _ratios(measured: FleetMeasurement, name: str, not_judged: dict[str, str]) -> dict[str, float]:
    """What each node carries over the median of its kind; who has no kind is told."""
    kinds: dict[tuple[str | None, str | None], dict[str, float]] = {}
    for node in measured.nodes:
        if node.ok and name in (rates := _rates(node)):
            kinds.setdefault((node.provider, node.machine_type), {})[node.node] = rates[name]
    found: dict[str, float] = {}
    for (_, machine_type), rates in kinds.items():
        middle = statistics.median(rates.values())
        if len(rates) < LEAST_ALIKE or not middle:
            why = f"fewer than {LEAST_ALIKE} machines are alike ({machine_type or 'no type told'})"
            not_judged |= dict.fromkeys(rates, why if middle else "its kind moved nothing")
        else:
            found |= {node: rate / middle for node, rate in rates.items()}
    return found


def _rates(node: FleetNode) -> dict[str, float]:
    """A node's median of each kind of trial."""
    kinds: dict[str, list[float]] = {}
    for trial in node.measurement.trials if node.measurement else []:
        kinds.setdefault(trial.name, []).append(trial.bytes_per_second)
    return {name: statistics.median(rates) for name, rates in kinds.items()}
