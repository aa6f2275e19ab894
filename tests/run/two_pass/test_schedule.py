"""The schedule of a sort on a cluster under any losses: simulated, with every cell counted."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tonnage.run.two_pass.schedule import (
    Finished,
    InputLost,
    NoNodeLeft,
    Outcome,
    Round,
    Schedule,
    Split,
    Total,
    assign_splits,
)

CELL_BYTES = 10


class Simulation:
    """A cluster without bytes: the contents of each node's index of each round, as in the core."""

    def __init__(self, schedule: Schedule) -> None:
        self.schedule = schedule
        self.lies: dict[tuple[str, int], list[tuple[int, int]]] = {}
        self.dead: set[str] = set()
        self.done = 0

    def run(self, each: Round, dies: Mapping[str, bool], cut: set[tuple[str, str]]) -> None:
        """One round, in which nodes die, having sent all (True) or not, and links are cut."""
        schedule = self.schedule
        outcomes = {}
        for node in each.nodes:
            if node in dies:
                continue
            lost = tuple(
                sorted(
                    other
                    for other in each.nodes
                    if other != node
                    and (not dies.get(other, True) or (other not in dies and (other, node) in cut))
                )
            )
            cells = [
                (split, place)
                for reader, splits in each.reads.items()
                if reader not in lost
                for split in splits
                for place, owner in each.owners.items()
                if owner == node
            ]
            self.lies[node, each.number] = cells
            bytes_of = {place: CELL_BYTES * count for place, count in _by_place(cells).items()}
            splits = each.reads.get(node, ())
            read = Total(len(splits), CELL_BYTES * len(splits), sum(splits))
            outcomes[node] = Outcome(read, lost, bytes_of)
        for node in schedule.round_ended(each, outcomes):
            schedule.lose(node)
        for node in dies:
            self.dead.add(node)
            schedule.lose(node)
        self.done += 1

    def sort(self, node: str, places: list[int]) -> None:
        """Pass two of these partitions: each cell has to be there once."""
        for place in places:
            found = Counter(
                split
                for number in self.schedule.scratch[node]
                for split, there in self.lies[node, number]
                if there == place
            )
            assert found == Counter(range(len(self.schedule.splits))), (node, place)
            count = len(self.schedule.splits)
            assert self.schedule.received[place] == CELL_BYTES * count
            self.schedule.partition_finished(place, [Finished(f"part-{place}", Total(count))])


def _by_place(cells: list[tuple[int, int]]) -> Counter[int]:
    return Counter(place for _, place in cells)


def made(nodes: int, splits: int, partitions: int, seed: int) -> Schedule:
    """Splits of random holders; the first node has all, and never dies."""
    draw = random.Random(seed)
    names = [f"n{number}" for number in range(nodes)]
    found = [
        Split(
            "file",
            number,
            draw.randint(1, 100),
            tuple(sorted({"n0", *draw.sample(names, draw.randint(0, nodes))})),
        )
        for number in range(splits)
    ]
    return Schedule(found, partitions, {name: draw.choice([1.0, 2.0]) for name in names})


@given(
    nodes=st.integers(1, 6),
    splits=st.integers(0, 12),
    partitions=st.integers(1, 9),
    seed=st.integers(0, 10**6),
    trouble=st.floats(0, 0.6),
)
def test_each_cell_comes_to_its_owner_once_whatever_is_lost_when(
    nodes: int, splits: int, partitions: int, seed: int, trouble: float
) -> None:
    schedule = made(nodes, splits, partitions, seed)
    draw, seen = random.Random(seed + 1), Simulation(schedule)
    for _ in range(2000):
        if (each := schedule.next_round()) is not None:
            able = [node for node in each.nodes if node != "n0"]
            dies = {node: draw.random() < 0.5 for node in able if draw.random() < trouble / 3}
            cuts = {
                (one, other)
                for one in each.nodes
                for other in each.nodes
                if draw.random() < trouble / 3
            }
            seen.run(each, dies, cuts)
            _back(schedule)
            continue
        left = schedule.to_sort()
        if not left:
            break
        for node, places in sorted(left.items()):
            if node != "n0" and draw.random() < trouble:
                some = draw.randint(0, len(places))
                seen.sort(node, places[:some])
                keeps = [place for place in places[:some] if draw.random() < 0.5]
                how = draw.choice([{}, {"reads": True}, {"joins": True}])
                schedule.lose(node, keeps=keeps, **how)
            else:
                seen.sort(node, places)
    assert schedule.to_sort() == {} and schedule.next_round() is None
    assert sorted(schedule.finished) == list(range(partitions))
    # Each split was counted once, from a round in which who read it told so.
    assert schedule.read == Total(splits, CELL_BYTES * splits, sum(range(splits)))
    assert schedule.written.records == splits * partitions
    assert schedule.received_bytes == sum(schedule.received)
    assert seen.done <= 20 * (nodes * nodes + 1)


