"""Stragglers: no node is given up if waiting for it costs less than doing its work again."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tonnage.run.two_pass.stragglers import TIMES, StragglerDetector

SECONDS = st.floats(0.1, 1000)
SIZES = st.lists(st.integers(0, 1000), min_size=1, max_size=5)


@given(
    own=SIZES,
    share=st.floats(0, 1),
    ended=st.dictionaries(st.sampled_from("bcd"), st.tuples(SIZES, SECONDS)),
    seconds=SECONDS,
    again=st.floats(0, 1000),
)
def test_who_is_given_up_needs_longer_than_others(
    own: list[int],
    share: float,
    ended: dict[str, tuple[list[int], float]],
    seconds: float,
    again: float,
) -> None:
    shares = {"a": own} | {node: sizes for node, (sizes, _) in ended.items()}
    pace = StragglerDetector(shares, again)
    for node, (_, took) in ended.items():
        pace.note_ended(node, took)
    done = int(sum(own) * share)
    if not pace.is_straggler("a", done, seconds):
        return
    rates = [sum(sizes) / took for sizes, took in ended.values() if sum(sizes)]
    assert rates  # A node is done, and had something to do.
    left = sum(own) - done
    assert left > 0
    assert seconds > TIMES * again * 0.999 or done >= max(own)
    if done < max(own):
        # One as slow as the slowest that is done would have done it all by now.
        assert seconds * min(rates) > TIMES * sum(own) * 0.999
    else:
        assert left * seconds / done > TIMES * (again + left / sum(rates)) * 0.999
    assert pace.is_straggler("a", done, 0.0)


def paced(again: float, **took: float) -> StragglerDetector:
    """Nodes a, b and c with ten partitions of 10 bytes each, of which these are done."""
    pace = StragglerDetector(dict.fromkeys("abc", [10] * 10), again)
    for node, seconds in took.items():
        pace.note_ended(node, seconds)
    return pace


def test_it_is_given_up_only_if_others_are_much_sooner() -> None:
    # Of b 90 are left at 1 a second, of c 50 at 5: a does 10 a second.
    assert paced(10.0, a=10.0).is_straggler("b", 10, 10.0)
    assert not paced(10.0, a=10.0).is_straggler("c", 50, 10.0)
    assert not paced(36.0, a=10.0).is_straggler("b", 10, 10.0)
    assert not paced(0.0).is_straggler("b", 10, 10.0)
    # Who does what is left of b has no hand free for c.
    assert paced(15.0, a=5.0).is_straggler("b", 10, 5.0)
    pace = paced(15.0, a=5.0)
    assert pace.is_straggler("c", 10, 5.0) and not pace.is_straggler("b", 10, 5.0)


def test_who_has_not_written_a_partition_yet_is_not_slow_for_that() -> None:
    for done in (0, 1, 9):
        # As long as a needed for all, and the input read again, and that once more.
        assert not paced(10.0, a=10.0).is_straggler("b", done, 39.0)
        assert paced(10.0, a=10.0).is_straggler("b", done, 41.0)
    # One with a tiny share is soon done; another one reads and sorts a large partition by then.
    pace = StragglerDetector({"a": [1], "b": [100]}, 1.0)
    pace.note_ended("a", 1.0)
    assert not pace.is_straggler("b", 0, 100.0)
