"""List import cycles between the files of one Rust crate.

A file imports another when it names it in a `use` or by a path in its code, from `crate`, `super`,
`self`, a module that it declares, or a module that it imports. A name that a module re-exports
(`pub use`) counts as an import of the file that defines it. Declaring a module (`mod x;`) and
re-exporting its names are not imports: otherwise every module tree would be a cycle. Tests inside a
file (`#[cfg(test)] mod ...`) are left out. Cycles are strongly connected components (Tarjan, 1972).
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

Module = tuple[str, ...]

_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_STRING = re.compile(r'b?r?"(?:[^"\\]|\\.)*"', re.DOTALL)
_TESTS = re.compile(r"#\[cfg\(test\)\]\s*mod \w+ \{.*", re.DOTALL)
_USE = re.compile(r"(?P<public>pub(?:\([^)]*\))?\s+)?\buse\s+(?P<tree>[^;]+);")
_PATH = re.compile(r"(?<![\w:])\w+(?:::\w+)+")


def cycles(crate_src: Path) -> list[list[Path]]:
    """Return groups of files that import each other in a cycle, each sorted."""
    files = _modules(crate_src)
    texts = {module: _code(path) for module, path in files.items()}
    exports = {module: _exports(module, text, files) for module, text in texts.items()}
    graph: dict[Module, set[Module]] = {}
    for module, text in texts.items():
        found = set()
        for path in _imports(module, text, files):
            target = _resolve(path, files, exports)
            if target is not None and target != module:
                found.add(target)
        graph[module] = found
    return sorted(
        sorted(files[module] for module in group) for group in _components(graph) if len(group) > 1
    )


def _modules(crate_src: Path) -> dict[Module, Path]:
    """Return the file of each module, by the module's path."""
    found: dict[Module, Path] = {}
    for path in sorted(crate_src.rglob("*.rs")):
        parts = path.relative_to(crate_src).with_suffix("").parts
        if parts[-1] == "mod" or parts in {("lib",), ("main",)}:
            parts = parts[:-1]
        found[parts] = path
    return found


def _code(path: Path) -> str:
    text = _STRING.sub('""', _COMMENT.sub("", path.read_text(encoding="utf-8")))
    return _TESTS.sub("", text)


def _exports(module: Module, text: str, files: dict[Module, Path]) -> dict[str, Module]:
    """Return the names that a module re-exports, with their paths."""
    found: dict[str, Module] = {}
    for use in _USE.finditer(text):
        if use["public"]:
            for leaf in _leaves(use["tree"]):
                path, _, alias = leaf.partition(" as ")
                target = _absolute(module, path, files)
                if target is not None:
                    found[alias.strip() or target[-1]] = target
    return found


def _imports(module: Module, text: str, files: dict[Module, Path]) -> list[Module]:
    """Return the absolute paths that a file names, except its re-exports."""
    found: list[Module | None] = []
    aliases: dict[str, Module] = {}
    for use in _USE.finditer(text):
        for leaf in _leaves(use["tree"]):
            path, _, alias = leaf.partition(" as ")
            target = _absolute(module, path, files)
            if not use["public"]:
                found.append(target)
            if target in files:
                aliases[alias.strip() or target[-1]] = target
    for path in _PATH.findall(_USE.sub("", text)):
        head, *rest = path.split("::")
        found.append((*aliases[head], *rest) if head in aliases else _absolute(module, path, files))
    return [path for path in found if path]


def _leaves(tree: str) -> list[str]:
    """`a::{b, c::{d}}` as `a::b` and `a::c::d`."""
    tree = " ".join(tree.split())
    before, brace, rest = tree.partition("{")
    if not brace:
        return [tree]
    found, depth, start = [], 0, 0
    inner = rest[: rest.rindex("}")]
    for at, character in enumerate(inner + ","):
        depth += (character == "{") - (character == "}")
        if character == "," and depth == 0:
            item = inner[start:at].strip()
            start = at + 1
            if item:
                found += _leaves(before + item)
    return [leaf.removesuffix("::self") for leaf in found]


def _absolute(module: Module, path: str, files: dict[Module, Path]) -> Module | None:
    """Return a path from the crate's root, or None if it names another crate."""
    parts = path.strip().removeprefix("::").split("::")
    head = parts[0]
    if head == "crate":
        return tuple(parts[1:])
    if head == "self":
        return module + tuple(parts[1:])
    if head == "super":
        up = 0
        while up < len(parts) and parts[up] == "super":
            up += 1
        return module[: len(module) - up] + tuple(parts[up:])
    if (*module, head) in files:
        return module + tuple(parts)
    return None


def _resolve(
    path: Module, files: dict[Module, Path], exports: dict[Module, dict[str, Module]]
) -> Module | None:
    """Return the module whose file defines a path, through re-exports."""
    for _ in range(8):  # a chain of re-exports is short
        module = next((path[:end] for end in range(len(path), -1, -1) if path[:end] in files), None)
        if module is None or len(module) == len(path):
            return module
        target = exports[module].get(path[len(module)])
        if target is None:
            return module
        path = target + path[len(module) + 1 :]
    return None


def _components(graph: dict[Module, set[Module]]) -> list[list[Module]]:
    """Return the strongly connected components."""
    index: dict[Module, int] = {}
    low: dict[Module, int] = {}
    stack: list[Module] = []
    found: list[list[Module]] = []

    def visit(node: Module) -> None:
        index[node] = low[node] = len(index)
        stack.append(node)
        for after in sorted(graph[node]):
            if after not in index:
                visit(after)
                low[node] = min(low[node], low[after])
            elif after in stack:
                low[node] = min(low[node], index[after])
        if low[node] == index[node]:
            group = stack[stack.index(node) :]
            del stack[stack.index(node) :]
            found.append(group)

    for node in sorted(graph):
        if node not in index:
            visit(node)
    return found


def main() -> int:
    """Print the cycles of each named crate; return 1 if there are any."""
    found = [group for source in sys.argv[1:] for group in cycles(Path(source))]
    for group in found:
        print(" <-> ".join(str(path) for path in group))
    return int(bool(found))


if __name__ == "__main__":
    raise SystemExit(main())
