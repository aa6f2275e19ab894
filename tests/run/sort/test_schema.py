"""A schema as text: what was printed is read back, all else is refused."""

import base64
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tonnage.base import core
from tonnage.run.sort.schema import parse_schema, schema_message

UNITS = st.sampled_from(["s", "ms", "us", "ns"])
PLAIN = st.sampled_from(
    [
        *(pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32()),
        *(pa.uint64(), pa.float16(), pa.float32(), pa.float64(), pa.bool_(), pa.null()),
        *(pa.string(), pa.large_string(), pa.string_view(), pa.binary(), pa.large_binary()),
        *(pa.binary(16), pa.date32(), pa.date64(), pa.time32("ms"), pa.time64("ns")),
        *(pa.decimal32(5, 2), pa.decimal64(12, 0), pa.decimal128(38, -3), pa.decimal256(76, 7)),
    ]
) | st.one_of(
    st.builds(pa.timestamp, UNITS, st.sampled_from([None, "UTC", "Europe/Berlin", "+05:30"])),
    st.builds(pa.duration, UNITS),
)
NAMES = st.text("abz_ 9", min_size=1, max_size=5).map(str.strip).filter(bool)


def nested(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    fields = st.builds(pa.field, NAMES, inner, st.booleans())
    return st.one_of(
        st.builds(pa.list_, inner | fields),
        st.builds(pa.large_list, fields),
        st.builds(pa.list_, fields, st.integers(0, 9)),
        st.builds(pa.struct, st.lists(fields, min_size=1, max_size=3)),
        st.builds(pa.map_, st.just(pa.string()), inner),
        st.builds(pa.dictionary, st.just(pa.int16()), st.just(pa.string()), st.booleans()),
    )


@given(types=st.lists(st.recursive(PLAIN, nested, max_leaves=5), min_size=1, max_size=3))
def test_what_pyarrow_prints_is_read_back(types: list[pa.DataType]) -> None:
    names = [f"c {place}" for place in range(len(types))]
    text = ",".join(f"{name}: {each}" for name, each in zip(names, types, strict=True))
    schema = parse_schema(text)
    assert schema == pa.schema(list(zip(names, types, strict=True)))
    assert pa.ipc.read_schema(pa.py_buffer(base64.b64decode(schema_message(schema)))) == schema


def test_short_words_and_quoted_names() -> None:
    schema = parse_schema('user:int64,"a:b, ""c""":decimal(10,2),ts:timestamp[ms],l:list<int8>')
    assert schema == pa.schema(
        [
            ("user", pa.int64()),
            ('a:b, "c"', pa.decimal128(10, 2)),
            ("ts", pa.timestamp("ms")),
            ("l", pa.list_(pa.int8())),
        ]
    )
    assert parse_schema("a:decimal(50),b:float64,c:utf8,d:int8 not null") == pa.schema(
        [
            ("a", pa.decimal256(50, 0)),
            ("b", pa.float64()),
            ("c", pa.string()),
            pa.field("d", pa.int8(), nullable=False),
        ]
    )


@pytest.mark.parametrize(
    "text",
    [
        *("", "a", "a:", ":int64", "a:int65", "a:int64,", "a:int64 b:int8", "a:list<", "a:list<>"),
        *("a:int8,a:int8", "a:decimal(0,0)", "a:decimal(77,0)", "a:timestamp[h]", "a:int64>"),
        *("a:fixed_size_binary[-1]", "a:struct<>", "a:map<string>", "a:dictionary<int8>"),
    ],
)
def test_what_is_no_schema_is_refused_in_a_line(text: str) -> None:
    with pytest.raises(core.UsageError) as why:
        parse_schema(text)
    assert why.value.setting == "schema"
    assert "\n" not in str(why.value)