def _back(schedule: Schedule) -> None:
    """The first node may be lost too, since its links fail: then it comes back, empty."""
    if "n0" not in schedule.keepers or "n0" not in schedule.readers:
        schedule.lose("n0", joins=True)


def test_what_nobody_can_read_any_more_is_named() -> None:
    splits = [Split("/in/a", 0, 500, ("x",)), Split("/in/b", 1000, 500, ("y",))]
    schedule = Schedule(splits, 4, {"x": 1, "y": 1})
    schedule.lose("y")
    with pytest.raises(InputLost, match="bytes 1000 to 1500 of /in/b on y"):
        schedule.next_round()
    schedule.lose("x")
    with pytest.raises(NoNodeLeft):
        schedule.next_round()
    # Who comes gets all.
    schedule.lose("y", joins=True)
    assert set(schedule.owner) == {"y"}


def test_who_only_reads_owns_nothing_and_is_still_asked_for_its_input() -> None:
    splits = [Split("/in", 0, 500, ("x",)), Split("/in", 500, 500, ("y",))]
    schedule = Schedule(splits, 4, {"x": 1, "y": 1})
    schedule.lose("y", reads=True)
    each = schedule.next_round()
    assert each and set(each.owners.values()) == {"x"} and each.reads == {"x": [0], "y": [1]}


def test_a_loss_has_no_record_read_twice_that_need_not_be() -> None:
    names = ("a", "b", "c", "d")
    splits = [Split("/in", 10 * place, 10, names) for place in range(40)]
    schedule = Schedule(splits, 8, dict.fromkeys(names, 1.0))
    first = schedule.next_round()
    assert first
    alive = {node: Outcome(lost=("d",)) for node in "abc"}
    assert schedule.round_ended(first, alive) == []
    schedule.lose("d")
    read: Counter[int] = Counter()
    rounds = 0
    while each := schedule.next_round():
        rounds += 1
        read.update(number for splits in each.reads.values() for number in splits)
        schedule.round_ended(each, {node: Outcome() for node in each.nodes})
    assert rounds == 2 and read == Counter(range(40))


def test_partitions_are_gathered_once_they_are_wanted() -> None:
    splits = [Split("/in", 10 * place, 10, ("a", "b")) for place in range(4)]
    schedule = Schedule(splits, 5, {"a": 1.0, "b": 1.0})
    for wanted, gathered in ((2, [0, 1]), (2, []), (4, [2, 3]), (1, [])):
        schedule.wanted = wanted
        each = schedule.next_round()
        assert sorted(each.owners if each else []) == gathered
        if each:
            read = {node: Total(bytes=10 * len(of)) for node, of in each.reads.items()}
            schedule.round_ended(each, {node: Outcome(read[node]) for node in each.nodes})
        to_sort = [place for places in schedule.to_sort().values() for place in places]
        assert sorted(to_sort) == [*range(wanted)]
    assert schedule.read.bytes == schedule.input_bytes
    owner = schedule.owner[0]
    schedule.lose(owner)
    again = schedule.next_round()
    assert again and [*again.owners] == [0]


def test_what_came_whole_from_who_died_then_is_not_sent_again() -> None:
    splits = [Split("/in", 0, 10, ("a", "b")), Split("/in", 10, 10, ("a", "b"))]
    schedule = Schedule(splits, 2, {"a": 1.0})
    first = schedule.next_round()
    assert first and sorted(first.reads) == ["a", "b"]
    assert schedule.round_ended(first, {"a": Outcome(Total(1, 10, 1))}) == []
    schedule.lose("b")
    # All is there, but nobody has told what it was: it is read once more, and nothing is sent.
    again = schedule.next_round()
    assert again and again.owners == {} and again.reads == {"a": list(first.reads["b"])}
    schedule.round_ended(again, {"a": Outcome(Total(1, 10, 2))})
    assert schedule.next_round() is None and schedule.read == Total(2, 20, 3)


def test_a_link_that_fails_twice_loses_the_node_of_more_such_links() -> None:
    names = ("a", "b", "c")
    schedule = Schedule([Split("/in", 0, 10, names)] * 3, 6, dict.fromkeys(names, 1.0))
    lost: list[str] = []
    for _ in range(2):
        assert lost == []
        each = schedule.next_round()
        assert each
        # What `c` sends does not come; the others meet each other.
        lost = schedule.round_ended(
            each, {node: Outcome(lost=_without("c", node)) for node in names}
        )
    assert lost == ["c"]


