"""The tree of commands, and the line that each error ends with."""

import errno
import importlib
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType
from typing import Annotated, Any, ClassVar, NamedTuple

import typer
from typer.core import TyperGroup

from tonnage import __version__
from tonnage.base import core
from tonnage.base.formatting import did_you_mean
from tonnage.cli.options.option_groups import flattened
from tonnage.cli.options.parser import RENAMED_COMMANDS, RENAMED_FLAGS, Command, flags_of
from tonnage.cli.options.types import Switch

HELP = """Measure what disks and networks deliver, predict a data job's time and cost, run the
job, and check the prediction.

Write sizes as 20TB, 4GiB or 4k, and times as 90s, 2h, 1h30m or 2:00:00. An option shown with
dots (--dir DIR...) accepts several values. Each command's --help has examples.

The exit code is 0 on success; 1 if the command failed (on a cluster: on at least one node) or
valsort found the records unsorted; 2 for invalid arguments or input; 130 after Ctrl-C; and 143
after SIGTERM or SIGHUP. An interrupted command removes partly written files; measurements,
studies and cluster jobs keep their finished steps, and resume.
"""


UNUSABLE_PATH = (
    *(errno.EACCES, errno.ENOENT, errno.EISDIR, errno.ENOTDIR),
    *(errno.ELOOP, errno.EROFS, errno.ENAMETOOLONG),
)
"""Errors of a path that was passed; others, like a full disk, are failures of the command."""


class Entry(NamedTuple):
    """Where a command is implemented, and what it does in a line."""

    module: str
    function: str
    summary: str
    questions: Mapping[str, "Entry"] = MappingProxyType({})
    """Commands of their own, with their own options, by the first argument."""


class Family(NamedTuple):
    summary: str
    commands: Mapping[str, Entry]


MEASURE = Family(
    "Measure disks, networks and object stores.",
    {
        "disk": Entry(
            "measure.disk", "measure_disk", "Measure disks with a sort's access pattern."
        ),
        "ops": Entry(
            "measure.ops",
            "measure_ops",
            "Measure random I/O: rate, CPU time, per-operation latency.",
        ),
        "net": Entry(
            "measure.net",
            "measure_net",
            "Measure the network with all-to-all traffic, as in a shuffle.",
        ),
        "object": Entry("measure.object", "measure_object", "Measure an object store."),
        "stream": Entry(
            "measure.stream", "measure_stream", "Measure sequential file I/O, like IOR."
        ),
        "layouts": Entry(
            "measure.layouts",
            "measure_layouts",
            "Compare layouts of several disks, such as JBOD and RAID 0.",
        ),
        "over-time": Entry(
            "measure.over_time",
            "measure_over_time",
            "Repeat trials at intervals over hours or days.",
        ),
        "screen": Entry("measure.screen", "measure_screen", "Test a cluster to find slow nodes."),
    },
)
CATALOG = Family(
    "List what can be rented, and at what price.",
    {
        "ls": Entry("catalog.catalog", "ls", "List catalogs, or their offers."),
        "show": Entry("catalog.catalog", "show", "Show an offer."),
        "diff": Entry("catalog.catalog", "diff", "Compare two catalogs."),
        "refresh": Entry("catalog.catalog", "refresh", "Fetch a provider's current prices."),
    },
)
RUN = Family(
    "Run a job on this machine or on a cluster.",
    {
        "sort": Entry("run.sort", "run_sort", "Sort fixed-length records."),
        "mapreduce": Entry("run.mapreduce", "run_mapreduce", "Run your map and reduce functions."),
        "reduce": Entry("run.reduce", "run_reduce", "Reduce rows to a small result."),
    },
)
CLUSTER = Family(
    "Show or terminate launched clusters.",
    {
        "status": Entry("provision.cluster", "status", "Show what is rented, and what it costs."),
        "down": Entry("provision.cluster", "down", "Terminate a launched cluster."),
    },
)
LAB = Family(
    "Emulate a small cluster on this machine.",
    {
        "up": Entry("provision.lab", "up", "Start a lab."),
        "status": Entry("provision.lab", "status", "Show a running lab."),
        "exec": Entry("provision.lab", "execute", "Run a command on a node."),
        "ray": Entry("provision.lab", "ray", "Start Ray on all nodes."),
        "fault": Entry("provision.lab", "fault", "Inject a fault into a node."),
        "heal": Entry("provision.lab", "heal", "Clear a node's faults."),
        "down": Entry("provision.lab", "down", "Stop a lab and remove all its resources."),
    },
)
SECTIONS: dict[str, dict[str, Family | Entry]] = {
    "Measure": {
        "measure": MEASURE,
        "observe": Entry("measure.observe", "observe", "Record how a command uses this machine."),
        "import": Entry(
            "measure.importing.command",
            "import_files",
            "Import results of other tools, and runs of other engines.",
        ),
    },
    "Model": {
        "profile": Entry("plan.profile", "profile", "Build a capacity profile from measurements."),
    },
    "Plan": {
        "catalog": CATALOG,
        "plan": Entry(
            "plan.plan",
            "plan",
            "Find the cheapest machines for a job, with an optional deadline.",
            {"ops": Entry("plan.ops", "plan_ops", "Find storage for a rate of random operations.")},
        ),
        "explore": Entry("plan.explore", "explore", "Write an interactive planning page."),
        "backtest": Entry(
            "plan.backtest", "backtest", "Compare plans of published runs with what they took."
        ),
    },
    "Run": {
        "run": RUN,
        "simulate": Entry(
            "simulate", "simulate", "Simulate a planned job, or one on a large cluster."
        ),
    },
    "Report": {
        "report": Entry(
            "report", "report", "Analyse measurements or jobs, and write an HTML report."
        ),
        "study": Entry(
            "study.local", "study", "Measure, predict, sort and report with one command."
        ),
    },
    "Clusters": {
        "launch": Entry("provision.launch", "launch", "Rent a planned cluster."),
        "cluster": CLUSTER,
        "lab": LAB,
    },
    "Data": {
        "gensort": Entry("data.gensort", "gensort", "Generate sort benchmark records."),
        "valsort": Entry("data.valsort", "valsort", "Check that records are sorted."),
        "index": Entry("data.index", "index", "Index data into chunks for tonnage run reduce."),
        "split": Entry("data.split", "split", "Split a file into parts of whole rows."),
    },
    "Setup": {
        "doctor": Entry("setup.doctor", "doctor", "Check what works on this machine."),
        "completion": Entry("setup.completion", "completion", "Print a shell completion script."),
    },
}
"""All commands, in the order in which they are used."""
COMPLETE = "_TONNAGE_COMPLETE"
"""By this variable a shell asks for completions."""
COMMANDS = {name: entry for entries in SECTIONS.values() for name, entry in entries.items()}


