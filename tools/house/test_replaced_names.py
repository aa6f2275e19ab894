"""What tests replace with ``monkeypatch`` exists: slow tests would otherwise break unseen."""

import ast
import importlib
from collections.abc import Iterator
from types import ModuleType

from support.stores.disk import ROOT


def test_every_replaced_attribute_exists() -> None:
    missing = [
        f"{file.relative_to(ROOT)}:{call.lineno}: {ast.unparse(call.args[0])} has no {name}"
        for file in sorted((ROOT / "tests").rglob("test_*.py"))
        for call, module, name in _replacements(ast.parse(file.read_text()))
        if not hasattr(module, name)
    ]
    assert missing == []


def _replacements(tree: ast.Module) -> Iterator[tuple[ast.Call, ModuleType, str]]:
    """Each ``setattr(module, "name", ...)`` of a module of Tonnage's, with what it replaces."""
    modules = dict(_imported_modules(tree))
    for node in ast.walk(tree):
        match node:
            case ast.Call(
                func=ast.Attribute(attr="setattr" | "delattr"),
                args=[ast.Name(id=module), ast.Constant(value=str(name)), *_],
            ) if module in modules:
                yield node, modules[module], name


def _imported_modules(tree: ast.Module) -> Iterator[tuple[str, ModuleType]]:
    for node in ast.walk(tree):
        match node:
            case ast.ImportFrom(module=str(package), names=names) if package.startswith("tonnage"):
                for each in names:
                    found = getattr(importlib.import_module(package), each.name, None)
                    if isinstance(found, ModuleType):
                        yield each.asname or each.name, found
