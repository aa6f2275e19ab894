"""The machines that take part in a study: of offers with a price, at least two of a type."""

import itertools
from collections import Counter
from collections.abc import Sequence

from tonnage import catalog
from tonnage.base import core, formatting
from tonnage.base.records.cluster_study import SurveyedMachine
from tonnage.base.records.environment import MACHINE_TYPE, PROVIDER
from tonnage.cluster.ray_adapter import TYPE_SEPARATOR, Machine, connect
from tonnage.run.sort.input_generator import data_generator
from tonnage.study.cluster.commands import say
from tonnage.study.cluster.settings import ClusterStudySettings

REHEARSING = 2
"""Machines of a rehearsal: the fewest with a network between them."""
BYTES_A_MACHINE = 1_000_000_000
"""How much is sorted for each machine by default."""
MIN_SHARE = 1_000_000
"""What a trial of disks takes at least of a machine's share of the job."""


def survey(settings: ClusterStudySettings) -> tuple[list[SurveyedMachine], int]:
    """The machines with their free space, and how much they are to sort.

    Raises:
        UsageError: A machine has no labels or no space, or there are no two of a type.
    """
    with connect(settings.cluster) as cluster:
        kinds = _offers_of(cluster.machines, settings)
        _refuse_few(settings, kinds)
        count = max(Counter(kinds.values()).values())
        with data_generator(
            cluster, [each for each in cluster.machines if each.name in kinds]
        ) as generator:
            free = generator.space([str(path) for path in settings.directories])
    size = settings.size_bytes or BYTES_A_MACHINE * count
    machines = [
        SurveyedMachine(node=node, provider=offer[0], type=offer[1], free_bytes=free[node])
        for node, offer in sorted(kinds.items())
    ]
    _refuse_small(size, count)
    counts = Counter(each.type for each in machines)
    for each in machines:
        if lacks := missing_space(settings, each, size // counts[each.type]):
            raise core.UsageError(f"{lacks}; free some space, or use less data")
    for (provider, name), number in sorted(Counter(kinds.values()).items()):
        say(f"{formatting.several(number, 'machine')}: {provider}/{name}")
    return machines, size


def missing_space(settings: ClusterStudySettings, machine: SurveyedMachine, share: int) -> str:
    """Where a machine has too little space for its share of the job, in words; empty if nowhere."""
    data, scratch = ([str(path) for path in paths] for paths in (settings.data, settings.scratch))
    copies = 2 if settings.durability == "replicated" else 1
    for directory, free in machine.free_bytes.items():
        needed = (1 + copies) * share // len(data) if directory in data else 0
        needed += share // len(scratch) if directory in scratch else 0
        if free < needed:
            return (
                f"{machine.node} has {formatting.size(free)} free in {directory}, but needs "
                f"{formatting.size(needed)}"
            )
    return ""


def _offers_of(
    machines: Sequence[Machine], settings: ClusterStudySettings
) -> dict[str, tuple[str, str]]:
    """Provider and type of each machine: its labels must name them, a catalog must have them."""
    try:
        catalogs = list(map(catalog.load_catalog, settings.catalogs)) or catalog.newest_catalogs()
    except catalog.CatalogError as why:
        raise core.UsageError(str(why), setting="catalog") from why
    found = {}
    for machine in machines:
        kind, provider = machine.labels.get(MACHINE_TYPE), machine.labels.get(PROVIDER)
        if kind is None or provider is None:
            raise core.UsageError(
                f"{settings.cluster}: {machine.name} has no labels for its provider and type; "
                f"start Ray there with --labels {PROVIDER}=NAME,{MACHINE_TYPE}=TYPE, or study one "
                f"type: TYPE{TYPE_SEPARATOR}{settings.cluster.rpartition(TYPE_SEPARATOR)[2]}",
                setting="cluster",
            )
        try:
            offer = catalog.find_offer(catalogs, f"{provider}/{kind}")[1]
        except catalog.CatalogError as why:
            raise core.UsageError(f"{machine.name}: {why}", setting="catalog") from why
        found[machine.name] = (offer.provider, offer.type)
    return found


def _refuse_few(settings: ClusterStudySettings, kinds: dict[str, tuple[str, str]]) -> None:
    """Leaves out types with one machine; refused if nothing is left."""
    for (one, kind), (other, same) in itertools.combinations(sorted({*kinds.values()}), 2):
        if kind == same:
            raise core.UsageError(
                f"{settings.cluster}: {one} and {other} both have a {kind}; study one at a time",
                setting="cluster",
            )
    counts = Counter(kinds.values())
    for offer in [offer for offer, count in counts.items() if count < REHEARSING]:
        say(f"Left out: {'/'.join(offer)}, of which there is one: a study needs two")
        for node in [node for node, of in kinds.items() if of == offer]:
            del kinds[node]
    if not kinds:
        raise core.UsageError(
            f"{settings.cluster}: a cluster study needs two machines of the same type; add "
            "machines, or study one machine without a cluster",
            setting="cluster",
        )


def _refuse_small(size: int, nodes: int) -> None:
    if size // nodes < MIN_SHARE:
        raise core.UsageError(
            f"each node would sort only {formatting.size(size // nodes)}; use at least "
            f"{formatting.size(nodes * MIN_SHARE)}",
            setting="data",
        )
