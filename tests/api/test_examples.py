"""The examples give the same results as a few lines of plain Python."""

import collections
import importlib.util
import json
import random
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pcsv
import pyarrow.parquet as pq
import pytest

from support.cli.command import Tonnage
from support.stores.disk import ROOT
from tonnage import Input
from tonnage.run.sort.gensort import generate

EXAMPLES = sorted((ROOT / "examples").glob("*.py"))


def example(name: str) -> Any:
    """The module of an example."""
    path = ROOT / "examples" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(f"example_{name}", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def rows(disk: Path, name: str, inputs: Any, **options: Any) -> list[dict[str, Any]]:
    """What an example writes."""
    example(name).JOB.run(inputs, disk / "out", disk / "scratch", memory="16MiB", **options)
    parts = sorted((disk / "out").glob("part-*"))
    return [row for part in parts for row in pq.read_table(part).to_pylist()]


def zipf(draw: random.Random, count: int) -> list[str]:
    """Words of which few are frequent."""
    return [f"Wörd{int(draw.paretovariate(0.9)) % 3000}" for _ in range(count)]


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_examples_are_short(path: Path) -> None:
    assert len(path.read_text().splitlines()) <= 50


def test_word_count(disk: Path) -> None:
    draw = random.Random(1)
    lines = ["  ".join(zipf(draw, draw.randrange(12))) for _ in range(20_000)]
    (disk / "in.txt").write_text("\n".join(lines))
    found = rows(disk, "word_count", disk / "in.txt")
    expected = collections.Counter(word.lower() for line in lines for word in line.split())
    assert {row["key"]: row["n"] for row in found} == expected


def test_sessions(disk: Path) -> None:
    draw = random.Random(2)
    clicks = []
    for user in range(400):
        at = draw.randrange(10_000)
        for _ in range(draw.randrange(1, 200)):
            clicks.append({"user": f"user {user}", "at": at})
            at += draw.choice([0, 5, 60, 1799, 1800, 1801, 9000])
    draw.shuffle(clicks)
    pcsv.write_csv(pa.Table.from_pylist(clicks), disk / "clicks.csv")
    found = rows(disk, "sessions", disk / "clicks.csv")
    expected = []
    moments: dict[str, list[int]] = {}
    for click in clicks:
        moments.setdefault(click["user"], []).append(click["at"])
    for user, own in moments.items():
        session: list[int] = []
        for at in sorted(own):
            if session and at - session[-1] >= 1800:
                expected.append((user, session[0], session[-1] - session[0], len(session)))
                session = []
            session.append(at)
        expected.append((user, session[0], session[-1] - session[0], len(session)))
    assert sorted(tuple(row.values()) for row in found) == sorted(expected)


def test_inverted_index(disk: Path) -> None:
    draw = random.Random(3)
    documents = [
        {"id": number, "text": " ".join(zipf(draw, draw.randrange(1, 60)))} for number in range(900)
    ]
    (disk / "documents.jsonl").write_text("\n".join(map(json.dumps, documents)))
    found = rows(disk, "inverted_index", disk / "documents.jsonl")
    expected: dict[str, set[int]] = {}
    for document in documents:
        for word in document["text"].lower().split():
            expected.setdefault(word, set()).add(document["id"])
    assert {row["word"]: row["documents"] for row in found} == {
        word: sorted(of) for word, of in expected.items()
    }


def test_join(disk: Path) -> None:
    draw = random.Random(4)
    users = [{"id": number, "name": f"name {number}"} for number in range(500)]
    orders = [{"user": draw.randrange(600), "cents": draw.randrange(9999)} for _ in range(5000)]
    pcsv.write_csv(pa.Table.from_pylist(users), disk / "users.csv")
    pcsv.write_csv(pa.Table.from_pylist(orders), disk / "orders.csv")
    module = example("join")
    inputs = [
        Input(disk / "users.csv", map=module.users),
        Input(disk / "orders.csv", map=module.orders),
    ]
    found = rows(disk, "join", inputs)
    expected = [
        (order["user"], order["cents"], f"name {order['user']}")
        for order in orders
        if order["user"] < 500
    ]
    assert sorted(tuple(row.values()) for row in found) == sorted(expected)


def test_a_join_keeps_rows_whose_values_are_null(disk: Path) -> None:
    pq.write_table(pa.table({"id": [1, 2, 3], "name": ["a", None, "c"]}), disk / "users.parquet")
    orders = pa.table({"user": [1, 2, 3, 3], "cents": [10, 20, 30, None]})
    pq.write_table(orders, disk / "orders.parquet")
    module = example("join")
    inputs = [
        Input(disk / "users.parquet", map=module.users),
        Input(disk / "orders.parquet", map=module.orders),
    ]
    found = rows(disk, "join", inputs)
    assert sorted(map(str, (tuple(row.values()) for row in found))) == [
        "(1, 10, 'a')",
        "(2, 20, None)",
        "(3, 30, 'c')",
        "(3, None, 'c')",
    ]


def test_sort(disk: Path, tonnage: Tonnage) -> None:
    generate(50_000, [disk / "records"])
    places = ["--output", disk / "out", "--scratch", disk / "scratch", "--memory", "16MiB"]
    job = f"{ROOT / 'examples' / 'sort.py'}:JOB"
    tonnage.run(
        "run", "mapreduce", job, disk / "records", *places, "--input-format=records:100", check=True
    )
    parts = sorted((disk / "out").glob("part-*"))
    found = [row for part in parts for row in pq.read_table(part)["record"].to_pylist()]
    data = (disk / "records").read_bytes()
    assert found == sorted(data[at : at + 100] for at in range(0, len(data), 100))
