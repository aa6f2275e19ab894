"""The house's own rules: who may lean on whom, how a file opens, and what no file may hold."""

import ast
import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

from support.disk import ROOT

PACKAGE = ROOT / "python" / "tonnage"

# What each part of the package may import. Measuring and running are apart, and so are predicting
# and reporting: each reads what the one before it wrote, so any of them can be run again alone.
PARTS = {
    "__init__": {"engine", "map_reduce", "reduction", "run"},
    "artifacts": set(),
    "words": set(),
    "combine": {"engine"},
    "statistics": set(),
    "cloud_truth": {"artifacts", "words"},
    "catalog": {"artifacts", "words"},
    "model": {"artifacts", "words", "statistics", "cloud_truth"},
    "plan": {"artifacts", "words", "statistics", "catalog", "model"},
    "report": {"artifacts", "words"},
    # A plan as a page, which has the reports' looks.
    "explore": {"artifacts", "words", "statistics", "catalog", "model", "plan", "report"},
    "engine": {"artifacts", "_core"},
    "changes": {"artifacts", "engine"},
    "lab": {"artifacts", "words", "catalog", "changes"},
    "measure": {"artifacts", "engine", "statistics", "cloud_truth", "changes"},
    "run": {"artifacts", "engine", "combine"},
    "simulate": {"artifacts", "statistics", "engine", "model", "plan", "run"},
    "fleet": {"artifacts", "words", "engine", "statistics", "measure", "run"},
    # What it rents it reaches by commands of a shell: of what runs there it imports nothing.
    "launch": {"artifacts", "words", "engine", "catalog", "plan"},
}
# A job of a user's own functions: it runs, and says on which machine.
PARTS["map_reduce"] = {"artifacts", "words", "engine", "measure", "run", "fleet"}
PARTS["reduction"] = {"artifacts", "words", "engine", "measure", "run", "fleet"}
PARTS["testing"] = {"run"}
PARTS["study"] = set(PARTS) - {"__init__"}
PARTS["study_fleet"] = PARTS["study"]
PARTS["cli"] = PARTS["study"] | {"study", "study_fleet"}
PARTS["__main__"] = {"cli"}

# What each crate may depend on.
CRATES = {
    "pipeline": set(),
    "disk": set(),
    "net": set(),
    "object": set(),
    "records": set(),
    "reductions": set(),
    "stages": {"pipeline", "disk", "net", "object", "records"},
    "graphs": {"stages", "pipeline", "disk", "net", "object", "records"},
    "py": {"graphs", "pipeline", "disk", "reductions"},
}

LONGEST = 800


def test_parts_import_only_what_they_may() -> None:
    broken = [
        f"{file.relative_to(ROOT)} imports {part}"
        for file in PACKAGE.rglob("*.py")
        for part in _imported_parts(file) - PARTS[_part(file)] - {_part(file), "__init__"}
    ]
    assert broken == []


def test_only_the_fleet_knows_ray() -> None:
    known = {
        str(file.relative_to(PACKAGE))
        for file in PACKAGE.rglob("*.py")
        for name in _imported_names(file)
        if name.partition(".")[0] == "ray"
    }
    assert known == {"fleet/cluster.py"}


def test_only_who_asks_aws_knows_its_library() -> None:
    known = {
        str(file.relative_to(PACKAGE))
        for file in PACKAGE.rglob("*.py")
        for name in _imported_names(file)
        if name.partition(".")[0] in {"boto3", "botocore"}
    }
    assert known == {"catalog/refresh.py", "catalog/asking.py", "launch/ec2.py"}


def test_crates_depend_only_on_what_they_may() -> None:
    metadata = subprocess.run(
        ["cargo", "metadata", "--no-deps", "--offline", "--format-version=1"],
        check=True,
        capture_output=True,
        cwd=ROOT,
    ).stdout
    broken = [
        f"{package['name']} depends on {dependency['name']}"
        for package in json.loads(metadata)["packages"]
        for dependency in package["dependencies"]
        if dependency["name"].startswith("tonnage-")
        if _crate(dependency) not in CRATES[_crate(package)]
    ]
    assert broken == []


def test_files_open_with_what_they_do() -> None:
    silent = [
        str(file.relative_to(ROOT))
        for file in _sources("crates", "python")
        if not (
            file.read_text().startswith("//!")
            if file.suffix == ".rs"
            else ast.get_docstring(ast.parse(file.read_text()))
        )
    ]
    assert silent == []


def test_files_are_of_a_readable_length() -> None:
    lengths = {
        str(file.relative_to(ROOT)): len(file.read_text().splitlines())
        for file in _sources("crates", "python", "tests")
    }
    assert {file: lines for file, lines in lengths.items() if lines > LONGEST} == {}


def test_nothing_names_a_place_of_one_machine() -> None:
    # Where a path starts: in the middle of one, or of an address, such a name is innocent.
    place = re.compile(rb"(?:(?<![\w.$}~/-])|(?<=file://))/(?:home|root|work|Users)/")
    assert [str(file) for file in _tracked() if place.search((ROOT / file).read_bytes())] == []


def test_locks_name_no_registry() -> None:
    for lock in (ROOT / "requirements").glob("*.txt"):
        assert "://" not in lock.read_text(), lock.name
    sources = re.findall(r'^source = "(.*)"$', (ROOT / "Cargo.lock").read_text(), re.MULTILINE)
    # Cargo's own name for its default registry, whichever mirror served it.
    assert set(sources) <= {"registry+https://github.com/rust-lang/crates.io-index"}


def _part(file: Path) -> str:
    """The part of the package that a file belongs to."""
    return file.relative_to(PACKAGE).parts[0].removesuffix(".py")


def _imported_parts(file: Path) -> set[str]:
    """The parts of the package that a file imports, at its top or anywhere in it."""
    found = set()
    for name in _imported_names(file):
        package, _, rest = name.partition(".")
        if package == PACKAGE.name:
            part = rest.partition(".")[0]
            # What is no part is a name that the package itself defines.
            found.add(part if part in {*PARTS, "_core"} else "__init__")
    return found


def _imported_names(file: Path) -> Iterator[str]:
    """The full name of everything that a file imports."""
    here = (PACKAGE.name, *file.relative_to(PACKAGE).parts)
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = here[: len(here) - node.level] if node.level else ()
            module = (*base, node.module) if node.module else base
            yield from (".".join((*module, alias.name)) for alias in node.names)


def _crate(package: dict[str, str]) -> str:
    return package["name"].removeprefix("tonnage-")


def _sources(*directories: str) -> list[Path]:
    return [
        file
        for directory in directories
        for file in sorted((ROOT / directory).rglob("*"))
        if file.suffix in {".rs", ".py"}
    ]


def _tracked() -> list[Path]:
    """The files that git keeps or, being new and not ignored, is about to."""
    listed = subprocess.run(
        # Whoever owns the checkout, reading its list of files is safe.
        ["git", "-c", "safe.directory=*", "ls-files", "-z", "-co", "--exclude-standard"],
        check=True,
        capture_output=True,
        text=True,
        cwd=ROOT,
    ).stdout
    return [path for path in map(Path, listed.split("\0")[:-1]) if (ROOT / path).is_file()]
