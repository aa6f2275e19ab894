"""Fuzz the importers: mutate other tools' results and read them.

    python tests/support/data/fuzz_importers.py --seconds 60 [--importer fio] [--seed 1]

Whatever a file contains, ``read`` returns metrics that obey their schema, or raises
`UnreadableFile` with one line. The first violation is shown, with its seed and its file.
"""

import argparse
import copy
import itertools
import json
import math
import random
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from tonnage.base.records import Metric, Observation
from tonnage.base.records.base import to_builtins
from tonnage.measure.importers.detection import read
from tonnage.measure.importers.metric import OPERATIONS, UnreadableFile
from tonnage.measure.importers.node_files import read_nodes
from tonnage.measure.observe.nodes.observation import NoCommonTime, common_time, observe_nodes

SAMPLES = Path(__file__).resolve().parents[1] / "recorded" / "importers"

# Replacements for numbers and values.
ODD_NUMBERS = ["-1", "0", "nan", "inf", "1e999", "9" * 400, "9" * 5000, "", "0x1f", "1_0", "٣", "-"]
ODD_VALUES: list[Any] = [
    None,
    True,
    -1,
    0,
    1.5,
    1e300,
    10**400,
    math.nan,
    math.inf,
    "",
    "1",
    "-1",
    "nan",
    "\ud800",
    "a\nb\x1b[31m",
    [],
    {},
    [[]],
    [1, "x", None],
    {"percentile": {"x": 1}, "bins": {"-1": -1}, "N": "y"},
]


def importers() -> list[str]:
    """The importers with samples."""
    return sorted(path.name for path in SAMPLES.iterdir() if path.is_dir())


def samples(importer: str | None = None) -> list[Path]:
    """The samples of an importer, or of all."""
    return sorted(path for path in (SAMPLES / (importer or "")).rglob("*") if path.is_file())


def cases(seed: int, of: list[Path]) -> Iterator[tuple[str, bytes]]:
    """An endless series of names and contents."""
    chance = random.Random(seed)
    contents = {path: path.read_bytes() for path in of}
    while True:
        path = chance.choice(of)
        yield path.name, mutated(chance, contents[path], contents)


def mutated(chance: random.Random, content: bytes, contents: dict[Path, bytes]) -> bytes:
    """The content with one mistake or several; ``contents`` are those to splice with."""
    for _ in range(chance.choice((1, 1, 1, 2, 4))):
        content = chance.choice(MUTATIONS)(chance, content, contents)
    return content


def check(path: Path) -> str:
    """Read a file; returns "read" or "refused", or raises AssertionError for anything else."""
    observes(path)
    try:
        found = read(path)
    except UnreadableFile as why:
        _is_one_line(why, path)
        return "refused"
    assert found
    for reading in found:
        obeys(reading)
    return "read"


def observes(path: Path) -> None:
    """Assert that the file is a run of nodes with a record that can be read, or is refused."""
    try:
        imported = read_nodes([path])
        begin, end = common_time(imported.nodes)
    except (UnreadableFile, NoCommonTime) as why:
        _is_one_line(why, path)
        return
    seen = observe_nodes(imported.nodes, begin, end, data=1, notes=imported.notes)
    content = json.dumps(seen.to_json(), allow_nan=False)
    assert Observation.from_json(json.loads(content)) == seen
    assert all(note.isprintable() for note in seen.notes)
    assert all(node.name.isprintable() for node in seen.nodes)


def _is_one_line(why: Exception, path: Path) -> None:
    message = str(why)
    assert message.isprintable(), repr(message)
    assert isinstance(why, NoCommonTime) or message.startswith(str(path)[:20]), repr(message)


def obeys(reading: Metric) -> None:
    """Assert a metric's schema: a known operation, and numbers that are finite and not negative."""
    assert reading.operation in OPERATIONS
    values = to_builtins(reading)
    json.dumps(values, allow_nan=False, ensure_ascii=False).encode()
    for name in ("block_bytes", "concurrency"):
        assert values[name] is None or (type(values[name]) is int and values[name] >= 0), name
    for name, value in [
        ("bandwidth", reading.bandwidth_bytes_per_second),
        ("operations", reading.operations_per_second),
        *values["latency_seconds"].items(),
    ]:
        assert value is None or (math.isfinite(value) and value >= 0), name
    for pairs in (reading.bins, reading.series):
        for at, value in pairs or []:
            assert math.isfinite(at) and at >= 0 and math.isfinite(value) and value >= 0
    assert reading.direct in (None, True, False)
    assert reading.cached is None or reading.cached.isprintable()


