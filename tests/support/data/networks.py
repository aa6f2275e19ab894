"""A cluster's network with known links: the expected result of each network test."""

from collections.abc import Iterator, Mapping

from msgspec import structs

from support.data.measurements import PHASE, measurement
from tonnage.base.records import ClusterMeasurement, ClusterNode, Metric, Source, Trial, TrialSpec
from tonnage.base.records.network_rounds import ALONE, RECEIVE, SEND, UNEVENLY
from tonnage.measure.net.cluster import ClusterNetSettings, NetworkTest, round_tests
from tonnage.measure.net.shuffle_analysis import analyse_shuffle

FAULTS = ("died",)
"""Reasons of loss that count as faulty nodes."""
Links = Mapping[str, tuple[float, float]]
"""The rates at which each node can send and receive."""
SETTINGS = ClusterNetSettings(
    connections=(1,), sizes=None, block_bytes=1 << 20, seconds=1.0, rounds=2, seed=1
)


def network(
    links: Links,
    settings: ClusterNetSettings = SETTINGS,
    lost: Mapping[str, str] | None = None,
    types: Mapping[str, str] | None = None,
) -> ClusterMeasurement:
    """The measurement; lost nodes, with their reasons, have only what they sent in pairs."""
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
        node_measurement = structs.replace(measurement(name, {}), kind="net", trials=some)
        kind = (types or {}).get(name, "m")
        rows.append(
            ClusterNode(
                node=name,
                machine_type=kind,
                ok=why is None,
                why=why,
                faulty=why in FAULTS,
                measurement=node_measurement,
            )
        )
    return analyse_shuffle(
        ClusterMeasurement(id="n", kind="net", began_at="now", command=[], settings={}, nodes=rows)
    )


def _trials(test: NetworkTest, links: Links) -> Iterator[tuple[str, Trial]]:
    for place, (node, ways) in enumerate(zip(test.nodes, test.ways, strict=True)):
        for way in ways:
            yield node, trial(test, place, way, links)


def _rate(test: NetworkTest, place: int, way: str, links: Links) -> float:
    """Uneven tests fill each link; otherwise all nodes move the slowest one's share."""
    spec = test.spec
    own = links[test.nodes[place]][(SEND, RECEIVE).index(way)]
    if test.pattern in (ALONE, UNEVENLY):
        return own
    sends_to = zip(test.nodes, spec.sends_to, strict=True)
    sending = [links[node][0] / len(to) for node, to in sends_to if to]
    froms = {place: spec.peers(place, RECEIVE) for place in range(spec.endpoints)}
    receiving = [links[test.nodes[to]][1] / count for to, count in froms.items() if count]
    return min(*sending, *receiving) * spec.peers(place, way)


def trial(test: NetworkTest, place: int, way: str, links: Links) -> Trial:
    """The trial of the node in this place, in one direction."""
    rate = _rate(test, place, way, links)
    details = {
        "attempt": f"{test.key} {test.ways}",
        "pattern": test.pattern,
        "node_names": list(test.nodes),
        "endpoints": test.spec.endpoints,
        "connections_per_pair": test.spec.connections,
    }
    return Trial(
        name=f"{way}, {test.pattern}",
        bytes_per_second=rate,
        cpu_seconds_per_byte=0.0,
        warm_up_seconds=0.0,
        rates=[rate],
        phase=PHASE,
        step=TrialSpec(operation=way, outstanding=1, round=test.spec.number, suite="net"),
        reading=Metric(source=Source(tool="test"), operation=way, details=details),
    )
