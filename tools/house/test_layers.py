"""The layout of the code: allowed imports, no cycles, folders and files of a readable size."""

import ast
import json
import subprocess
from collections.abc import Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

from house.layers import CRATES, LAYERS, OUTSIDE, as_markdown, layer_of
from house.python_imports import executed_imports, imported_names, named_imports
from house.rust_cycles import cycles

from support.stores.disk import ROOT

PACKAGE = ROOT / "python" / "tonnage"
MAX_LINES = 800
MAX_ENTRIES = 15
ONE_FILE_A_KIND = {
    "python/tonnage/base/records": "a file for each kind of record, and what they share",
    "python/tonnage/measure/importers": "a file for each tool's format, and what they share",
    "python/tonnage/report/explorer/assets": "a script for each module that it mirrors",
    "python/tonnage/cli": "a folder or file for each family of commands",
    "tests/support/recorded": "recorded data",
}
"""Folders that may have more entries, and why."""
UNCOUNTED = ("__init__.py", "__main__.py", "py.typed", "conftest.py", "mod.rs", "lib.rs")
"""Files that every folder of its kind has."""


def test_layers_import_only_allowed_layers() -> None:
    broken = [
        f"{module} imports {imported}"
        for module, named in named_imports(PACKAGE).items()
        for imported in named
        if layer_of(imported) not in LAYERS[layer_of(module)] | {layer_of(module), "__init__"}
    ]
    assert broken == []


def test_modules_have_no_import_cycles() -> None:
    # The package itself imports its public names only at their first use.
    graph = {name: found - {""} for name, found in executed_imports(PACKAGE).items() if name}
    assert _cycle(graph) is None


def test_rust_files_have_no_import_cycles() -> None:
    crates = sorted((ROOT / "crates").rglob("Cargo.toml"))
    assert [cycle for crate in crates for cycle in cycles(crate.parent / "src")] == []


def test_a_module_that_imports_its_importers_package_is_a_cycle(tmp_path: Path) -> None:
    files = {
        "export/__init__.py": "from shop.export import table",
        "export/table.py": "from shop import script",
        "export/order.py": "",
        "script.py": "from shop.export.order import Order",
    }
    package = _written(tmp_path / "shop", files)
    assert set(_cycle(executed_imports(package)) or ()) == {"export", "export.table", "script"}
    (package / "script.py").write_text("")
    assert _cycle(executed_imports(package)) is None


def test_a_rust_file_that_uses_its_users_type_is_a_cycle(tmp_path: Path) -> None:
    files = {
        "lib.rs": "mod parser; mod tree;",
        "tree.rs": "use crate::parser;\npub struct Tree;\nfn read() { parser::read() }",
        "parser.rs": "mod token;\npub fn read() -> Tree { token::next() }\npub struct At;",
        "parser/token.rs": "use super::At;",
    }
    source = _written(tmp_path / "src", files)
    assert cycles(source) == [[source / "parser/token.rs", source / "parser.rs"]]
    (source / "parser/token.rs").write_text("")
    assert cycles(source) == []


def test_libraries_of_the_edge_are_imported_only_there() -> None:
    importers: dict[str, set[str]] = {library: set() for library in OUTSIDE}
    for file in PACKAGE.rglob("*.py"):
        for name in imported_names(PACKAGE, file):
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


def _cycle(graph: Mapping[str, set[str]]) -> list[str] | None:
    """Return modules that import each other, in order; None if there are none."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as why:
        found: list[str] = why.args[1]
        return found
    return None


def _written(directory: Path, files: Mapping[str, str]) -> Path:
    for name, text in files.items():
        (directory / name).parent.mkdir(parents=True, exist_ok=True)
        (directory / name).write_text(text)
    return directory


def _crate(package: dict[str, str]) -> str:
    return package["name"].removeprefix("tonnage-")


def _sources(*directories: str) -> list[Path]:
    return [
        file
        for directory in directories
        for file in sorted((ROOT / directory).rglob("*"))
        if file.suffix in {".rs", ".py"}
    ]
