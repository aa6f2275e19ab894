"""The reference as Markdown, from the command line's parser and the API's docstrings.

Nothing is written by hand here, so nothing can be out of date. Docstrings have Google's style; a
string after a field of a class describes that field.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import re
import textwrap
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import typer

from tonnage.cli.commands import app
from tonnage.cli.options.parser import EXAMPLES, examples

MODULES = ("tonnage", "tonnage.api.aggregates", "tonnage.api.testing")
SECTIONS = ("Args", "Attributes", "Raises", "Returns", "Yields")


def pages() -> Iterator[tuple[str, str]]:
    """Yield the reference's documents: file names and Markdown."""
    root = typer.main.get_command(app)
    names = _names(root)
    yield "README.md", _index(root, names)
    for name in names:
        lines = [*_family(root.get_command(_context(root), name), name)]
        for question in root.questions(name):
            whole = f"{name} {question}"
            lines += _family(root.get_command(_context(root), whole), whole, 2)
        yield f"tonnage-{name}.md", "\n".join(lines)
    for module in MODULES:
        yield f"api-{module}.md", "\n".join(_module(importlib.import_module(module)))


def _index(root: Any, names: list[str]) -> str:
    lines = ["# Reference", "", "The command, as in `--help`:", "", root.help, ""]
    for name in names:
        command = root.get_command(_context(root), name)
        lines.append(f"* [tonnage {name}](tonnage-{name}.md): {_first(command.help)}")
    lines += ["", "From Python:", ""]
    for module in MODULES:
        documentation = inspect.getdoc(importlib.import_module(module)) or ""
        lines.append(f"* [{module}](api-{module}.md): {_first(documentation)}")
    return "\n".join(lines)


def _family(command: Any, name: str, level: int = 1) -> Iterator[str]:
    """Yield a command, or a group and its commands."""
    yield f"{'#' * level} tonnage {name}"
    yield ""
    if not hasattr(command, "list_commands"):
        yield from _prose((command.help or "").partition(EXAMPLES)[0])
        yield from _parameters(command, name)
        yield from ["```console", *(f"$ {line}" for line in examples(command)), "```", ""]
        return
    yield from _prose(command.help or "")
    for inner in _names(command):
        below = command.get_command(_context(command), inner)
        yield from _family(below, f"{name} {inner}", level + 1)


def _parameters(command: Any, name: str) -> Iterator[str]:
    context = _context(command)
    usage = " ".join(command.collect_usage_pieces(context))
    yield from ["```text", f"tonnage {name} {usage}", "```", ""]
    yield from ["| Argument | What it is | Needed |", "|---|---|---|"]
    for each in command.params:
        if getattr(each, "hidden", False):
            continue
        if each.param_type_name == "argument":
            names, value = each.make_metavar(context), ""
        else:
            names = ", ".join([*each.opts, *each.secondary_opts])
            flag = getattr(each, "is_flag", False)
            value = "" if flag else each.make_metavar(context)
        texts = [(each.help or "").strip(), *_default(each)]
        shown = f"`{names} {value}`".replace(" `", "`")
        yield f"| {_cell(shown)} | {_cell(' '.join(filter(None, texts)))} | {_presence(each)} |"
    yield ""


def _default(parameter: Any) -> list[str]:
    """Return the default as text, unless it is trivial or part of the help."""
    value = parameter.default
    if parameter.required or value in (None, False, True, [], ()) or callable(value):
        return []
    if "Default:" in (parameter.help or ""):
        return []
    several = value if isinstance(value, (list, tuple)) else [value]
    return [f"Default: {' '.join(map(str, several))}."]


def _presence(parameter: Any) -> str:
    return "yes" if parameter.required else ""


def _module(module: ModuleType) -> Iterator[str]:
    yield from [f"# {module.__name__}", ""]
    yield from _prose(inspect.getdoc(module) or "")
    names = getattr(module, "__all__", None) or [
        name
        for name, value in vars(module).items()
        if not name.startswith("_") and getattr(value, "__module__", "") == module.__name__
    ]
    for name in names:
        value = getattr(module, name)
        yield from [f"## {name}", ""]
        if inspect.isclass(value):
            yield from _class(value)
        elif callable(value):
            yield from _function(value, name)
        else:  # A type alias.
            yield from ["```python", f"{name} = {value}".replace("typing.", ""), "```", ""]


