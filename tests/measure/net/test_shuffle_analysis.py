"""The network between machines: requests of a round, and the figures computed from it."""

import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.data.copies import replace
from support.data.measurements import ENVIRONMENT
from support.data.networks import SETTINGS, Links, network, trial
from tonnage.base.records import ClusterMeasurement, ClusterNode, Measurement, Trial
from tonnage.base.records.network_rounds import (
    ALL_TO_ALL,
    ALONE,
    BOTH_WAYS,
    PAIR,
    RECEIVE,
    SEND,
    UNEVENLY,
)
from tonnage.cli.output.cluster_measurement import document, network_lines
from tonnage.cluster.ray_adapter import Machine
from tonnage.cluster.worker_handle import WorkerHandle
from tonnage.measure.cluster.driver import MeasuringNode, TrialDone
from tonnage.measure.cluster.measure_worker import RoundResult
from tonnage.measure.net.cluster import (
    ATTEMPTS,
    MAX_ALONE,
    MAX_ALONE_BRIEFLY,
    NetworkTest,
    _ShuffleRun,
    round_tests,
)
from tonnage.measure.net.cluster_worker import RoundPart
from tonnage.measure.net.shuffle_analysis import FULL_DUPLEX, analyse_shuffle
from tonnage.model.analysis.analyse import analyse

BRIEF = replace(SETTINGS, brief=True)
RATES = st.floats(1e6, 1e9)
NODES = st.integers(2, 3 * MAX_ALONE)


@st.composite
def links(draw: st.DrawFn, least: int = 2, most: int = 7) -> Links:
    """The rates that each of a few nodes can send and receive."""
    both = draw(st.lists(st.tuples(RATES, RATES), min_size=least, max_size=most))
    return {f"n{number}": each for number, each in enumerate(both)}


def wanted(nodes: int, **settings: object) -> list[NetworkTest]:
    """The tests of a round of nodes, which are named by numbers."""
    changed = replace(SETTINGS, **settings)  # type: ignore[arg-type]
    return list(round_tests(0, [str(number) for number in range(nodes)], changed))


def of(pattern: str, some: list[NetworkTest]) -> list[NetworkTest]:
    """The tests with a pattern."""
    return [each for each in some if each.pattern.startswith(pattern)]


@given(nodes=NODES, brief=st.booleans())
@settings(derandomize=True)
def test_all_tests_of_a_round_are_possible_and_distinct(nodes: int, brief: bool) -> None:
    some = wanted(nodes, brief=brief)
    told = [
        (*each.key, node, way)
        for each in some
        for node, ways in zip(each.nodes, each.ways, strict=True)
        for way in ways
    ]
    assert len(set(told)) == len(told)
    for each in some:
        assert len(set(each.nodes)) == len(each.nodes) == each.spec.endpoints
        for place, ways in enumerate(each.ways):
            # A node records only directions that it uses.
            assert set(ways) <= set(each.spec.directions(place))
        assert any(each.ways)
        assert each.spec.evenly == (each.pattern not in (ALONE, UNEVENLY))


@given(nodes=NODES)
@settings(derandomize=True)
def test_few_nodes_are_tested_in_pairs_and_alone(nodes: int) -> None:
    some, few = wanted(nodes), min(nodes, MAX_ALONE)
    pairs = [each.nodes for each in of(PAIR, some)]
    assert len(pairs) == few and len(of(BOTH_WAYS, some)) == 1
    assert Counter(first for first, _ in pairs).most_common(1)[0][1] == 1
    assert Counter(second for _, second in pairs).most_common(1)[0][1] == 1
    alone = [(each.nodes[0], each.ways[0]) for each in of(ALONE, some)]
    each_way = ((SEND,), (RECEIVE,))
    expected = [(str(n), way) for n in range(nodes) for way in each_way]
    assert sorted(alone) == (sorted(expected) if nodes <= MAX_ALONE else [])
    assert len(of(UNEVENLY, some)) == (nodes > MAX_ALONE)
    assert all(sorted(each.nodes) == sorted(map(str, range(nodes))) for each in of(ALONE, some))
    sizes = [len(each.nodes) for each in of(ALL_TO_ALL, some)]
    assert sizes == sorted({*(2**power for power in range(1, 9) if 2**power < nodes), nodes})


