"""One wrong value in a file is one line that names the file and the place, or changes nothing.

The kinds of records come from the package: a new one without an example fails here.
"""

from __future__ import annotations

import ast
import functools
import importlib
import json
import re
from collections.abc import Iterator
from pathlib import Path, PosixPath
from typing import Any

import pytest
from msgspec import inspect

from support.data.mutations import Mutation, mutations, shown, types_at
from support.stores.disk import ROOT
from tonnage.base.records import base
from tonnage.base.records.base import Record, RecordError, StoredFile, read_values
from tonnage.base.system.undo_journal import Undo
from tonnage.run.reduce.index import RowType
from tonnage.run.two_pass import messages
from tonnage.run.two_pass.job_dir import schemas

RECORDED = ROOT / "tests" / "support" / "recorded" / "artifacts"
SIGNED = {
    *("autocorrelation", "slope_per_second", "deviations", "error_fraction", "niceness"),
    *("exit_code", "ramp_seconds", "skew_seconds", "k"),
}
"""Fields that may be negative (``k`` is a job's parameter); and those of numbers on an axis of
logarithms, without a name."""
FREE = {"edges", "values", "places"}

STEP: dict[str, Any] = {
    "seconds": 0.5,
    "cpu_seconds": 0.25,
    "peak_memory_bytes": 4096,
    "phases": [
        {
            "name": "pass_one",
            "graph": "read x1 -> write x1",
            "began_seconds": 0.0,
            "seconds": 0.5,
            "bottleneck": "read",
            "memory_bytes": 4096,
            "disk_modes": [{"engine": "io_uring", "direct": True}],
            "stages": [
                {
                    "name": "read",
                    "kind": "read",
                    "workers": 1,
                    "bytes": 800,
                    "records": 8,
                    "busy_seconds": 0.5,
                    "starved_seconds": 0.0,
                    "blocked_seconds": 0.0,
                    "cpu_seconds": 0.25,
                    "memory_bytes": 4096,
                    "config": {},
                    "depth": 0,
                }
            ],
            "timeline": [],
        }
    ],
    "read_bytes": 800,
    "written_bytes": 800,
    "sent_bytes": 0,
    "received_bytes": 0,
    "repartitioned_bytes": 0,
    "requests": {"requests": 1, "retries": 0, "hedged": 0, "errors": {"timeout": 1}},
}
FILE = ["out/part-00000", 8, 800, 31]
BOUND = {"key": "00ff", "after": False}
PARTS: dict[str, tuple[Any, list[Any]]] = {
    "Events": (
        schemas.Events,
        [
            {
                "event": "round",
                "number": 0,
                "reads": {"a": [0]},
                "owners": [[0, "a"]],
                "outcomes": {"a": {"read": [8, 800, 31], "lost": [], "partitions": [[0, 800]]}},
                "blames": {"a": ["b"]},
                "seconds": 1.5,
                "told": {"a": {"pass_one": STEP}},
                "bytes": 800,
                "rows": 8,
                "given_bytes": 800,
                "schemas": [["AAAA", "in/0 on a"]],
            },
            {
                "event": "lost",
                "node": "b",
                "why": "does not answer",
                "reads": True,
                "joins": False,
                "keeps": [[0, [FILE]]],
                "heirs": [[1, "a", [FILE]]],
            },
            {"event": "command"},
            {"event": "pass_two", "seconds": 1.5, "told": {"a": {"pass_two": STEP}}},
            {"event": "copy", "seconds": 1.5, "told": {}},
            {"event": "publish", "told": {}},
        ],
    ),
    "OutputFiles": (
        schemas.OutputFiles,
        [
            {
                "node": "a",
                "path": "out/part-00000",
                "records": 8,
                "bytes": 800,
                "checksum": "1f",
                "range": [None, BOUND],
                "copy": {"node": "b", "path": "out/_copies/part-00000"},
            }
        ],
    ),
    "FinishedFile": (
        messages.FinishedFile,
        {
            "path": "out/part-00000",
            "bytes": 800,
            "records": 8,
            "checksum": "1f",
            "copy": False,
            "files": 1,
            "taken": 800,
        },
    ),
    "list[Undo]": (
        list[Undo],
        [{"commands": [["umount", "/mnt"]], "question": ["findmnt"], "answers": ["/mnt"]}],
    ),
    "RowType": (RowType, {"name": "numpy", "dtype": "<f4"}),
}
"""Examples of what is not a file of one object: lists, lines, metadata."""
EXAMPLES: dict[str, Any] = {
    "JobFile": {
        "schema": "tonnage.fleet-job/1",
        "job": "0123456789abcdef",
        "began_at": "2026-11-26T01:00:00+00:00",
        "settings": {"inputs": ["in"], "memory_bytes": 1 << 30},
    },
    "InputFiles": {
        "holders": [["a", "b"]],
        "files": [["in/0", 11, 800, 1_700_000_000_000, 1_700_000_000_000, None, 0]],
    },
    "PlanFile": {
        "holders": [["a", "b"]],
        "files": [["in/0", 11, 800, 1_700_000_000_000, 1_700_000_000_000, None, 0]],
        "partitions": 2,
        "weights": {"a": 1.0, "b": 0.5},
        "bounds": [{"key": "00ff", "after": False}],
        "single": [False, False],
    },
    "SpilledBlocks": {
        "came": [{"records": 8, "bytes": 800, "checksum": 31}],
        "spans": [4096],
    },
    "Manifest": {
        "format": "tonnage.output/1",
        "records": 8,
        "bytes": 800,
        "checksum": "1f",
        "parts": ["part-00000"],
    },
}


