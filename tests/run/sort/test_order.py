"""Orders and lists of columns as text: any name can be written, and what is none is refused."""

from pathlib import Path

import pyarrow as pa
import pyarrow.feather as feather
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.cli.command import Tonnage
from tonnage.base import core
from tonnage.run.sort.order import (
    ColumnOrder,
    join_names,
    join_order,
    parse_order,
    split_columns,
)

NAMES = st.text('a ,"\n-:ä') | st.sampled_from(["-x", "a:nulls-first", "a,b", '"q"', '-"q"', ""])


@given(st.lists(NAMES, min_size=1, max_size=4))
def test_names_that_are_joined_are_split_again(names: list[str]) -> None:
    assert split_columns(join_names(names), "columns") == names


@given(st.lists(st.builds(ColumnOrder, NAMES, st.booleans(), st.booleans()), min_size=1))
def test_every_name_has_an_order(columns: list[ColumnOrder]) -> None:
    columns = [*{each.name: each for each in columns}.values()]
    keys = []
    for each in columns:
        name = '"' + each.name.replace('"', '""') + '"'
        keys.append("-" * each.descending + name + ":nulls-first" * each.nulls_first)
    assert parse_order(" , ".join(keys)) == parse_order(join_order(keys)) == columns


def test_blanks_are_left_out_and_quotes_keep_commas() -> None:
    assert parse_order('a , -b:nulls-first,-"c, d":nulls-last, "e""f",a:b,-u"v') == [
        ColumnOrder("a"),
        ColumnOrder("b", descending=True, nulls_first=True),
        ColumnOrder("c, d", descending=True),
        ColumnOrder('e"f'),
        ColumnOrder("a:b"),
        ColumnOrder('u"v', descending=True),
    ]
    assert join_order(["-price, net", "x:nulls-first", '"-x"']) == (
        '-"price, net","x":nulls-first,"-x"'
    )


@pytest.mark.parametrize("text", ['"a', 'a,"b"c', '"a" "b"', '-"a', '-"a"b'])
def test_a_quote_out_of_place_is_named(text: str) -> None:
    with pytest.raises(core.UsageError, match="a quote out of place"):
        split_columns(text.replace("-", ""), "columns")
    with pytest.raises(core.UsageError, match="a quote out of place"):
        parse_order(text)


@pytest.mark.parametrize("text", ["", "-", "a,", ":nulls-first", "a,-:nulls-last"])
def test_what_has_no_name_is_no_key(text: str) -> None:
    with pytest.raises(core.UsageError, match=r"is no sort key; use COLUMN, -COLUMN"):
        parse_order(text)


@pytest.mark.parametrize("suffix", ["csv", "arrow", "json"])
def test_columns_with_odd_names_are_keys(tonnage: Tonnage, tmp_path: Path, suffix: str) -> None:
    names = ["-x", "a,b", '"q"', "y:nulls-first"]
    file = tmp_path / f"in.{suffix}"
    if suffix == "arrow":
        feather.write_feather(pa.table({name: [2, 1] for name in names}), file)
    elif suffix == "csv":
        file.write_text('-x,"a,b","""q""",y:nulls-first\n2,2,2,2\n1,1,1,1\n')
    else:
        object_of = '{{"-x": {0}, "a,b": {0}, "\\"q\\"": {0}, "y:nulls-first": {0}}}\n'.format
        file.write_text(object_of(2) + object_of(1))
    by = '"-x",-"a,b","""q""":nulls-first,"y:nulls-first"'
    places = ["--output", tmp_path / "out", "--scratch", tmp_path / "tmp"]
    tonnage.run("run", "sort", file, "--by", by, *places, check=True)
    [part] = (tmp_path / "out").glob("part-*")
    if suffix == "arrow":
        assert feather.read_table(part)["-x"].to_pylist() == [1, 2]
    else:
        lines = file.read_text().splitlines()
        assert part.read_text().splitlines() == [*lines[:-2], lines[-1], lines[-2]]
    ended = tonnage.run("run", "sort", file, "--by", "-x", *places[:1], tmp_path / "o", *places[2:])
    assert ended.returncode == 2 and ended.stderr.count("\n") == 1
    if suffix != "json":
        shown = '"-x", "a,b", """q""", "y:nulls-first"'
        assert f"the columns are {shown}" in ended.stderr