def _class(kind: type) -> Iterator[str]:
    if issubclass(kind, Exception):  # The core's exceptions have no Python source.
        yield from _documented(inspect.cleandoc(kind.__doc__ or ""))
        return
    own = kind.__init__ is not object.__init__ and not inspect.isabstract(kind)
    yield from _signature(kind, kind.__name__) if own else []
    for each in kind.__mro__:
        public = each is kind or not hasattr(importlib.import_module("tonnage"), each.__name__)
        if each.__module__.startswith("tonnage") and public:
            yield from _documented(inspect.cleandoc(each.__doc__ or ""))
    for name, text in _fields(kind):
        yield from [f"* `{name}`: {' '.join(text.split())}", ""]
    for name, member in inspect.getmembers(kind):
        plain = inspect.unwrap(getattr(member, "__func__", member))
        if name.startswith("_") or not _is_tonnage_function(plain) or not inspect.getdoc(member):
            continue
        yield from [f"### {kind.__name__}.{name}", ""]
        yield from _function(plain, name)


def _is_tonnage_function(value: Any) -> bool:
    return inspect.isfunction(value) and value.__module__.startswith("tonnage")


def _fields(kind: type) -> Iterator[tuple[str, str]]:
    """Yield the fields of a class that have a string after them."""
    body = ast.parse(textwrap.dedent(inspect.getsource(kind))).body[0]
    assert isinstance(body, ast.ClassDef)
    for stated, after in zip(body.body, body.body[1:], strict=False):
        is_text = isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant)
        if isinstance(stated, ast.AnnAssign) and isinstance(stated.target, ast.Name) and is_text:
            assert isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant)
            yield stated.target.id, str(after.value.value)


def _function(function: Any, name: str) -> Iterator[str]:
    yield from _signature(function, name)
    yield from _documented(inspect.getdoc(function) or "")


def _signature(value: Any, name: str) -> Iterator[str]:
    """Yield a signature, with one parameter a line if it is long."""
    signature = inspect.signature(value)
    kept = [
        each.replace(
            annotation=_As(each.annotation),
            default=_As("...") if inspect.isfunction(each.default) else each.default,
        )
        for each in signature.parameters.values()
        if each.name != "self"
    ]
    back = signature.return_annotation
    gives = "" if inspect.isclass(value) or back is signature.empty else f" -> {back}"
    whole = f"{name}{signature.replace(parameters=kept, return_annotation=signature.empty)}{gives}"
    if len(whole) > 100:
        whole = "\n".join([f"{name}(", *_lines(kept), f"){gives}"])
    yield from ["```python", whole, "```", ""]


class _As(str):
    """Text that is shown without quotes."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def _lines(parameters: list[inspect.Parameter]) -> Iterator[str]:
    named_only = False
    for each in parameters:
        if each.kind is each.KEYWORD_ONLY and not named_only:
            named_only = True
            yield "    *,"
        yield f"    {each},"


def _documented(text: str) -> Iterator[str]:
    """Yield a docstring: its prose, then its sections as lists."""
    parts = re.split(rf"^({'|'.join(SECTIONS)}):\n", text, flags=re.MULTILINE)
    yield from _prose(parts[0])
    for name, body in zip(parts[1::2], parts[2::2], strict=True):
        yield from [f"**{'Arguments' if name == 'Args' else name}**", ""]
        for entry in re.split(r"\n(?=\S)", textwrap.dedent(body).strip("\n")):
            what, separator, rest = " ".join(entry.split()).partition(": ")
            if separator:
                yield f"* `{what}`: {_plain(rest)}"
            else:
                yield f"* {_plain(what)}"
        yield ""


def _prose(text: str) -> Iterator[str]:
    """Yield paragraphs; text after two colons is code."""
    text = re.sub(r"^::$\n", "", _plain(text).strip(), flags=re.MULTILINE)
    yield from re.sub(r"::$", ":", text, flags=re.MULTILINE).splitlines()
    yield ""


def _plain(text: str) -> str:
    return text.replace("``", "`").replace("<", "&lt;")


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")


def _first(text: str) -> str:
    return re.split(r"(?<=\.)\s", " ".join(text.split()))[0]


def _names(group: Any) -> list[str]:
    return list(group.list_commands(_context(group)))


def _context(command: Any) -> Any:
    return command.make_context("tonnage", [], resilient_parsing=True)