UNTYPED = {"Any", "dict[str, Any]"}
"""Content that its reader checks: `Record.from_json`, and the core."""
DECODERS = {"decode", "read_values", "_read"}


type_info = functools.cache(inspect.type_info)


class Content(PosixPath):
    """A path of a file that is in memory: there are thousands of them."""

    content = b""

    def read_bytes(self) -> bytes:
        return self.content


def subclasses(kind: type) -> Iterator[type]:
    for each in kind.__subclasses__():
        yield each
        yield from subclasses(each)


def kinds() -> dict[str, type]:
    """All kinds of the package: those of all files that name one of the two bases."""
    package = ROOT / "python"
    for file in (package / "tonnage").rglob("*.py"):
        if BASES.search(file.read_text()):
            importlib.import_module(".".join(file.relative_to(package).with_suffix("").parts))
    return {each.__name__: each for of in (Record, StoredFile) for each in subclasses(of)}


def decoded_kinds() -> set[str]:
    """What files' contents are decoded to, as the package's sources name it."""
    found = set()
    for file in (ROOT / "python" / "tonnage").rglob("*.py"):
        tree = ast.parse(file.read_text())
        if not any(
            isinstance(node, ast.ImportFrom)
            and node.module == base.__name__
            and DECODERS & {each.name for each in node.names}
            for node in ast.walk(tree)
        ):
            continue
        for node in ast.walk(tree):
            match node:
                case ast.Call(func=called, args=[_, kind, *_]):
                    if ast.unparse(called).removeprefix("self.") in DECODERS:
                        found.add(re.sub(r"^\w+\.", "", ast.unparse(kind)))
    return found - {"kind", "PLAN_FILE"}  # Passed on from other calls; a class of the package.


BASES = re.compile(r"^class \w+\((Record|StoredFile)\b", re.MULTILINE)
KINDS = kinds()


def example(kind: type) -> Any:
    if issubclass(kind, Record):
        name = kind.SCHEMA.removeprefix("tonnage.").replace("/", "-")
        return shortened(json.loads((RECORDED / f"{name}.json").read_bytes()))
    return EXAMPLES[kind.__name__]


def shortened(value: Any) -> Any:
    """The same without the ends of long lists, whose entries are alike."""
    if isinstance(value, dict):
        return {name: shortened(each) for name, each in value.items()}
    return [shortened(each) for each in value[:3]] if isinstance(value, list) else value


