"""The commands that documents show, and whether the command line would take them.

A document shows commands in blocks of ``console`` (after ``$``), ``bash`` and ``sh``, and in
indented blocks. What is looked at is every call of ``tonnage`` there, also behind ``sudo``, in a
pipe, or with variables of the shell in it; ``-- COMMAND`` of ``lab exec`` is a call of its own.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer

from tonnage.base import core
from tonnage.cli.commands import app

_FENCED = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_SHELL = ("console", "bash", "sh")
_ENDS = re.compile(r"^(?:[0-9&]*[<>|;&]+[0-9&]*|\))$")
"""Of words, those that end a call."""


@dataclass(frozen=True)
class Shown:
    """A call that a document shows."""

    where: str
    arguments: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.where}: tonnage {shlex.join(self.arguments)}"


def shown(document: Path, text: str | None = None) -> list[Shown]:
    """Every call of the command in a Markdown document, or in a script of the shell."""
    text = document.read_text() if text is None else text
    lines = _lines(text) if document.suffix == ".md" else text.splitlines()
    return [
        Shown(document.name, tuple(call))
        for line in _joined(lines)
        for outer in _calls(line)
        for call in _inner(outer)
    ]


def refusal(call: Shown) -> str:
    """Why the command line does not take it; nothing if it does.

    All that it says is parsed as if it were given: names, values, and that nothing is missing.
    Nothing is done. Where a document leaves something out (``...``), that may be missing.
    """
    left_out = "..." in call.arguments
    arguments = [each for each in call.arguments if each != "..."]
    try:
        _parsed(typer.main.get_command(app), "tonnage", arguments)
    except core.UsageError as why:
        return str(why)
    except Exception as why:
        if not hasattr(why, "format_message"):
            raise
        if left_out and type(why).__name__ == "MissingParameter":
            return ""
        return str(why.format_message())
    return ""


def _parsed(command: Any, name: str, arguments: list[str], parent: Any = None) -> None:
    """Parses what a command gets, and what its own commands do."""
    context = command.make_context(name, list(arguments), parent=parent)
    if hasattr(command, "resolve_command") and (rest := [*context._protected_args, *context.args]):
        below, inner, left = command.resolve_command(context, rest)
        _parsed(inner, below, left, context)


def _lines(text: str) -> Iterator[str]:
    """The lines of the shell in a Markdown text."""
    for kind, block in _FENCED.findall(text):
        if kind == "console":
            yield from _prompted(block.splitlines())
        elif kind in _SHELL:
            yield from block.splitlines()
    for line in _FENCED.sub("", text).splitlines():
        if re.match(r"(?: {4}|\t)\s*(?:\S+=\S+ )*(?:sudo )?(?:\S*/)?tonnage ", line):
            yield line.strip()


def _prompted(lines: list[str]) -> Iterator[str]:
    """Of a session those that were typed, with what continues them."""
    continues = False
    for line in lines:
        if line.startswith("$ ") or continues:
            yield line.removeprefix("$ ")
            continues = line.endswith("\\")


def _joined(lines: Any) -> Iterator[str]:
    """Lines as the shell reads them: a backslash at the end continues the line."""
    begun = ""
    for line in lines:
        if line.endswith("\\"):
            begun += line[:-1] + " "
        else:
            yield begun + line
            begun = ""


def _inner(call: list[str]) -> Iterator[list[str]]:
    """A call, and the one that it makes of what follows ``--``."""
    yield call
    if "--" in call:
        yield from _calls(shlex.join(call[call.index("--") + 1 :]))


def _calls(line: str) -> Iterator[list[str]]:
    """The arguments of each call of the command in a line of the shell."""
    reader = shlex.shlex(line, posix=True, punctuation_chars=True)
    reader.whitespace_split = True
    reader.commenters = "#"
    try:
        words = list(reader)
    except ValueError:  # A quote that ends in another line: no line of ours has a call there.
        return
    call: list[str] | None = None
    begins = True
    for word in words:
        if _ENDS.match(word):
            if call is not None:
                yield call
            call, begins = None, True
        elif call is not None:
            call.append(word)
        elif begins and Path(word).name == "tonnage":
            call = []
        else:
            begins = begins and (word == "sudo" or "=" in word)
    if call is not None:
        yield call
