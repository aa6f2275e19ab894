"""The tree of commands, and what their errors are in words."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from tonnage import __version__, engine
from tonnage.cli import (
    catalog,
    imports,
    measure_disk,
    measure_layouts,
    measure_net,
    measure_object,
    measure_ops,
    measure_over_time,
    measure_stream,
    observe,
    plan,
    records,
    report,
    run,
    study,
)
from tonnage.cli.arguments import spread


class _Interrupted(Exception):
    """A command that a signal has ended; its cause is the signal's exception."""


class _Commands(TyperGroup):
    """The commands; the parser's library would take a Ctrl-C for its own and say nothing."""

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


app = typer.Typer(
    cls=_Commands,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    no_args_is_help=True,
    help="How much these machines can carry: measure, predict, sort, compare, report. Exit codes: "
    "0 done; 1 failed while running, or not sorted; 2 unusable arguments or input; 130 on Ctrl-C, "
    "143 on SIGTERM, when all that is unfinished is removed.",
    context_settings={"help_option_names": ["-h", "--help"]},
)
run_app = typer.Typer(no_args_is_help=True, help="Run a job.", rich_markup_mode=None)
measure_app = typer.Typer(
    no_args_is_help=True, help="Measure what this machine carries.", rich_markup_mode=None
)
catalog_app = typer.Typer(
    no_args_is_help=True, help="What can be rented, and at what price.", rich_markup_mode=None
)
app.add_typer(run_app, name="run")
app.add_typer(measure_app, name="measure")
app.add_typer(catalog_app, name="catalog")

app.command()(study.study)
app.command()(report.report)
app.command()(plan.plan)
run_app.command("sort", cls=run.InputsFirst)(run.run_sort)
measure_app.command("disk")(measure_disk.measure_disk)
measure_app.command("ops")(measure_ops.measure_ops)
measure_app.command("net")(measure_net.measure_net)
measure_app.command("object")(measure_object.measure_object)
measure_app.command("layouts")(measure_layouts.measure_layouts)
measure_app.command("stream")(measure_stream.measure_stream)
measure_app.command("over-time")(measure_over_time.measure_over_time)
catalog_app.command("ls")(catalog.ls)
catalog_app.command("show")(catalog.show)
catalog_app.command("diff")(catalog.diff)
catalog_app.command("refresh")(catalog.refresh)
app.command()(observe.observe)
app.command("import")(imports.import_files)
app.command()(records.gensort)
app.command()(records.valsort)


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
        code = command.main(args=spread(arguments), prog_name="tonnage", standalone_mode=False)
    except _Interrupted as why:
        raise (why.__cause__ or why) from None
    except engine.Refused as why:
        return 2, str(why)
    except engine.Failed as why:
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
    if kind == "MissingParameter" and why.param and why.param.name == "inputs":
        return "INPUT... is missing: it comes before --output and --scratch (see --help)"
    return f"{why.format_message()} (see --help)"