def read(kind: Any, path: Path) -> Any:
    """What the file says, as JSON values."""
    if isinstance(kind, type) and issubclass(kind, Record):
        return kind.read(path).to_json()
    return read_values(path, kind)


def test_every_kind_has_an_example() -> None:
    assert len(KINDS) > 20
    for kind in KINDS.values():
        assert example(kind)


def test_everything_that_is_decoded_has_an_example() -> None:
    found = decoded_kinds()
    assert len(found) > 8 and found <= {*KINDS, *PARTS, *UNTYPED}


@pytest.mark.parametrize("name", [*sorted(KINDS), *PARTS])
def test_one_wrong_value_is_one_line_or_changes_nothing(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(base, "read_regular", lambda path: path.read_bytes())
    kind, document = PARTS[name] if name in PARTS else (KINDS[name], example(KINDS[name]))
    file = Content("dir/file.json")
    file.content = json.dumps(document).encode()
    assert holds(read(kind, file), document)
    for mutation in mutations(document):
        file.content = json.dumps(mutation.document).encode()
        try:
            found = read(kind, file)
        except RecordError as why:
            assert_names_the_place(str(why), file, mutation)
        else:
            assert_allowed(kind, mutation)
            assert holds(found, mutation.document), mutation.name


def assert_names_the_place(line: str, file: Path, mutation: Mutation) -> None:
    assert "\n" not in line and line.startswith(f"{file}"), (mutation.name, line)
    if mutation.path == ("schema",):
        assert "expected tonnage." in line or "$.schema: " in line, (mutation.name, line)
        return
    # Of a check across fields the place is what holds them.
    place = line.removeprefix(f"{file}: ").partition(": ")[0]
    assert place.startswith("$"), (mutation.name, line)
    whole = shown(mutation.path)
    assert whole.startswith(place) or place.startswith(whole), (mutation.name, line)


def assert_allowed(kind: Any, mutation: Mutation) -> None:
    """Check that the mutated document is one that the format allows."""
    types = types_at(type_info(kind), mutation.path)
    if any(isinstance(each, inspect.AnyType) for each in types):
        return
    numbers = [each for each in types if isinstance(each, inspect.IntType | inspect.FloatType)]
    match mutation.what:
        case "null":
            assert any(isinstance(each, inspect.NoneType) for each in types), mutation.name
        case "sign":
            names = {each for each in mutation.path if isinstance(each, str)}
            assert numbers and names & (SIGNED | FREE | {"settings", "files"}), mutation.name
        case "part":
            assert any(isinstance(each, inspect.FloatType) for each in types), mutation.name
        case "huge" | "not finite":
            # Inodes and sums of checksums have no largest number.
            assert mutation.path[-1] in (1, 2, 3), mutation.name
        case "type":
            assert any(accepts(each, mutation) for each in types), mutation.name
        case "deleted" | "added":
            pass  # A field with a default, or an entry of a dictionary; else it is refused.


def accepts(kind: inspect.Type, mutation: Mutation) -> bool:
    value = mutation.document
    for step in mutation.path:
        value = value[step]
    match kind:
        case inspect.StrType():
            return isinstance(value, str)
        case inspect.FloatType() | inspect.IntType():
            return isinstance(value, int | float)
        case inspect.ListType() | inspect.TupleType():
            return isinstance(value, list)
        case inspect.DictType():
            return isinstance(value, dict)
    return False


def holds(found: Any, said: Any) -> bool:
    """Whether all that the file says is in what was read, under the same names."""
    if isinstance(said, dict):
        return isinstance(found, dict) and all(
            name in found and holds(found[name], value) for name, value in said.items()
        )
    if isinstance(said, list):
        return (
            isinstance(found, list | tuple)
            and len(found) == len(said)
            and all(map(holds, found, said))
        )
    return bool(found == said) and isinstance(found, bool) == isinstance(said, bool)
