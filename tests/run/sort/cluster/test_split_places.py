"""Which splits begin within quotes, against all that is before them."""

from __future__ import annotations

import random

import pytest

from tonnage.run.sort.cluster.split_places import quoted_splits, split_places
from tonnage.run.two_pass.schedule import Split


@pytest.mark.parametrize("seed", range(20))
def test_a_split_begins_within_quotes_if_those_before_it_are_odd(seed: int) -> None:
    draw = random.Random(seed)
    splits, odd, quoted = [], set(), set()
    ends = {}
    for name in ("a", "b", "b on another node", "c"):
        text = "".join(draw.choices('x"', k=draw.randrange(1, 12)))
        holders = ("m",) if name.endswith("another node") else ("n",)
        for at in range(0, len(text), 3):
            number, part = len(splits), text[at : at + 3]
            splits.append(Split(name[0], at, len(part), holders, None, len(text)))
            odd |= {number} if part.count('"') % 2 else set()
            quoted |= {number} if text[:at].count('"') % 2 else set()
            is_last = at + 3 >= len(text)
            ends[number] = not is_last and text[: at + 3].count('"') % 2 == 1
    assert quoted_splits(splits, odd) == sorted(quoted)
    places = split_places(splits, quoted, None)
    assert [each.begins_quoted for each in places] == [n in quoted for n in range(len(splits))]
    assert [each.ends_quoted for each in places] == [ends[n] for n in range(len(splits))]
