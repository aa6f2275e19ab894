"""List what each module of one Python package imports of it, anywhere in its file.

Importing a module runs the packages that contain it first, so these count as imported too, except
those that contain the importer: they are running already.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

COMPILED = "_core"
"""The module that no Python file defines."""


def modules(package: Path) -> dict[str, Path]:
    """Return the file of each module, by its dotted name without the package's own."""
    return {_name(package, file): file for file in package.rglob("*.py")}


def named_imports(package: Path) -> dict[str, set[str]]:
    """Return the modules that each module names; of a package's own names, the package."""
    files = modules(package)
    known = {*files, COMPILED}
    graph = {}
    for module, file in files.items():
        found = set()
        for name in imported_names(package, file):
            root, _, rest = name.partition(".")
            if root == package.name:
                # Any other name is defined by the module before it.
                found.add(rest if rest in known else rest.rpartition(".")[0])
        graph[module] = found - {module}
    return graph


def executed_imports(package: Path) -> dict[str, set[str]]:
    """Return the modules that importing each module runs."""
    return {
        module: {
            parent
            for name in named
            for parent in (name, *_parents(name))
            if parent != module and parent not in _parents(module)
        }
        | (named & {*_parents(module)})
        for module, named in named_imports(package).items()
    }


def imported_names(package: Path, file: Path) -> Iterator[str]:
    """Yield the full name of everything that a file imports."""
    here = (package.name, *file.relative_to(package).parts)
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = here[: len(here) - node.level] if node.level else ()
            module = (*base, node.module) if node.module else base
            yield from (".".join((*module, alias.name)) for alias in node.names)


def _name(package: Path, file: Path) -> str:
    parts = file.relative_to(package).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _parents(module: str) -> Iterator[str]:
    """Yield the packages that contain a module, except the outermost."""
    while "." in module:
        module = module.rpartition(".")[0]
        yield module