class _Interrupted(Exception):
    """A signal ended the command; the cause is its exception."""


class _Group(TyperGroup):
    """Commands that are imported when they are called, or when their own help is shown."""

    places: ClassVar[Mapping[str, Entry]]
    sections: ClassVar[Mapping[str, Mapping[str, Family | Entry]]]

    def list_commands(self, ctx: Any) -> list[str]:
        return [name for entries in self.sections.values() for name in entries]

    def get_command(self, ctx: Any, name: str) -> Any:
        own, _, question = name.partition(" ")
        if own not in self.places:
            return super().get_command(ctx, name)
        place = self.places[own]
        place = place.questions[question] if question else place
        module = importlib.import_module(f"tonnage.cli.{place.module}")
        alone = typer.Typer(rich_markup_mode=None, add_completion=False)
        alone.command(name, cls=Command, short_help=place.summary)(
            flattened(getattr(module, place.function))
        )
        return typer.main.get_command(alone)

    def questions(self, name: str) -> list[str]:
        """What a command answers with other options: names that follow its own."""
        return [*self.places[name].questions] if name in self.places else []

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if args[1:] and args[1] in self.questions(args[0]):
            name = f"{args[0]} {args[1]}"
            return name, self.get_command(ctx, name), args[2:]
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        width = max(map(len, self.list_commands(ctx)))
        for section, entries in self.sections.items():
            with formatter.section(section):
                rows = [(name.ljust(width), entry.summary) for name, entry in entries.items()]
                formatter.write_dl(rows)


class _Root(_Group):
    """The whole tree; the parser's library would handle Ctrl-C itself, and print nothing."""

    def invoke(self, ctx: Any) -> Any:
        with _interrupts():
            return super().invoke(ctx)

    def make_context(self, *args: Any, **options: Any) -> Any:
        with _interrupts():
            return super().make_context(*args, **options)


@contextmanager
def _interrupts() -> Iterator[None]:
    try:
        yield
    except KeyboardInterrupt as signalled:
        raise _Interrupted from signalled


