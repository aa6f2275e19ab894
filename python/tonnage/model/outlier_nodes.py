"""Which machines of a fleet are slow or faulty, how sure that is, and which nobody can judge.

A machine is held against those that are alike: of the same provider and type. What it carries, over
the median of its kind, is judged with all others' (`tonnage.base.stats.outliers`), so that small
kinds share what is known of how machines vary. A kind of fewer than `LEAST_ALIKE` has no usual:
its machines are named as not judged. Who did not measure is faulty, whatever the reason, unless it
lacks what others could not do with it.

A link is judged by what it carries with all others as its partners, each way, and never by a
shuffle: there all get as much as the slowest takes, so one slow link makes all look so.
"""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tonnage.base import formatting
from tonnage.base.records import ClusterMeasurement, ClusterNode
from tonnage.base.records.network_rounds import RECEIVE, SEND
from tonnage.base.stats.outliers import LEAST_INSTANCES, outliers

LEAST_ALIKE = 3
LEVEL = 0.05
"""Fleets without any slow machine in which one is called so. Who is named is looked at again."""
FAULTY = "does not measure"
FEW = f"fewer than {LEAST_INSTANCES} machines can be compared"
RESOURCES = {"ro": "local read", "wo": "local write"}
"""Trials of disks, as jobs name what is carried."""
NETWORK = "network"


@dataclass(frozen=True)
class Suspect:
    """A machine that is better left out."""

    node: str
    what: str
    """The kind of trial in which it is slow, which way its link is, or `FAULTY`."""
    ratio_to_median: float | None
    """What it carries over the median of its kind; None if it did not measure."""
    confidence: float
    """One less the share of healthy fleets in which some machine lies that far out."""


@dataclass(frozen=True)
class ScreeningResult:
    """What a screening found."""

    suspects: list[Suspect]
    """Those that did not measure, then from the slowest on."""
    not_judged: dict[str, str]
    """Nodes with why."""

    @property
    def decommission(self) -> list[str]:
        """The nodes that are suspect, each once."""
        return sorted({each.node for each in self.suspects})


def screen(disks: ClusterMeasurement, network: ClusterMeasurement | None = None) -> ScreeningResult:
    """What a fleet's measurements say of its machines.

    Args:
        disks: Of their disks.
        network: Of the network between those whose disks were measured; ``None``: there was none.
    """
    missing = disks.missing + (network.missing if network else [])
    suspects = [
        Suspect(node, FAULTY, ratio_to_median=None, confidence=1.0)
        for node in dict.fromkeys(each.node for each in missing if each.faulty)
    ]
    not_judged = {each.node: each.why or "" for each in missing if not each.faulty}
    slow = []
    rows = {row.node: row for row in disks.nodes}
    for name, rates in sorted({**_of_disks(disks), **_of_links(network)}.items()):
        ratios = _ratios(rows, rates, not_judged)
        if len(ratios) < LEAST_INSTANCES:
            not_judged |= dict.fromkeys(ratios, FEW)
            continue
        slow += [
            Suspect(each.name, name, each.value, confidence=1 - each.false_alarm)
            for each in outliers(ratios, level=LEVEL)
            if each.worse
        ]
    slow.sort(key=lambda each: (each.ratio_to_median or 0.0, each.node))
    return ScreeningResult(suspects + slow, not_judged)


def why_too_few(types: Sequence[str | None]) -> str | None:
    """What it takes to judge any machine of a fleet, if it is known that nobody can be judged.

    Args:
        types: Each machine's; ``None`` where it is not known before it measures.
    """
    counts = Counter(types)
    known = {type_: count for type_, count in counts.items() if type_ is not None}
    alike = [count for count in known.values() if count >= LEAST_ALIKE]
    if (sum(alike) if len(known) == len(counts) else len(types)) >= LEAST_INSTANCES:
        return None
    of_types = formatting.listing(f"{count} {type_}" for type_, count in sorted(known.items()))
    return (
        f"{formatting.several(len(types), 'machine')}{f' ({of_types})' if known else ''}, and to judge "
        f"any takes {LEAST_INSTANCES}, of types of which there are {LEAST_ALIKE} at least"
    )


def measured_rates(
    disks: ClusterMeasurement, network: ClusterMeasurement | None = None
) -> dict[str, dict[str, float]]:
    """Of each node that measured all, what it carries, by the resources that jobs name.

    Of the network that is its link's slower way, times the share of the slowest link that was had
    when all sent to all. In the end all have the same there, so that is the median node's.
    """
    found: dict[str, dict[str, float]] = {}
    for name, rates in _of_disks(disks).items():
        if name in RESOURCES:
            for node, rate in rates.items():
                found.setdefault(node, {})[RESOURCES[name]] = rate
    if network is None:
        return found
    left_out = {row.node for row in network.missing}
    found = {node: rates for node, rates in found.items() if node not in left_out}
    links = {each.node: each.slower_direction for each in network.links if each.node in found}
    together = [each for each in network.sizes if {e.node for e in each.per_node} == links.keys()]
    share = 1.0
    if together and (slowest := min(links.values())):
        had = statistics.median(each.slower_direction for each in together[-1].per_node)
        share = min(had / slowest, 1.0)
    for node, rate in links.items():
        found[node][NETWORK] = rate * share
    return found


def _of_disks(disks: ClusterMeasurement) -> dict[str, dict[str, float]]:
    """Each node's median of each kind of trial."""
    trials: dict[str, dict[str, list[float]]] = {}
    for node in disks.nodes:
        for trial in node.measurement.trials if node.ok and node.measurement else []:
            of_kind = trials.setdefault(trial.name, {})
            of_kind.setdefault(node.node, []).append(trial.bytes_per_second)
    return {
        name: {node: statistics.median(rates) for node, rates in of_kind.items()}
        for name, of_kind in trials.items()
    }


def _of_links(network: ClusterMeasurement | None) -> dict[str, dict[str, float]]:
    """What each node's link carries each way."""
    found: dict[str, dict[str, float]] = {SEND: {}, RECEIVE: {}}
    well = {row.node for row in network.nodes if row.ok} if network else set()
    for link in network.links if network else []:
        ways = {SEND: link.send_bytes_per_second, RECEIVE: link.receive_bytes_per_second}
        for way, rate in ways.items():
            if link.node in well and rate is not None:
                found[way][link.node] = rate
    return {way: rates for way, rates in found.items() if rates}


def _ratios(
    rows: Mapping[str, ClusterNode], rates: Mapping[str, float], not_judged: dict[str, str]
) -> dict[str, float]:
    """What each node carries over the median of its kind; who has no kind is told."""
    kinds: dict[tuple[str | None, str | None], dict[str, float]] = {}
    for node, rate in rates.items():
        of_kind = kinds.setdefault((rows[node].provider, rows[node].machine_type), {})
        of_kind[node] = rate
    found: dict[str, float] = {}
    for (_, machine_type), alike in kinds.items():
        middle = statistics.median(alike.values())
        if len(alike) < LEAST_ALIKE or not middle:
            why = f"fewer than {LEAST_ALIKE} machines are alike ({machine_type or 'no type told'})"
            not_judged |= dict.fromkeys(alike, why if middle else "its kind moved nothing")
        else:
            found |= {node: rate / middle for node, rate in alike.items()}
    return found