def _without(other: str, node: str) -> tuple[str, ...]:
    return () if node == other else (other,)


def test_who_fails_twice_for_no_reason_or_for_one_peer_is_lost() -> None:
    names = ("a", "b", "c")
    for blamed, lost in ((), ["b"]), (("c",), ["c"]):
        schedule = Schedule([Split("/in", 0, 10, names)] * 3, 6, dict.fromkeys(names, 1.0))
        schedule.bytes_of = [10.0 * (schedule.owner[place] != "c") for place in range(6)]
        judged: list[str] = []
        for _ in range(2):
            each = schedule.next_round()
            assert each and judged == []
            well = {node: Outcome() for node in ("a", "c")}
            judged = schedule.round_ended(each, well, {"b": blamed})
        assert judged == lost


def test_neighbours_have_different_owners_and_weights_are_kept() -> None:
    schedule = Schedule([Split("/in", 0, 10, ("a",))], 12, {"a": 1.0, "b": 1.0, "c": 1.0})
    owners = schedule.owner
    assert all(len(set(owners[at : at + 3])) == 3 for at in range(0, 12, 3))


@given(st.lists(st.floats(0.2, 5.0), min_size=1, max_size=12), st.integers(1, 300))
def test_no_partition_would_be_more_even_elsewhere(weights: list[float], partitions: int) -> None:
    names = {f"n{number}": weight for number, weight in enumerate(weights)}
    schedule = Schedule([Split("/in", 0, 1000, ("n0",))], partitions, names)
    owned = Counter(schedule.owner)
    # What defines Webster's and Sainte-Laguë's method.
    last = [(owned[name] - 0.5) / weight for name, weight in names.items() if owned[name]]
    following = [(owned[name] + 0.5) / weight for name, weight in names.items()]
    assert max(last) <= min(following) * (1 + 1e-9)


@given(st.integers(1, 200), st.integers(1, 8), st.integers(0, 10**6))
def test_what_many_can_read_is_shared_out_evenly(splits: int, nodes: int, seed: int) -> None:
    names = tuple(f"n{number}" for number in range(nodes))
    draw = random.Random(seed)
    found = [Split("/in", 0, draw.randint(1, 50), names) for _ in range(splits)]
    each = Schedule(found, 3, {"n0": 1.0}).next_round()
    assert each
    loads = [sum(found[number].bytes for number in each.reads.get(name, [])) for name in names]
    assert max(loads) - min(loads) <= 50


@pytest.mark.slow
def test_a_thousand_nodes_with_a_hundred_thousand_splits_are_no_trouble() -> None:
    names = tuple(f"n{number:03}" for number in range(1000))
    began = time.process_time()
    splits = [Split("/in", 100 * place, 100, names) for place in range(100_000)]
    schedule = Schedule(splits, 8000, dict.fromkeys(names, 1.0))
    first = schedule.next_round()
    assert first
    dead = set(names[:20])
    outcomes = {node: Outcome(lost=tuple(sorted(dead))) for node in names if node not in dead}
    schedule.round_ended(first, outcomes)
    for node in sorted(dead):
        schedule.lose(node)
    rounds = 0
    while each := schedule.next_round():
        schedule.round_ended(each, {node: Outcome() for node in each.nodes})
        rounds += 1
    print(f"{time.process_time() - began:.1f} s of CPU")
    assert rounds == 2


@pytest.mark.parametrize("copies", [1, 2, 3, 16])
def test_neighbours_that_hold_the_same_read_as_much_as_each_other(copies: int) -> None:
    nodes = [f"n{number:02}" for number in range(16)]
    ring = [tuple(sorted(nodes[(at + more) % 16] for more in range(copies))) for at in range(16)]
    splits = [Split(f"f{number}", 0, 100, ring[number % 16]) for number in range(16 * 40)]
    reads = assign_splits(splits, range(len(splits)), set(nodes))
    assert sorted(number for mine in reads.values() for number in mine) == list(range(len(splits)))
    counts = [len(reads[node]) for node in nodes]
    assert max(counts) - min(counts) <= 1
    # Who is gone leaves its share to its neighbours, and theirs to others.
    without = assign_splits(splits, range(len(splits)), set(nodes[1:])) if copies > 1 else {}
    assert all(len(mine) <= 40 * 16 / (17 - copies) + 1 for mine in without.values())