def _typer(
    kind: type[_Group], text: str, sections: Mapping[str, Mapping[str, Family | Entry]]
) -> typer.Typer:
    entries = {name: entry for each in sections.values() for name, entry in each.items()}
    places = {name: entry for name, entry in entries.items() if isinstance(entry, Entry)}
    made = typer.Typer(
        cls=type(kind.__name__, (kind,), {"places": places, "sections": sections}),
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
        no_args_is_help=True,
        help=text,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    for name, entry in entries.items():
        if isinstance(entry, Family):
            inner = _typer(_Group, entry.summary, {"Commands": entry.commands})
            made.add_typer(inner, name=name, short_help=entry.summary)
    return made


app = _typer(_Root, HELP, SECTIONS)


@app.callback(invoke_without_command=True)
def _version(
    version: Annotated[bool, Switch("--version", "Print the version.")] = False,
) -> None:
    if version:
        print(f"tonnage {__version__}")
        raise typer.Exit


def call(arguments: list[str]) -> tuple[int, str]:
    """Runs a command line; returns the exit code, and the line that explains an early end."""
    own = _own_arguments(arguments)
    if "" in own:
        before = own[own.index("") - 1] if own[0] else ""
        empty = before if before.startswith("--") else "an argument"
        return 2, f"{empty} is empty, perhaps from an unset variable; give a value or remove it"
    command = typer.main.get_command(app)
    if COMPLETE in os.environ:
        importlib.import_module("tonnage.cli.setup.completion").prepare()
    try:
        code = command.main(args=arguments, prog_name="tonnage", standalone_mode=False)
    except _Interrupted as error:
        raise (error.__cause__ or error) from None
    except core.UsageError as error:
        return 2, str(error)
    except core.RunError as error:
        return 1, str(error)
    except OSError as error:
        if error.errno == errno.ENOENT and not error.filename:
            return 2, "the current directory no longer exists; change to another one"
        code = 2 if error.errno in UNUSABLE_PATH else 1
        return code, f"{error.filename or ''}: {error.strerror}".lstrip(": ")
    except Exception as error:
        from tonnage.base.records.base import RecordError

        if isinstance(error, RecordError):
            return 2, str(error)
        if hasattr(error, "format_message"):  # the command line parser's own errors
            return 2, _usage_error(error)
        raise
    return (code if isinstance(code, int) else 0), ""


def _own_arguments(arguments: list[str]) -> list[str]:
    """The arguments that are not those of a command to run."""
    if arguments[:1] == ["observe"] or arguments[:1] == ["lab"]:
        return []
    return arguments[: arguments.index("--")] if "--" in arguments else arguments


def _usage_error(error: Any) -> str:
    """The parser's error in one line that says how to fix it."""
    kind, message = type(error).__name__, str(error.format_message())
    command: Any = error.ctx.command if error.ctx else None
    if kind == "NoArgsIsHelpError":
        commands = ", ".join(command.list_commands(error.ctx))
        return f"missing command; use one of {commands} (see --help)"
    if kind == "NoSuchOption":
        return f"{_unknown_option(error, command)} (see --help)"
    if unknown := re.match(r"No such command '(.*)'", message):
        names = command.list_commands(error.ctx)
        new = RENAMED_COMMANDS.get(unknown[1])
        if new in names:
            return f"tonnage {unknown[1]} is now tonnage {new} (see --help)"
        others = did_you_mean(unknown[1], names) or f"; use one of {', '.join(names)}"
        return f"{unknown[0]}{others} (see --help)"
    if kind == "MissingParameter" and error.param and error.param.name == "inputs":
        required = [each.opts[0] for each in command.params if each.required and each.opts]
        after = [flag for flag in required if flag.startswith("-")]
        remedy = f"put it before {' and '.join(after)}" if after else "add files or directories"
        return f"{error.param.metavar or 'INPUT...'} is missing; {remedy} (see --help)"
    return f"{message} (see --help)"


def _unknown_option(error: Any, command: Any) -> str:
    if re.match(r"-\d", error.option_name):
        return f"{error.option_name}: a negative number is not allowed here; use one of at least 0"
    error.possibilities = None  # They would include hidden options.
    flags = flags_of(command)
    if new := [each for each in RENAMED_FLAGS.get(error.option_name, ()) if each in flags]:
        return f"{error.option_name} is now {new[0]}"
    return f"{error.format_message().rstrip('.')}{did_you_mean(error.option_name, flags)}"
