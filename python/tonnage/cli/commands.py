"""The tree of commands, and what their errors are in words."""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Annotated, Any, ClassVar

import typer
from typer.core import TyperGroup

from tonnage import __version__
from tonnage.base import core
from tonnage.base.formatting import did_you_mean
from tonnage.cli.options.parser import RENAMED_COMMANDS, RENAMED_FLAGS, Command, flags_of

HELP = (
    "How much these machines can carry: measure, predict, sort, compare, report. Exit codes: "
    "0 done; 1 failed while running, if only on one machine of a fleet, or not sorted; 2 unusable "
    "arguments or input; 130 on Ctrl-C, 143 on SIGTERM, when all that is unfinished is removed."
)
COMMANDS = {
    "run": (
        "Run a job.",
        {
            "sort": "run.sort:run_sort:InputsFirst",
            "mapreduce": "run.mapreduce:run_mapreduce:JobFirst",
            "reduce": "run.reduce:run_reduce:JobFirst",
        },
    ),
    "measure": (
        "Measure what this machine carries.",
        {
            "disk": "measure.disk:measure_disk",
            "ops": "measure.ops:measure_ops",
            "net": "measure.net:measure_net",
            "object": "measure.object:measure_object",
            "layouts": "measure.layouts:measure_layouts",
            "stream": "measure.stream:measure_stream",
            "over-time": "measure.over_time:measure_over_time",
            "screen": "measure.screen:measure_screen",
        },
    ),
    "catalog": (
        "What can be rented, and at what price.",
        {
            "ls": "catalog.catalog:ls",
            "show": "catalog.catalog:show",
            "diff": "catalog.catalog:diff",
            "refresh": "catalog.catalog:refresh",
        },
    ),
    "lab": (
        "A small cluster on this machine, of which all is known.",
        {
            "up": "provision.lab:up",
            "status": "provision.lab:status",
            "exec": "provision.lab:execute",
            "ray": "provision.lab:ray",
            "fault": "provision.lab:fault",
            "heal": "provision.lab:heal",
            "down": "provision.lab:down",
        },
    ),
    "cluster": (
        "What was launched.",
        {"status": "cluster:status", "down": "cluster:down"},
    ),
    "simulate": (
        "Run a job on a fleet that is not there.",
        {"sort": "simulate:simulate_sort"},
    ),
    "index": "run.reduce:index",
    "split": "data.split:split",
    "study": "study.local:study",
    "report": "report:report",
    "profile": "plan.profile:profile",
    "plan": "plan.plan:plan",
    "explore": "plan.explore:explore",
    "launch": "provision.launch:launch",
    "observe": "measure.observe:observe",
    "import": "measure.importing:import_files",
    "gensort": "data.gensort:gensort",
    "valsort": "data.gensort:valsort",
}
"""Module, function and kind of each command, or a group's help and commands."""


class _Interrupted(Exception):
    """A command that a signal has ended; its cause is the signal's exception."""


class _Group(TyperGroup):
    """Commands that are imported when they are called, or their help is asked for."""

    places: ClassVar[Mapping[str, str]]

    def list_commands(self, ctx: Any) -> list[str]:
        return [*super().list_commands(ctx), *self.places]

    def get_command(self, ctx: Any, name: str) -> Any:
        if name not in self.places:
            return super().get_command(ctx, name)
        module, function, *kind = self.places[name].split(":")
        place = importlib.import_module(f"tonnage.cli.{module}")
        alone = typer.Typer(rich_markup_mode=None, add_completion=False)
        alone.command(name, cls=getattr(place, kind[0]) if kind else Command)(
            getattr(place, function)
        )
        return typer.main.get_command(alone)


class _Commands(_Group):
    """The tree; the parser's library would take a Ctrl-C for its own and say nothing."""

    def invoke(self, ctx: Any) -> Any:
        with _kept():
            return super().invoke(ctx)

    def make_context(self, *args: Any, **options: Any) -> Any:
        with _kept():
            return super().make_context(*args, **options)


@contextmanager
def _kept() -> Iterator[None]:
    try:
        yield
    except KeyboardInterrupt as why:
        raise _Interrupted from why


def _typer(kind: type[_Group], help_text: str, places: Mapping[str, Any]) -> typer.Typer:
    """A group with these commands, of which some are groups."""
    own = {name: place for name, place in places.items() if isinstance(place, str)}
    made = typer.Typer(
        cls=type(kind.__name__, (kind,), {"places": own}),
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
        no_args_is_help=True,
        help=help_text,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    for name, place in places.items():
        if not isinstance(place, str):
            made.add_typer(_typer(_Group, *place), name=name)
    return made


app = _typer(_Commands, HELP, COMMANDS)


@app.callback(invoke_without_command=True)
def _version(
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    if version:
        print(f"tonnage {__version__}")
        raise typer.Exit


def call(arguments: list[str]) -> tuple[int, str]:
    """Does what the arguments say; gives the exit code, and what is to be said of an early end.

    Raises:
        KeyboardInterrupt: Ctrl-C or SIGTERM; the command has cleaned up by then.
    """
    command = typer.main.get_command(app)
    try:
        code = command.main(args=arguments, prog_name="tonnage", standalone_mode=False)
    except _Interrupted as why:
        raise (why.__cause__ or why) from None
    except core.UsageError as why:
        return 2, str(why)
    except core.RunError as why:
        return 1, str(why.args[0])
    except OSError as why:
        return 1, f"{why.filename or ''}: {why.strerror}".lstrip(": ")
    except Exception as why:
        if hasattr(why, "format_message"):  # the command line parser's own errors
            return 2, _unusable(why)
        raise
    return (code if isinstance(code, int) else 0), ""


def _unusable(why: Any) -> str:
    """The parser's error in a line that says how to mend it."""
    kind = type(why).__name__
    if kind == "NoArgsIsHelpError":
        commands = ", ".join(why.ctx.command.list_commands(why.ctx))
        return f"give a command: {commands} (see --help)"
    if kind == "NoSuchOption" and re.match(r"-\d", why.option_name):
        return f"{why.option_name}: give a number from 0 up (see --help)"
    if kind == "NoSuchOption":
        why.possibilities = None  # It would name hidden ones too.
        flags = flags_of(why.ctx.command)
        if new := [each for each in RENAMED_FLAGS.get(why.option_name, ()) if each in flags]:
            return f"{why.option_name} is now {new[0]} (see --help)"
        meant = did_you_mean(why.option_name, flags)
        return f"{why.format_message().rstrip('.')}{meant} (see --help)"
    if unknown := re.match(r"No such command '(.*)'", why.format_message()):
        commands = why.ctx.command.list_commands(why.ctx)
        if unknown[1] in RENAMED_COMMANDS and RENAMED_COMMANDS[unknown[1]] in commands:
            return (
                f"tonnage {unknown[1]} is now tonnage {RENAMED_COMMANDS[unknown[1]]} (see --help)"
            )
        meant = did_you_mean(unknown[1], commands) or f": there are {', '.join(commands)}"
        return f"{unknown[0]}{meant} (see --help)"
    if kind == "MissingParameter" and why.param and why.param.name == "inputs":
        flags = {each.name for each in why.ctx.command.params}
        after = [f"--{each}" for each in ("output", "scratch") if each in flags]
        where = f": it comes before {' and '.join(after)}" if after else ": give files or folders"
        return f"{why.param.metavar or 'INPUT...'} is missing{where} (see --help)"
    return f"{why.format_message()} (see --help)"