def fuzz(seed: int, of: list[Path], *, seconds: float = math.inf, count: int = 0) -> Counter[str]:
    """Read mutated samples for some time, or a number of them; counts the outcomes."""
    outcomes: Counter[str] = Counter()
    until = time.monotonic() + seconds
    with tempfile.TemporaryDirectory() as directory:
        made = cases(seed, of)
        for name, content in itertools.islice(made, count) if count else made:
            if time.monotonic() > until:
                break
            path = Path(directory) / name
            path.write_bytes(content)
            try:
                outcomes[check(path)] += 1
            except Exception as why:
                kept = Path(tempfile.mkdtemp(prefix="fuzz-")) / name
                kept.write_bytes(content)
                raise AssertionError(f"seed {seed}, case {outcomes.total()}: {kept}") from why
            path.unlink()
    return outcomes


_Contents = dict[Path, bytes]


def _flip(chance: random.Random, content: bytes, _: _Contents) -> bytes:
    changed = bytearray(content)
    for _unused in range(chance.choice((1, 3, 20))):
        if changed:
            changed[chance.randrange(len(changed))] = chance.choice(
                (0, 10, 32, 34, 45, 48, 57, 123, 255, chance.randrange(256))
            )
    return bytes(changed)


def _cut(chance: random.Random, content: bytes, _: _Contents) -> bytes:
    return content[: chance.randrange(len(content) + 1)]


def _behead(chance: random.Random, content: bytes, _: _Contents) -> bytes:
    return content[chance.randrange(len(content) + 1) :]


def _lines(chance: random.Random, content: bytes, _: _Contents) -> bytes:
    lines = content.split(b"\n")
    at, other = chance.randrange(len(lines)), chance.randrange(len(lines))
    match chance.randrange(4):
        case 0:
            del lines[at]
        case 1:
            lines.insert(other, lines[at])
        case 2:
            lines[at], lines[other] = lines[other], lines[at]
        case _:
            lines[at:other] = []
    return b"\n".join(lines)


def _splice(chance: random.Random, content: bytes, contents: _Contents) -> bytes:
    other = contents[chance.choice(list(contents))]
    return content[: chance.randrange(len(content) + 1)] + other[chance.randrange(len(other) + 1) :]


def _number(chance: random.Random, content: bytes, _: _Contents) -> bytes:
    """Turns a run of digits into something odd."""
    digits = [at for at, sign in enumerate(content) if 48 <= sign <= 57]
    if not digits:
        return content
    start = end = chance.choice(digits)
    while end < len(content) and 48 <= content[end] <= 57:
        end += 1
    return content[:start] + chance.choice(ODD_NUMBERS).encode() + content[end:]


def _word(chance: random.Random, content: bytes, _: _Contents) -> bytes:
    """Takes a field away, or puts one twice."""
    mark = chance.choice((b",", b";", b"\t", b" ", b":"))
    fields = content.split(mark)
    at = chance.randrange(len(fields))
    fields[at : at + 1] = chance.choice(([], [fields[at]] * 2, [b""]))
    return mark.join(fields)


def _value(chance: random.Random, content: bytes, contents: _Contents) -> bytes:
    """Puts another type in the place of a JSON value, takes a member away, or nests deeply."""
    try:
        document = json.loads(content)
    except (ValueError, RecursionError):
        return _number(chance, content, contents)
    for _unused in range(chance.choice((1, 1, 3))):
        places = list(_places(document))
        if not places:
            break
        holder, key = chance.choice(places)
        if chance.random() < 0.3:
            del holder[key]
        else:
            holder[key] = copy.deepcopy(chance.choice(ODD_VALUES))
    try:
        made = json.dumps(document).encode()
    except ValueError:
        return content
    if chance.random() < 0.02:
        made = made.replace(b"{}", b"[" * 100_000 + b"]" * 100_000)
    return made


def _places(document: Any) -> Iterator[tuple[Any, Any]]:
    """Where there is a value in a document: what holds it, and its key."""
    waiting = [document] if isinstance(document, list | dict) else []
    while waiting:
        holder = waiting.pop()
        keys = range(len(holder)) if isinstance(holder, list) else list(holder)
        for key in keys:
            yield holder, key
            if isinstance(holder[key], list | dict):
                waiting.append(holder[key])


MUTATIONS: list[Callable[[random.Random, bytes, _Contents], bytes]] = [
    _flip,
    _cut,
    _behead,
    _lines,
    _splice,
    _number,
    _number,
    _word,
    _value,
    _value,
    _value,
]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--importer", choices=importers(), action="append")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    for importer in arguments.importer or importers():
        try:
            done = fuzz(arguments.seed, samples(importer), seconds=arguments.seconds)
        except AssertionError:
            traceback.print_exc()
            raise SystemExit(1) from None
        print(f"{importer}: {done.total()} cases, {dict(done)}", flush=True)


if __name__ == "__main__":
    main()
