"""`run sort --by` of JSON lines: lines keep their bytes, values compare as what they are."""

import json
import random
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.cli.command import Tonnage
from support.stores.disk import disk_dir
from tonnage.base import core
from tonnage.measure.trial import environment
from tonnage.run.sort.tables import TableOrder, sort_table

MIB = 1 << 20


def sorted_lines(disk: Path, text: bytes, order: TableOrder) -> bytes:
    (disk / "in.jsonl").write_bytes(text)
    sort_table(
        [disk / "in.jsonl"],
        [disk / "out"],
        [disk / "scratch"],
        order=order,
        memory_bytes=32 * MIB,
        environment=environment.capture([disk]),
        began_at="now",
        command=["test"],
    )
    return b"".join(path.read_bytes() for path in sorted((disk / "out").glob("part-*.jsonl")))


NUMBERS = st.one_of(
    st.integers(-(10**30), 10**30).map(str),
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.sampled_from(["0", "-0", "1e3", "1000.0", "1E-3", "0.001", "18446744073709551615"]),
)
STRINGS = st.text('ab\0ä𝄞"\\\n', max_size=6).map(json.dumps)
VALUES = {"number": NUMBERS, "string": STRINGS, "boolean": st.sampled_from(["true", "false"])}


def value_of(line: bytes) -> Any:
    found = json.loads(line, parse_int=Decimal, parse_float=Decimal).get("user", {}).get("id")
    return found.encode() if isinstance(found, str) else found


@settings(max_examples=30)
@given(st.data(), st.booleans(), st.booleans())
def test_any_member_is_a_key(data: st.DataObject, descending: bool, nulls_first: bool) -> None:
    kind = data.draw(st.sampled_from(sorted(VALUES)))
    values = data.draw(st.lists(st.none() | VALUES[kind], min_size=1, max_size=30))
    forms = ['{"x":[{"user":7}],"user":{"a":1, "id" : %s}}', '{ "user": {"id": %s}, "id": 1 }']
    lines = [
        (data.draw(st.sampled_from(forms)) % ("null" if value is None else value)).encode()
        for value in values
    ]
    lines += [b'{"user":{}}', b'{"user":{"id":null}}', b"{}"]
    there = [line for line in lines if value_of(line) is not None]
    nulls = [line for line in lines if value_of(line) is None]
    there.sort(key=value_of, reverse=descending)
    if descending:  # Lines with equal values stay in their order.
        there = sorted([x for x in lines if value_of(x) is not None][::-1], key=value_of)[::-1]
    expected = nulls + there if nulls_first else there + nulls
    by = ("-" if descending else "") + "user.id" + (":nulls-first" if nulls_first else "")
    with disk_dir() as disk:
        got = sorted_lines(disk, b"\n".join(lines), TableOrder(by=by, stable=True))
        assert got == b"".join(line + b"\n" for line in expected)


def test_a_name_may_have_a_dot_and_the_last_of_two_counts() -> None:
    text = b'{"a.b": 2, "a": {"b": 1}}\r\n{"a.b": 9, "a.b": 1}\r\n'
    with disk_dir() as disk:
        got = sorted_lines(disk, text, TableOrder(by="a.b"))
        assert got.splitlines(keepends=True) == text.splitlines(keepends=True)[::-1]


def test_many_lines_by_two_members() -> None:
    rng = random.Random(3)
    objects = [
        {"host": f"h{rng.randrange(50)}", "ms": rng.choice([rng.random(), rng.randrange(9)])}
        for _ in range(50_000)
    ]
    lines = [json.dumps(each | {"text": "x" * rng.randrange(60)}).encode() for each in objects]
    with disk_dir() as disk:
        order = TableOrder(by="host,-ms", compression="zstd")
        sorted_lines(disk, b"".join(line + b"\n" for line in lines), order)
        parts = sorted((disk / "out").glob("part-*.jsonl.zst"))
        again = TableOrder(by="host,-ms", format="json")
        got = []
        for part in parts:
            with disk_dir() as other:
                got += sorted_lines(other, part.read_bytes(), again).splitlines()
    assert sorted(got) == sorted(lines)
    keys = [(each["host"], -each["ms"]) for each in map(json.loads, got)]
    assert keys == sorted(keys)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b'{"k": 1}\n{"k": "x"}\n', "'k' has numbers and strings; a sort key has"),
        (b'{"k": [1]}\n', "'k' has lists or objects; a sort key has"),
        (b'{"j": 1, "i": 2}\n', "has a member 'k'; there are j, i"),
    ],
)
def test_what_is_no_key_is_refused(text: bytes, message: str) -> None:
    with disk_dir() as disk:
        with pytest.raises(core.UsageError, match=message):
            sorted_lines(disk, text, TableOrder(by="k"))
        assert not (disk / "out").exists()


GOOD = b'{"k": 1}\n' * 200_000
"""More than what kinds are inferred from."""


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b'{"k": "x"}', 'has .*x.* in column "k", which is no number'),
        (b'{"k": 1', "is no JSON object: EOF"),
        (b"[1]", "is no JSON object: invalid type"),
        (b"", "is no JSON object: EOF"),
        (b'{"k": 1}\r{"k": 2}', "is no JSON object: trailing characters"),
        (b'{"k": 1e99999999999}', 'has .* in column "k", which is no number'),
        (b'\xef\xbb\xbf{"k": 1}', "is no JSON object: expected value"),
    ],
)
def test_lines_that_have_no_key_are_named(line: bytes, message: str) -> None:
    with disk_dir() as disk:
        lines = GOOD.count(b"\n")
        where = rf"in\.jsonl: the record in line {lines + 1} \(byte {len(GOOD)}\) "
        with pytest.raises(core.UsageError, match=where + message):
            sorted_lines(disk, GOOD + line + b"\n", TableOrder(by="k"))
        assert not (disk / "out").exists()


def test_the_command_infers_json_from_the_name(tonnage: Tonnage) -> None:
    with disk_dir() as disk:
        (disk / "in.ndjson").write_bytes(b'{"n": 10}\n{"n": 9}\n{"n": -1.5e1}\n')
        out = ["--output", str(disk / "out"), "--scratch", str(disk / "tmp")]
        ended = tonnage.run("run", "sort", str(disk / "in.ndjson"), "--by", "n", *out)
        assert ended.returncode == 0, ended.stderr
        parts = sorted((disk / "out").glob("part-*.jsonl"))
        text = b"".join(part.read_bytes() for part in parts)
        assert text == b'{"n": -1.5e1}\n{"n": 9}\n{"n": 10}\n'
