"""The ``tonnage`` command: reads arguments, calls one function, prints what it returns.

With ``--json`` one document goes to standard output and nothing else; progress goes to standard
error. Exit codes: 0 done, 1 failed while running (or not sorted), 2 unusable arguments or input,
130 on Ctrl-C, 143 on SIGTERM; what ends early says why in one line and cleans up.
"""

from __future__ import annotations

import re
import signal
import sys
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperGroup

from tonnage import __version__, engine
from tonnage.cli import measure, records, run, study
from tonnage.cli.arguments import spread


class Terminated(KeyboardInterrupt):
    """SIGTERM, which ends a command as Ctrl-C does."""


class Interrupted(Exception):
    """A command that a signal ended, when it has cleaned up; ``args`` is the exit code."""


class _Commands(TyperGroup):
    """The commands; the parser's library would take a Ctrl-C for its own and say nothing."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as why:
            raise Interrupted(143 if isinstance(why, Terminated) else 130) from why


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
app.add_typer(run_app, name="run")
app.add_typer(measure_app, name="measure")

app.command()(study.study)
run_app.command("sort", cls=run.InputsFirst)(run.run_sort)
measure_app.command("disk")(measure.measure_disk)
app.command()(records.gensort)
app.command()(records.valsort)


@app.callback(invoke_without_command=True)
def _version(
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    if version:
        print(f"tonnage {__version__}")
        raise typer.Exit


def main() -> None:
    """The entry point: turns every way to end into an exit code and at most one line."""
    signal.signal(signal.SIGTERM, _terminate)
    command = typer.main.get_command(app)
    try:
        code = command.main(args=spread(sys.argv[1:]), prog_name="tonnage", standalone_mode=False)
    except Interrupted as why:
        _fail("interrupted: what was unfinished is removed", why.args[0])
    except engine.Refused as why:
        _fail(str(why), 2)
    except engine.Failed as why:
        _fail(str(why.args[0]), 1)
    except OSError as why:
        _fail(f"{why.filename or ''}: {why.strerror}".lstrip(": "), 1)
    except Exception as why:
        if hasattr(why, "format_message"):  # the command line parser's own errors
            _fail(_unusable(why), 2)
        raise
    sys.exit(code if isinstance(code, int) else 0)


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


def _terminate(*_: object) -> NoReturn:
    raise Terminated


def _fail(text: str, code: int) -> NoReturn:
    print(f"tonnage: {' '.join(text.split())}", file=sys.stderr)
    sys.exit(code)
