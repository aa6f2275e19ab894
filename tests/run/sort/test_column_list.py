"""Lists of columns: what is joined is split again, and a quote out of place is named."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tonnage.base import core
from tonnage.run.sort.column_list import join_columns, split_columns


@given(st.lists(st.text('a ,"\n-:ä'), min_size=1, max_size=4))
def test_what_is_joined_is_split_again(names: list[str]) -> None:
    assert split_columns(join_columns(names), "by") == names


def test_blanks_are_left_out_and_quotes_keep_commas() -> None:
    assert split_columns('a , -b:nulls-first,"-c, d", "e""f"', "by") == [
        "a",
        "-b:nulls-first",
        "-c, d",
        'e"f',
    ]


@pytest.mark.parametrize("text", ['"a', 'a,"b"c', '"a" "b"'])
def test_a_quote_out_of_place_is_named(text: str) -> None:
    with pytest.raises(core.UsageError, match="a quote out of place"):
        split_columns(text, "by")