@given(nodes=NODES)
@settings(derandomize=True)
def test_a_brief_measurement_tests_each_link_and_all_to_all_once(nodes: int) -> None:
    some = wanted(nodes, brief=True)
    assert [len(each.nodes) for each in of(ALL_TO_ALL, some)] == [nodes]
    assert of(PAIR, some) == of(BOTH_WAYS, some) == []
    if nodes > MAX_ALONE_BRIEFLY:
        (everyone,) = of(UNEVENLY, some)
        assert everyone.ways == ((SEND, RECEIVE),) * nodes and of(ALONE, some) == []
    else:
        assert len(of(ALONE, some)) == 2 * nodes and of(UNEVENLY, some) == []


def test_sizes_and_connections_follow_the_settings() -> None:
    some = of(ALL_TO_ALL, wanted(5, sizes=(3, 5, 9), connections=(1, 4)))
    assert [(len(each.nodes), each.spec.connections) for each in some] == [
        *((3, 1), (3, 4)),
        *((5, 1), (5, 4)),
    ]


@given(known=links(), brief=st.booleans())
@settings(derandomize=True)
def test_a_shuffle_is_as_fast_as_its_slowest_link(known: Links, brief: bool) -> None:
    found = analyse_shuffle(network(known, BRIEF if brief else SETTINGS))
    told = {
        each.node: (each.send_bytes_per_second, each.receive_bytes_per_second)
        for each in found.links
    }
    assert told == {node: pytest.approx(both) for node, both in known.items()}
    least = min(map(min, known.values()))
    assert found.slowest_link and found.slowest_link.slower_direction == pytest.approx(least)
    whole = found.sizes[-1]
    assert whole.nodes == len(known)
    assert whole.slowest_bytes_per_second == pytest.approx(least)
    assert whole.sum_bytes_per_second == pytest.approx(len(known) * least)
    assert [each.node for each in whole.per_node] == sorted(known)
    if brief:
        assert found.pairs == [] and found.baseline_bytes_per_second is None
        assert found.both_ways_share is found.full_duplex is whole.fraction_of_baseline is None
        return
    for first, second, rate in found.pairs:
        assert rate == pytest.approx(min(known[first][0], known[second][1]))
    # With all nodes each link is in a pair, with fewer some are not.
    assert whole.fraction_of_baseline == pytest.approx(1)
    for each in found.sizes:
        assert each.fraction_of_baseline is not None
        assert 0 < each.fraction_of_baseline <= 1 + 1e-9
    assert found.rounds[PAIR] == found.rounds[ALONE] == SETTINGS.rounds


@given(known=links(least=9, most=12))
@settings(derandomize=True, max_examples=20)
def test_links_of_many_nodes_are_measured_all_at_once(known: Links) -> None:
    found = analyse_shuffle(network(known, BRIEF))
    assert found.rounds == {UNEVENLY: 2, f"{ALL_TO_ALL} of {len(known)}, 1 a pair": 2}
    told = {each.node: each.slower_direction for each in found.links}
    assert told == {node: pytest.approx(min(both)) for node, both in known.items()}


def test_both_directions_at_once_show_whether_a_link_is_full_duplex() -> None:
    same = dict.fromkeys("abc", (100.0, 100.0))
    found = analyse_shuffle(network(same))
    assert found.both_ways_share == pytest.approx(2) and found.full_duplex
    measured = network(same)
    for row in measured.nodes:
        assert row.measurement
        some = row.measurement.trials
        some[:] = [
            replace(each, bytes_per_second=each.bytes_per_second / 2)
            if each.name.endswith(BOTH_WAYS)
            else each
            for each in some
        ]
    found = analyse_shuffle(measured)
    assert found.both_ways_share == pytest.approx(1) and found.full_duplex is False
    assert 1 < FULL_DUPLEX < 2


