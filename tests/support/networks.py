"""A fleet's network made up of links that are known: each part of the agenda as it must go."""

from collections.abc import Iterator, Mapping

from msgspec import structs

from support.measurements import PHASE, measurement
from tonnage.base.records import ClusterMeasurement, ClusterNode, Metric, Source, Trial, TrialSpec
from tonnage.base.records.network_rounds import ALONE, RECEIVE, SEND, UNEVENLY
from tonnage.measure.net.cluster import ClusterNetSettings, NetworkTest, round_tests
from tonnage.measure.net.shuffle_analysis import analyse_shuffle

FAULTS = ("died",)
"""Why nodes are lost that are faulty; others lack what could not be done with them."""
Links = Mapping[str, tuple[float, float]]
"""What each node can send and receive."""
SETTINGS = ClusterNetSettings(
    connections=(1,), sizes=None, block_bytes=1 << 20, seconds=1.0, rounds=2, seed=1
)


def network(
    links: Links,
    settings: ClusterNetSettings = SETTINGS,
    lost: Mapping[str, str] | None = None,
    types: Mapping[str, str] | None = None,
) -> ClusterMeasurement:
    """The measurement; of nodes that are lost, by why, there is what they sent as pairs alone."""
    names = sorted(links)
    trials: dict[str, list[Trial]] = {name: [] for name in names}
    for number in range(settings.rounds):
        order = [*names[number % len(names) :], *names[: number % len(names)]]
        for each in round_tests(number, order, settings):
            for node, made in _trials(each, links):
                trials[node].append(made)
    rows = []
    for name in names:
        why = (lost or {}).get(name)
        some = [each for each in trials[name] if why is None or each.name == "send, pair"]
        whole = structs.replace(measurement(name, {}), trials=some)
        kind = (types or {}).get(name, "m")
        rows.append(
            ClusterNode(
                node=name,
                machine_type=kind,
                ok=why is None,
                why=why,
                faulty=why in FAULTS,
                measurement=whole,
            )
        )
    return analyse_shuffle(
        ClusterMeasurement(id="n", kind="net", began_at="now", command=[], settings={}, nodes=rows)
    )


def _trials(wanted: NetworkTest, links: Links) -> Iterator[tuple[str, Trial]]:
    for place, (node, ways) in enumerate(zip(wanted.nodes, wanted.ways, strict=True)):
        for way in ways:
            yield node, trial(wanted, place, way, links)


def _rate(wanted: NetworkTest, place: int, way: str, links: Links) -> float:
    """A link is full where each sends as much as others take; else the slowest's share is all's."""
    together = wanted.spec
    own = links[wanted.nodes[place]][(SEND, RECEIVE).index(way)]
    if wanted.pattern in (ALONE, UNEVENLY):
        return own
    sends_to = zip(wanted.nodes, together.sends_to, strict=True)
    sending = [links[node][0] / len(to) for node, to in sends_to if to]
    froms = {place: together.peers(place, RECEIVE) for place in range(together.endpoints)}
    receiving = [links[wanted.nodes[to]][1] / count for to, count in froms.items() if count]
    return min(*sending, *receiving) * together.peers(place, way)


def trial(wanted: NetworkTest, place: int, way: str, links: Links) -> Trial:
    """What the node in this place keeps of one way of its part."""
    rate = _rate(wanted, place, way, links)
    details = {
        "attempt": f"{wanted.key} {wanted.ways}",
        "pattern": wanted.pattern,
        "node_names": list(wanted.nodes),
        "connections_per_pair": wanted.spec.connections,
    }
    return Trial(
        name=f"{way}, {wanted.pattern}",
        bytes_per_second=rate,
        cpu_seconds_per_byte=0.0,
        warm_up_seconds=0.0,
        rates=[rate],
        phase=PHASE,
        step=TrialSpec(operation=way, outstanding=1, round=wanted.spec.number, suite="net"),
        reading=Metric(source=Source(tool="test"), operation=way, details=details),
    )
