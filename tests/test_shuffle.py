"""The network between machines: what is wanted of them in a round, and what it comes to."""

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.networks import SETTINGS, Links, network
from tonnage.artifacts.together import ALL_TO_ALL, ALONE, BOTH_WAYS, PAIR, RECEIVE, SEND, UNEVENLY
from tonnage.fleet.net import MOST_ALONE, MOST_ALONE_BRIEFLY, Wanted, agenda
from tonnage.model.shuffle import FULL_DUPLEX, shuffle

BRIEF = replace(SETTINGS, brief=True)
RATES = st.floats(1e6, 1e9)
NODES = st.integers(2, 3 * MOST_ALONE)


@st.composite
def links(draw: st.DrawFn, least: int = 2, most: int = 7) -> Links:
    """What each of a few nodes can send and receive."""
    both = draw(st.lists(st.tuples(RATES, RATES), min_size=least, max_size=most))
    return {f"n{number}": each for number, each in enumerate(both)}


def wanted(nodes: int, **settings: object) -> list[Wanted]:
    """A round of so many nodes, called by their numbers."""
    changed = replace(SETTINGS, **settings)  # type: ignore[arg-type]
    return list(agenda(0, [str(number) for number in range(nodes)], changed))


def of(pattern: str, some: list[Wanted]) -> list[Wanted]:
    """Those of a pattern."""
    return [each for each in some if each.pattern.startswith(pattern)]


@given(nodes=NODES, brief=st.booleans())
@settings(derandomize=True)
def test_all_that_is_wanted_can_be_done_and_told_apart(nodes: int, brief: bool) -> None:
    some = wanted(nodes, brief=brief)
    told = [
        (*each.key, node, way)
        for each in some
        for node, ways in zip(each.nodes, each.ways, strict=True)
        for way in ways
    ]
    assert len(set(told)) == len(told)
    for each in some:
        assert len(set(each.nodes)) == len(each.nodes) == each.together.endpoints
        for place, ways in enumerate(each.ways):
            # What is kept of a node's part, it does.
            assert set(ways) <= set(each.together.ways(place))
        assert any(each.ways)
        assert each.together.evenly == (each.pattern not in (ALONE, UNEVENLY))


@given(nodes=NODES)
@settings(derandomize=True)
def test_every_node_sends_and_receives_in_pairs_and_alone_unless_they_are_many(nodes: int) -> None:
    some, few = wanted(nodes), min(nodes, MOST_ALONE)
    pairs = [each.nodes for each in of(PAIR, some)]
    assert len(pairs) == few and len(of(BOTH_WAYS, some)) == 1
    assert Counter(first for first, _ in pairs).most_common(1)[0][1] == 1
    assert Counter(second for _, second in pairs).most_common(1)[0][1] == 1
    alone = [(each.nodes[0], each.ways[0]) for each in of(ALONE, some)]
    assert sorted(alone) == sorted((str(n), (way,)) for n in range(few) for way in (SEND, RECEIVE))
    assert all(sorted(each.nodes) == sorted(map(str, range(nodes))) for each in of(ALONE, some))
    sizes = [len(each.nodes) for each in of(ALL_TO_ALL, some)]
    assert sizes == sorted({*(2**power for power in range(1, 9) if 2**power < nodes), nodes})


@given(nodes=NODES)
@settings(derandomize=True)
def test_a_brief_look_takes_each_link_and_all_to_all_once(nodes: int) -> None:
    some = wanted(nodes, brief=True)
    assert [len(each.nodes) for each in of(ALL_TO_ALL, some)] == [nodes]
    assert of(PAIR, some) == of(BOTH_WAYS, some) == []
    if nodes > MOST_ALONE_BRIEFLY:
        (everyone,) = of(UNEVENLY, some)
        assert everyone.ways == ((SEND, RECEIVE),) * nodes and of(ALONE, some) == []
    else:
        assert len(of(ALONE, some)) == 2 * nodes and of(UNEVENLY, some) == []


def test_sizes_and_connections_are_those_that_are_asked_for() -> None:
    some = of(ALL_TO_ALL, wanted(5, sizes=(3, 5, 9), connections=(1, 4)))
    assert [(len(each.nodes), each.together.connections) for each in some] == [
        *((3, 1), (3, 4)),
        *((5, 1), (5, 4)),
    ]


@given(known=links(), brief=st.booleans())
@settings(derandomize=True)
def test_links_are_what_they_carry_and_a_shuffle_is_as_fast_as_the_slowest(
    known: Links, brief: bool
) -> None:
    found = shuffle(network(known, BRIEF if brief else SETTINGS))
    told = {
        each.node: (each.send_bytes_per_second, each.receive_bytes_per_second)
        for each in found.links
    }
    assert told == {node: pytest.approx(both) for node, both in known.items()}
    least = min(map(min, known.values()))
    assert found.slowest_link and found.slowest_link.less == pytest.approx(least)
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
    # Among all nodes each link is in a pair, among fewer some are not.
    assert whole.fraction_of_baseline == pytest.approx(1)
    for each in found.sizes:
        assert each.fraction_of_baseline is not None
        assert 0 < each.fraction_of_baseline <= 1 + 1e-9
    assert found.rounds[PAIR] == found.rounds[ALONE] == SETTINGS.rounds


@given(known=links(least=9, most=12))
@settings(derandomize=True, max_examples=20)
def test_links_of_many_are_told_all_at_once(known: Links) -> None:
    found = shuffle(network(known, BRIEF))
    assert found.rounds == {UNEVENLY: 2, f"{ALL_TO_ALL} of {len(known)}, 1 a pair": 2}
    told = {each.node: each.less for each in found.links}
    assert told == {node: pytest.approx(min(both)) for node, both in known.items()}


def test_both_ways_at_once_tell_whether_a_link_is_full_duplex() -> None:
    same = dict.fromkeys("abc", (100.0, 100.0))
    found = shuffle(network(same))
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
    found = shuffle(measured)
    assert found.both_ways_share == pytest.approx(1) and found.full_duplex is False
    assert 1 < FULL_DUPLEX < 2


@given(known=links(least=3), data=st.data())
@settings(derandomize=True)
def test_of_which_a_node_was_lost_is_no_shuffle_of_so_many(
    known: Links, data: st.DataObject
) -> None:
    gone = data.draw(st.sampled_from(sorted(known)))
    found = shuffle(network(known, lost={gone: "died"}))
    assert len(known) not in [each.nodes for each in found.sizes]
    assert all(gone not in [e.node for e in each.per_node] for each in found.sizes)
    assert gone not in [each.node for each in found.links]
    # What others received of it as a pair was measured.
    assert any(first == gone for first, _, _ in found.pairs)
    assert not any(second == gone for _, second, _ in found.pairs)


def test_of_nothing_nothing_follows() -> None:
    found = shuffle(network({"a": (1.0, 1.0), "b": (1.0, 1.0)}, replace(SETTINGS, rounds=0)))
    assert (found.links, found.sizes, found.pairs, found.slowest_link) == ([], [], [], None)
