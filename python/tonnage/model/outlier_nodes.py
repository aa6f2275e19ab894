"""Find slow or faulty machines of a cluster, with confidences, and those that cannot be judged.

A machine is compared with those of the same provider and type. The ratios of all rates to the
median of their type are judged together (`tonnage.base.stats.outliers`), so that small groups share
the knowledge of how machines vary. Groups smaller than `MIN_ALIKE` are not judged. A machine
that did not complete its measurement is faulty, unless its only fault is that others failed.

A link is judged by its rate with all others as its partners, each way. Shuffles do not count: the
slowest link sets the pace of all there, so one slow link makes all look slow.
"""

import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tonnage.base import formatting
from tonnage.base.records import ClusterMeasurement, ClusterNode
from tonnage.base.records.network_rounds import RECEIVE, SEND
from tonnage.base.stats.outliers import MIN_INSTANCES, outliers

MIN_ALIKE = 3
LEVEL = 0.05  # Share of clusters without any slow machine in which one is reported
FAULTY = "measurement failed"
FEW = f"fewer than {MIN_INSTANCES} nodes can be compared"
RESOURCES = {"ro": "local read", "wo": "local write"}
"""Disk trials, and the names of their resources in jobs."""
NETWORK = "network"


@dataclass(frozen=True)
class Suspect:
    node: str
    what: str  # The kind of trial in which it is slow, the direction of its slow link, or `FAULTY`
    ratio_to_median: float | None
    """Its rate over the median of its group; None if it did not complete its measurement."""
    confidence: float
    """One minus the share of healthy clusters in which some machine lies that far out."""


@dataclass(frozen=True)
class ScreeningResult:
    suspects: list[Suspect]  # Faulty machines first, then from the slowest on
    not_judged: dict[str, str]  # Nodes, each with the reason

    @property
    def decommission(self) -> list[str]:
        return sorted({each.node for each in self.suspects})


def screen(disks: ClusterMeasurement, network: ClusterMeasurement | None = None) -> ScreeningResult:
    """Judge a cluster's machines by measurements of their disks, and optionally of the network."""
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
        if len(ratios) < MIN_INSTANCES:
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
    """Why no machine of these types can be judged; a type of ``None`` is not known yet."""
    counts = Counter(types)
    known = {type_: count for type_, count in counts.items() if type_ is not None}
    alike = [count for count in known.values() if count >= MIN_ALIKE]
    if (sum(alike) if len(known) == len(counts) else len(types)) >= MIN_INSTANCES:
        return None
    of_types = formatting.listing(f"{count} {type_}" for type_, count in sorted(known.items()))
    return (
        f"{formatting.several(len(types), 'node')}{f' ({of_types})' if known else ''}; needs at "
        f"least {MIN_INSTANCES} nodes whose machine type has at least {MIN_ALIKE} nodes"
    )


def measured_rates(
    disks: ClusterMeasurement, network: ClusterMeasurement | None = None
) -> dict[str, dict[str, float]]:
    """The rates of each node with complete measurements, by the resources of jobs.

    The network rate is the slower direction of its link, times the share of the slowest link that
    the median node reached in the all-to-all shuffle.
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
    """Each node's rate over the median of its group; the others are added to ``not_judged``."""
    kinds: dict[tuple[str | None, str | None], dict[str, float]] = {}
    for node, rate in rates.items():
        of_kind = kinds.setdefault((rows[node].provider, rows[node].machine_type), {})
        of_kind[node] = rate
    found: dict[str, float] = {}
    for (_, machine_type), alike in kinds.items():
        middle = statistics.median(alike.values())
        if len(alike) < MIN_ALIKE or not middle:
            why = f"fewer than {MIN_ALIKE} nodes of its machine type ({machine_type or 'unknown'})"
            not_judged |= dict.fromkeys(
                alike, why if middle else "most nodes of its machine type moved no data"
            )
        else:
            found |= {node: rate / middle for node, rate in alike.items()}
    return found
