"""Who is given up for being slow: nobody for whom to wait costs less than to do it again."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tonnage.run.pace import TIMES, slow

NODES = ("a", "b", "c")


@given(
    wanted=st.tuples(*[st.integers(0, 1000)] * 3),
    shares=st.tuples(*[st.floats(0, 1)] * 3),
    ended=st.sets(st.sampled_from(NODES)),
    seconds=st.floats(0.1, 1000),
    again=st.floats(0, 1000),
)
def test_who_is_given_up_needs_longer_than_others(
    wanted: tuple[int, ...],
    shares: tuple[float, ...],
    ended: set[str],
    seconds: float,
    again: float,
) -> None:
    want = dict(zip(NODES, wanted, strict=True))
    done = {node: int(want[node] * share) for node, share in zip(NODES, shares, strict=True)}
    node = slow(want, done, ended, seconds, again)
    if node is None:
        return
    assert node not in ended
    have = sum(want[each] for each in ended)
    assert have > 0  # Somebody is done, and had something to do.
    left = want[node] - done[node]
    needs = left / (max(done[node], 1) / seconds)
    assert needs > TIMES * (again + left / (have / seconds)) * 0.999


def test_it_is_the_slowest_and_only_if_others_are_much_sooner() -> None:
    want = {"a": 100, "b": 100, "c": 100}
    # Of b 90 are left at 1 a second, of c 50 at 5: a does 10 a second.
    done = {"a": 100, "b": 10, "c": 50}
    assert slow(want, done, {"a"}, 10.0, 10.0) == "b"
    assert slow(want, done, {"a"}, 10.0, 36.0) is None
    assert slow(want, done, set(), 10.0, 0.0) is None
    assert slow(want, {"a": 100, "b": 100, "c": 100}, {"a", "b", "c"}, 10.0, 0.0) is None
