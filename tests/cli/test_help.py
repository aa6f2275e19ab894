"""Help: every command, at 80 columns, with its options and examples that the parser accepts."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from cli.conftest import Call
from support.cli.command import Tonnage
from support.cli.documented_commands import refusal, shown
from tonnage.cli.commands import COMMANDS, SECTIONS, Entry, Family, app
from tonnage.cli.options.parser import examples, flags_of

COLUMNS = 80
PATHS = [
    (name, *inner)
    for name, entry in COMMANDS.items()
    for inner in ([(each,) for each in entry.commands] if isinstance(entry, Family) else [()])
] + [
    (name, question)
    for name, entry in COMMANDS.items()
    if isinstance(entry, Entry)
    for question in entry.questions
]
FAMILIES = [name for name, entry in COMMANDS.items() if isinstance(entry, Family)]
SEVERAL_FORMS = {
    "--output": {"DIR", "DIR|FILE.json", "FILE", "FILE.csv", "FILE.html", "PROFILE.json"},
    "--chunk-size": {"SIZE", "SIZE|auto"},
    "--requests": {"N", "N|auto"},
    "--offer": {"OFFER", "[HOST=]OFFER"},
}
"""Flags whose value has several forms; all others have one in all commands."""


def command_of(path: tuple[str, ...]) -> Any:
    command: Any = typer.main.get_command(app)
    if path[1:] and path[1] in command.questions(path[0]):
        return command.get_command(None, " ".join(path))
    for name in path:
        command = command.get_command(None, name)
    return command


def lines_of(command: Any) -> Iterator[str]:
    """The lines of examples; one that ends with a backslash continues."""
    begun = ""
    for line in examples(command):
        begun += line.removesuffix("\\").strip() + " "
        if not line.endswith("\\"):
            yield begun.strip()
            begun = ""


@pytest.mark.parametrize("path", PATHS, ids=" ".join)
def test_help_has_every_option_and_nothing_is_cut(call: Call, path: tuple[str, ...]) -> None:
    code, out, err = call(*path, "--help")
    assert (code, err) == (0, "")
    assert out.startswith(f"Usage: tonnage {' '.join(path)} ")
    assert max(map(len, out.splitlines())) <= COLUMNS
    options = out.partition("\nOptions:\n")[2]
    listed = re.findall(r"^  (?:-h, )?(--[a-z-]+(?: / --[a-z-]+)?)", options, re.MULTILINE)
    flags = [flag for each in listed for flag in each.split(" / ")]
    assert sorted(flags) == sorted({*flags_of(command_of(path)), "--help"})


@pytest.mark.parametrize("path", PATHS, ids=" ".join)
def test_every_option_and_argument_is_explained(path: tuple[str, ...]) -> None:
    for each in command_of(path).params:
        if not getattr(each, "hidden", False):
            assert (each.help or "").endswith("."), each.name


@pytest.mark.parametrize("path", PATHS, ids=" ".join)
def test_every_command_has_examples_that_the_parser_accepts(path: tuple[str, ...]) -> None:
    lines = list(lines_of(command_of(path)))
    assert lines
    for line in lines:
        command = re.sub(r'^eval "\$\((.*)\)"$', r"\1", line)
        call, *_ = shown(Path("help.sh"), command)
        assert call.arguments[: len(path)] == path
        assert refusal(call) == "", line


def test_the_tree_is_shown_in_the_order_of_the_loop(call: Call) -> None:
    code, out, _ = call("--help")
    assert code == 0
    assert max(map(len, out.splitlines())) <= COLUMNS
    assert re.findall(r"^(\w+):$", out, re.MULTILINE) == ["Options", *SECTIONS]
    for name, entry in COMMANDS.items():
        assert re.search(rf"^  {name} +{re.escape(entry.summary)}$", out, re.MULTILINE)


@pytest.mark.parametrize("family", FAMILIES)
def test_a_family_lists_its_commands(call: Call, family: str) -> None:
    code, out, _ = call(family, "-h")
    assert code == 0
    entry = COMMANDS[family]
    assert isinstance(entry, Family)
    for name, place in entry.commands.items():
        assert re.search(rf"^  {name} +{re.escape(place.summary)}$", out, re.MULTILINE)


def test_help_has_the_exit_codes_and_the_required_options(tonnage: Tonnage) -> None:
    text = " ".join(tonnage.run("--help", check=True).stdout.split())
    for code in ("0 on success", "1 if", "2 for invalid", "130 after Ctrl-C", "143 after SIGTERM"):
        assert code in text
    usage = tonnage.run("run", "sort", "--help", check=True).stdout.splitlines()[0]
    assert usage == "Usage: tonnage run sort INPUT... --output DIR... --scratch DIR... [OPTIONS]"


def test_one_flag_has_one_metavar() -> None:
    metavars: dict[str, set[str]] = {}
    for path in PATHS:
        for each in command_of(path).params:
            for flag in each.opts:
                if flag.startswith("-") and each.metavar:
                    metavars.setdefault(flag, set()).add(each.metavar.removesuffix("..."))
    assert {flag: kinds for flag, kinds in metavars.items() if len(kinds) > 1} == SEVERAL_FORMS