@given(known=links(least=3), data=st.data())
@settings(derandomize=True)
def test_a_shuffle_that_lost_a_node_does_not_count(known: Links, data: st.DataObject) -> None:
    gone = data.draw(st.sampled_from(sorted(known)))
    found = analyse_shuffle(network(known, lost={gone: "died"}))
    assert len(known) not in [each.nodes for each in found.sizes]
    assert all(gone not in [e.node for e in each.per_node] for each in found.sizes)
    assert gone not in [each.node for each in found.links]
    # What others received from it in pairs counts.
    assert any(first == gone for first, _, _ in found.pairs)
    assert not any(second == gone for _, second, _ in found.pairs)


def test_the_written_measurement_is_what_is_printed(tmp_path: Path) -> None:
    measured = network({"a": (100.0, 90.0), "b": (80.0, 100.0)})
    printed = json.loads(json.dumps(document(measured)))
    kept = json.loads(measured.write(tmp_path / "fleet.json").read_text())
    assert {each["node"] for each in kept["links"]} == {"a", "b"} and kept["sizes"]
    assert {name: printed[name] for name in kept if name != "nodes"} == {
        name: value for name, value in kept.items() if name != "nodes"
    }
    assert ClusterMeasurement.read(tmp_path / "fleet.json") == measured


def test_a_pair_of_different_machine_types_is_named() -> None:
    both = dict.fromkeys("ab", (1e6, 1e6))
    assert next(network_lines(network(both))).startswith("Median pair: 1.00 MB/s")
    said = next(network_lines(network(both, types={"a": "fast", "b": "slow"})))
    assert said.startswith("Median pair (fast and slow nodes): 1.00 MB/s")


def node_measurement(row: ClusterNode) -> Measurement:
    """A node's measurement, with the environment and details that endpoints add."""
    assert row.measurement
    trials = []
    for each in row.measurement.trials:
        assert each.reading
        reading = replace(
            each.reading,
            bandwidth_bytes_per_second=each.bytes_per_second,
            details=each.reading.details | {"endpoints": 4},
        )
        trials.append(replace(each, reading=reading))
    environment = replace(ENVIRONMENT, host=row.node, machine_type=row.machine_type)
    return replace(row.measurement, kind="net", environment=environment, trials=trials)


def test_a_node_far_below_its_type_is_named_by_its_own_link() -> None:
    links = {"fast-0": (40e6, 40e6), "fast-1": (20e6, 40e6), "slow": (10e6, 10e6)}
    types = {"fast-0": "fast", "fast-1": "fast", "slow": "slow"}
    analysis = analyse([node_measurement(row) for row in network(links, types=types).nodes])
    assert [said for said in analysis.findings if "may be chance" in said] == [
        f"{SEND}, pattern alone: fast-1 reaches 67 % of the median of 2 machines of type fast; "
        "with so few machines this may be chance."
    ]
    # The pattern contains the number of nodes and connections.
    assert not any("endpoints" in subject.name for subject in analysis.subjects)


def test_an_empty_measurement_has_an_empty_analysis() -> None:
    found = analyse_shuffle(
        network({"a": (1.0, 1.0), "b": (1.0, 1.0)}, replace(SETTINGS, rounds=0))
    )
    assert (found.links, found.sizes, found.pairs, found.slowest_link) == ([], [], [], None)


@given(known=links(least=3, most=5), rounds=st.integers(1, 4))
@settings(derandomize=True)
def test_the_slowest_node_had_the_slowest_rate(known: Links, rounds: int) -> None:
    """If not all nodes take part, rounds have other nodes: a mean of two belongs to none."""
    measured = network(known, replace(SETTINGS, rounds=rounds))
    for size in analyse_shuffle(measured).sizes:
        (row,) = [row for row in measured.nodes if row.node == size.slowest_node]
        assert row.measurement
        own = [
            trial.bytes_per_second
            for trial in row.measurement.trials
            if trial.reading and len(trial.reading.details["node_names"]) == size.nodes
        ]
        assert size.slowest_bytes_per_second in own


