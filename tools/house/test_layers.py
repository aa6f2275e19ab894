"""The layout of the code: allowed imports, no cycles, folders and files of a readable size."""

import ast
import json
import subprocess
from collections.abc import Iterator, Mapping
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

from house.layers import CRATES, LAYERS, OUTSIDE, as_markdown, layer_of
from house.rust_cycles import cycles

from support.stores.disk import ROOT

PACKAGE = ROOT / "python" / "tonnage"
MAX_LINES = 800
MAX_ENTRIES = 15
ONE_FILE_A_KIND = {
    "python/tonnage/base/records": "a file for each kind of record",
    "python/tonnage/base/stats": "a file for each question",
    "python/tonnage/measure/importers": "a file for each tool",
    "python/tonnage/report/explorer/assets": "a script for each module that it mirrors",
    "python/tonnage/cli": "a folder or file for each family of commands",
    "python/tonnage/cli/measure": "a file for each command",
    "tests/support/recorded": "recorded data",
}
"""Folders that may have more entries, and why."""
UNCOUNTED = ("__init__.py", "__main__.py", "py.typed", "conftest.py", "mod.rs", "lib.rs")
"""Files that every folder of its kind has."""


def test_layers_import_only_allowed_layers() -> None:
    broken = [
        f"{module} imports {imported}"
        for module, file in _modules().items()
        for imported in _imports(file)
        if layer_of(imported) not in LAYERS[layer_of(module)] | {layer_of(module), "__init__"}
    ]
    assert broken == []


def test_modules_have_no_import_cycles() -> None:
    # The package itself imports its public names only at their first use.
    _refuse_cycles({module: _imports(file) - {""} for module, file in _modules().items() if module})


def test_rust_files_have_no_import_cycles() -> None:
    crates = sorted((ROOT / "crates").rglob("Cargo.toml"))
    assert [cycle for crate in crates for cycle in cycles(crate.parent / "src")] == []


def test_libraries_of_the_edge_are_imported_only_there() -> None:
    importers: dict[str, set[str]] = {library: set() for library in OUTSIDE}
    for file in PACKAGE.rglob("*.py"):
        for name in _imported_names(file):
            library = name.partition(".")[0].replace("botocore", "boto3")
            if library in importers:
                importers[library].add(str(file.relative_to(PACKAGE)))
    assert importers == OUTSIDE


def test_crates_depend_only_on_allowed_crates() -> None:
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


def test_architecture_shows_the_enforced_tables() -> None:
    # To update it: python -m house.layers, in tools/.
    assert as_markdown() in (ROOT / "ARCHITECTURE.md").read_text()


def test_files_open_with_their_purpose() -> None:
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


def test_files_have_a_readable_length() -> None:
    lengths = {
        str(file.relative_to(ROOT)): len(file.read_text().splitlines())
        for file in _sources("crates", "python", "tests")
    }
    assert {file: lines for file, lines in lengths.items() if lines > MAX_LINES} == {}


def test_folders_have_a_readable_number_of_entries() -> None:
    listed = subprocess.run(
        ["git", "-c", "safe.directory=*", "ls-files", "python", "crates", "tests"],
        check=True,
        capture_output=True,
        text=True,
        cwd=ROOT,
    ).stdout.split()
    entries: dict[str, set[str]] = {}
    for file in listed:
        parts = Path(file).parts
        for depth in range(1, len(parts)):
            if parts[depth] not in UNCOUNTED:
                entries.setdefault("/".join(parts[:depth]), set()).add(parts[depth])
    crowded = {
        folder: len(names)
        for folder, names in entries.items()
        if len(names) > MAX_ENTRIES
        if not any(
            folder == kind or folder.startswith("tests/support/recorded")
            for kind in ONE_FILE_A_KIND
        )
    }
    assert crowded == {}


def _refuse_cycles(graph: Mapping[str, set[str]]) -> None:
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as why:
        raise AssertionError(f"import cycle: {' -> '.join(why.args[1])}") from None


def _modules() -> dict[str, Path]:
    """Return every module of the package, by its dotted name without ``tonnage.``."""
    return {_name(file): file for file in PACKAGE.rglob("*.py")}


def _name(file: Path) -> str:
    parts = file.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _imports(file: Path) -> set[str]:
    """Return the modules of the package that a file imports, anywhere in it."""
    modules = _module_names()
    found = set()
    for name in _imported_names(file):
        package, _, rest = name.partition(".")
        if package == PACKAGE.name:
            # Any other name is defined by the module before it.
            module = rest if rest in modules else rest.rpartition(".")[0]
            found.add(module)
    return found - {_name(file)}


@cache
def _module_names() -> set[str]:
    return {*_modules(), "_core"}


def _imported_names(file: Path) -> Iterator[str]:
    """Yield the full name of everything that a file imports."""
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