def test_parts_of_two_attempts_are_not_combined() -> None:
    """Parts of different attempts were not concurrent."""
    measured = network({"a": (1.0, 1.0), "b": (1.0, 1.0)})
    second = measured.nodes[1].measurement
    assert second
    for place, each in enumerate(second.trials):
        assert each.reading
        other = each.reading.details | {"attempt": f"again {place}"}
        second.trials[place] = replace(each, reading=replace(each.reading, details=other))
    found = analyse_shuffle(measured)
    assert found.sizes == [] and len(found.links) == 2


def trial_of(part: RoundPart, way: str) -> Trial:
    """What an endpoint keeps of its part."""
    wanted = NetworkTest(part.pattern, part.nodes, ((way,),), part.spec)
    found = trial(wanted, 0, way, dict.fromkeys(part.nodes, (1.0, 1.0)))
    assert found.reading
    details = found.reading.details | {"attempt": part.attempt}
    return replace(found, reading=replace(found.reading, details=details))


class Failing:
    """A run whose nodes all answer: that all went well, or these words."""

    def __init__(self, names: Sequence[str], says: Callable[[str, RoundPart], str | None]) -> None:
        machines = [Machine(name, {}, "198.18.0.1", name) for name in names]
        self.remaining = [MeasuringNode(WorkerHandle(machine)) for machine in machines]
        self.nodes = {node.node: node for node in self.remaining}
        self.closed: dict[str, str | None] = {}
        self.tries = 0
        self.pool = self
        self._says, self._parts = says, dict[str, RoundPart]()

    def trials(self, _: MeasuringNode) -> list[Trial]:
        return []

    def reserve_addresses(self, nodes: Sequence[str]) -> dict[str, str]:
        return dict.fromkeys(nodes, "198.18.0.1:7411")

    def notify(self, node: str, part: RoundPart) -> None:
        self._parts[node] = part

    def events(self) -> Iterator[Any]:
        self.tries += 1
        for node, part in self._parts.items():
            why = self._says(node, part)
            self.nodes[node].results[part.number] = RoundResult(part.number, why, None)
            for way in part.ways if why is None else ():
                yield TrialDone(node, trial_of(part, way))
        self._parts.clear()

    def close(self, node: MeasuringNode, why: str | None) -> ClusterNode:
        self.closed[node.node] = why
        self.remaining.remove(node)
        node.row = ClusterNode(node=node.node, ok=False, why=why)
        return node.row


def failing(says: Callable[[str, RoundPart], str | None]) -> tuple[Failing, dict[str, str]]:
    """A round of four nodes: what became of them, and who lacks something."""
    run = Failing("abcd", says)
    rounds = _ShuffleRun(run, SETTINGS, dict.fromkeys("abcd", "large"))  # type: ignore[arg-type]
    list(rounds.round(0))
    return run, rounds.lacking


def test_a_failure_between_all_nodes_is_reported_and_blames_none() -> None:
    run, lacking = failing(lambda *_: "has not ended in 72 s")
    assert run.closed == {} and sorted(lacking) == list("abcd")
    assert "failed: " in lacking["a"] and "has not ended" in lacking["a"]
    # After a failure between two nodes, tests with more nodes are skipped.
    assert run.tries <= ATTEMPTS * 4


def test_whom_the_others_cannot_speak_to_is_given_up() -> None:
    def says(node: str, part: RoundPart) -> str | None:
        if "c" not in part.nodes:
            return None
        peer = "c" if node != "c" else next(each for each in part.nodes if each != "c")
        return f"endpoint {part.nodes.index(peer)} (198.18.0.1:7411): does not answer"

    run, _ = failing(says)
    assert list(run.closed) == ["c"]
    assert "does not answer" in (run.closed["c"] or "")
