"""The ``tonnage`` command: reads arguments, calls one function, prints what it returns.

With ``--json`` one document goes to standard output and nothing else; progress goes to standard
error. Exit codes: 0 done, 1 failed while running (or not sorted), 2 unusable arguments or input,
130 on Ctrl-C, 143 on SIGTERM; what ends early says why in one line and cleans up.

Several directories may follow one flag (``--output A B``, `spread`), so ``INPUT...`` comes first.
"""

from __future__ import annotations

import json
import re
import signal
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperCommand, TyperGroup

from tonnage import __version__, engine
from tonnage.run.sort import Layout


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

SEVERAL = ("--output", "--scratch", "--dir", "--mode")
"""Flags that several values may follow."""
LARGEST = (1 << 63) - 1
"""Sizes and counts beyond this are mistakes; the core could not hold them."""

UNITS = {
    "": 1,
    "b": 1,
    **{f"{letter}b": 1000**power for power, letter in enumerate("kmgtp", start=1)},
    **{f"{letter}ib": 1024**power for power, letter in enumerate("kmgtp", start=1)},
}


def parse_size(text: str) -> int:
    """``4GB`` (decimal), ``1GiB`` (binary) or plain bytes, as a number of bytes."""
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([a-z]*)\s*", text.lower())
    if found is None or found[2] not in UNITS:
        raise typer.BadParameter(f"{text!r} is no size: write it like 4GB, 512MiB or 1000000")
    size = float(found[1]) * UNITS[found[2]]
    if size > LARGEST:
        raise typer.BadParameter(f"{text!r} is too large: give less than 9EB")
    return int(found[1]) * UNITS[found[2]] if found[1].isdigit() else int(size)


def parse_number(text: str) -> int:
    """A whole number from 0 up to 2^128 - 1."""
    if not re.fullmatch(r"[0-9]{1,39}", text) or int(text) >= 1 << 128:
        raise typer.BadParameter(f"{text!r} is no whole number below 2^128")
    return int(text)


Json = Annotated[bool, typer.Option("--json", help="Print one JSON document and nothing else.")]
Memory = Annotated[
    int,
    typer.Option(
        "--memory",
        parser=parse_size,
        metavar="SIZE",
        help="Memory for all buffers and indexes, like 1GiB.",
    ),
]
RecordBytes = Annotated[
    int, typer.Option("--record-bytes", min=1, max=LARGEST, help="Size of a record.")
]
Key = Annotated[
    str, typer.Option("--key", metavar="OFFSET:LENGTH", help="Where the key is, in bytes.")
]


@app.callback(invoke_without_command=True)
def _version(
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    if version:
        print(f"tonnage {__version__}")
        raise typer.Exit


@app.command()
def study(
    size: Annotated[
        int,
        typer.Option("--size", parser=parse_size, metavar="SIZE", help="How much to sort."),
    ] = "4GB",  # type: ignore[assignment]  # the parser makes it a number
    directory: Annotated[
        list[Path] | None,
        typer.Option(
            "--dir",
            metavar="DIR...",
            help="Where the data goes, a directory on each device: of several the first half holds "
            "input and output, the rest scratch. Default: here.",
        ),
    ] = None,
    memory: Memory = "1GiB",  # type: ignore[assignment]
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            metavar="DIR",
            help="Where the results go. Default: a new tonnage-study-N here.",
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Measure this machine, predict a sort, run it, compare, and write a report to look at."""
    from tonnage.study import Settings
    from tonnage.study import study as run_study

    _refuse_size("--size", size)
    where = out or _new_directory("tonnage-study")
    _refuse_files("--dir", directory or [])
    _refuse_files("--out", [where])
    settings = Settings(
        size_bytes=size,
        memory_bytes=memory,
        directories=tuple(directory or [Path()]),
        out=where,
    )
    done = run_study(settings, _command())
    if as_json:
        print(json.dumps(done.to_json()))
        return
    for finding in done.findings:
        print(finding)
    print(f"Report: {done.report}")


class _InputsFirst(TyperCommand):
    """A command whose usage line shows the order that `spread` asks for."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        return ["INPUT...", "--output DIR...", "--scratch DIR...", "[OPTIONS]"]


@run_app.command("sort", cls=_InputsFirst)
def run_sort(
    inputs: Annotated[
        list[Path],
        typer.Argument(metavar="INPUT...", help="Files or directories; before the flags."),
    ],
    output: Annotated[
        list[Path],
        typer.Option(
            "--output",
            metavar="DIR...",
            help="Where the output goes: an empty or new directory on each device.",
        ),
    ],
    scratch: Annotated[
        list[Path],
        typer.Option(
            "--scratch",
            metavar="DIR...",
            help="Where scratch goes: a directory on each device.",
        ),
    ],
    record_bytes: RecordBytes = 100,
    key: Key = "0:10",
    memory: Memory = "1GiB",  # type: ignore[assignment]
    faults: Annotated[
        Path | None,
        typer.Option("--faults", help="A JSON file of faults to inject, for tests.", hidden=True),
    ] = None,
    as_json: Json = False,
) -> None:
    """Sort fixed-length records by their key, in two passes over the disks.

    The output is files part-00000, part-00001, ... in key order and a list of them, _tonnage.json.
    Records with equal keys come out in no particular order. Inputs are not changed.
    """
    from tonnage.measure import environment
    from tonnage.measure.trials import now
    from tonnage.run.sort import sort

    layout = _layout(record_bytes, key)
    _refuse_files("--output", output)
    _refuse_files("--scratch", scratch)
    _refuse_filled("--output", output)
    began_at = now()
    size = sum(_bytes_in(path) for path in inputs)
    existing = [path if path.exists() else path.parent for path in (*output, *scratch)]
    known = environment.capture(path for path in existing if path.exists())
    with engine.Progress("sorting", 2 * size) as progress:
        done = sort(
            inputs,
            output,
            scratch,
            layout=layout,
            memory_bytes=memory,
            environment=known,
            began_at=began_at,
            command=_command(),
            faults=json.loads(faults.read_text()) if faults else None,
            on_progress=progress,
        )
    if as_json:
        print(json.dumps(done.record.to_json()))
        return
    record = done.record
    rate = record.bytes / record.seconds / 1e6
    print(f"{record.records} records, {record.bytes} bytes, checksum {record.checksum}")
    print(f"{record.seconds:.2f} s, {rate:.0f} MB/s, {record.cpu_seconds:.1f} core seconds")
    for phase in record.phases:
        print(f"{phase.name}: {phase.seconds:.2f} s, limited by {phase.bottleneck}")


@measure_app.command("disk")
def measure_disk(
    directory: Annotated[
        list[Path] | None,
        typer.Option(
            "--dir",
            metavar="DIR...",
            help="A directory on each device to measure: of several the first half is read and the "
            "rest written, one does both. Default: here.",
        ),
    ] = None,
    mode: Annotated[
        list[str] | None,
        typer.Option("--mode", metavar="MODE...", help="Of rw, ro, wo and headroom. Default: all."),
    ] = None,
    size: Annotated[
        int,
        typer.Option(
            "--size", parser=parse_size, metavar="SIZE", help="How much is there to be read."
        ),
    ] = "2GB",  # type: ignore[assignment]
    seconds: Annotated[
        float, typer.Option("--seconds", min=0.1, max=1e6, help="Length of a trial.")
    ] = 5.0,
    rounds: Annotated[int, typer.Option("--rounds", min=1, help="Trials of each mode.")] = 3,
    memory: Memory = "1GiB",  # type: ignore[assignment]
    as_json: Json = False,
) -> None:
    """Measure disks with the sort's own reading and writing stages, the page cache bypassed."""
    from tonnage.measure import environment
    from tonnage.measure.disk import MODES
    from tonnage.measure.disk import measure_disk as measure

    unknown = [name for name in mode or [] if name not in MODES]
    if unknown:
        raise engine.Refused(f"--mode {unknown[0]}: there are {', '.join(MODES)}")
    _refuse_size("--size", size)
    directories = directory or [Path()]
    _refuse_files("--dir", directories)
    for path in directories:
        if not path.is_dir():
            raise engine.Refused(f"--dir {path}: there is no such directory; make it first")
    half = (len(directories) + 1) // 2
    progress = engine.Progress("measuring", 0)
    with progress:
        done = measure(
            directories[:half],
            directories[half:] or directories,
            modes=mode or MODES,
            rounds=rounds,
            seconds=seconds,
            size_bytes=size,
            memory_bytes=memory,
            environment=environment.capture(directories),
            command=_command(),
            on_progress=progress,
        )
    if as_json:
        print(json.dumps(done.to_json()))
        return
    print(f"{done.id}: page cache {done.page_cache}; {done.stopping_rule}")
    for figure in done.figures:
        middle, low, high = (
            rate / 1e6
            for rate in (
                figure.median_bytes_per_second,
                figure.low_bytes_per_second,
                figure.high_bytes_per_second,
            )
        )
        print(f"{figure.name}: {middle:.0f} MB/s ({low:.0f} to {high:.0f}, {figure.trials} trials)")


@app.command()
def gensort(
    records: Annotated[
        int, typer.Argument(min=0, max=LARGEST // 100, metavar="N", help="How many records.")
    ],
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="They share the records.")],
    ascii_records: Annotated[
        bool, typer.Option("--ascii", help="ASCII instead of binary.")
    ] = False,
    start: Annotated[
        int,
        typer.Option(
            "--start", parser=parse_number, metavar="N", help="Number of the first record."
        ),
    ] = "0",  # type: ignore[assignment]
    skew: Annotated[bool, typer.Option("--skew", help="Skewed keys.")] = False,
    as_json: Json = False,
) -> None:
    """Write the sort benchmark's records, the same bytes as its own gensort 1.5 makes."""
    from tonnage.run.records import RECORD_BYTES, generate

    with engine.Progress("generating", records * RECORD_BYTES) as progress:
        done = generate(
            records,
            files,
            start=start,
            ascii_records=ascii_records,
            skew=skew,
            on_progress=progress,
        )
    if as_json:
        print(json.dumps(done))
    else:
        print(f"{done['records']} records, {done['bytes']} bytes, {done['seconds']:.2f} s")


@app.command()
def valsort(
    paths: Annotated[list[Path], typer.Argument(metavar="FILE_OR_DIR...")],
    record_bytes: RecordBytes = 100,
    key: Key = "0:10",
    as_json: Json = False,
) -> None:
    """Tell whether records are in order, as the sort benchmark's valsort 1.5; exit 1 if not.

    Several files are one sequence in the order given; files of directories in that of their names.
    """
    from tonnage.run.records import validate

    size = sum(_bytes_in(path) for path in paths)
    with engine.Progress("validating", size) as progress:
        done = validate(paths, layout=_layout(record_bytes, key), on_progress=progress)
    if as_json:
        print(json.dumps(done))
    else:
        print(f"Records: {done['records']}")
        print(f"Checksum: {done['checksum']}")
        print(f"Duplicate keys: {done['duplicate_keys']}")
        if done["unordered"]:
            print(f"First unordered record is record {done['first_unordered']}")
            print(f"NOT SORTED: {done['unordered']} unordered records")
        else:
            print("SUCCESS: all records are in order")
    if done["unordered"]:
        raise typer.Exit(1)


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


def spread(arguments: list[str]) -> list[str]:
    """The arguments with a flag before each value: ``--dir A B`` becomes ``--dir A --dir B``.

    That is for the flags in `SEVERAL`. What follows one, up to the next option or ``--``, is its.
    """
    found: list[str] = []
    flag, has_value = "", False
    for place, argument in enumerate(arguments):
        if argument == "--":
            return [*found, *arguments[place:]]
        name, given, _ = argument.partition("=")
        if argument.startswith("-"):
            flag, has_value = name if name in SEVERAL else "", bool(given)
        elif flag and has_value:
            found.append(flag)
        else:
            has_value = True
        found.append(argument)
    return found


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


def _layout(record_bytes: int, key: str) -> Layout:
    found = re.fullmatch(r"(\d+):(\d+)", key)
    if found is None:
        raise engine.Refused(f"--key {key}: write OFFSET:LENGTH in bytes, like 0:10")
    offset, length = int(found[1]), int(found[2])
    if length < 1 or offset + length > record_bytes:
        raise engine.Refused(
            f"--key {offset}:{length} does not lie in a record of {record_bytes} bytes: give "
            "OFFSET:LENGTH within --record-bytes"
        )
    return Layout(record_bytes=record_bytes, key_offset=offset, key_bytes=length)


def _bytes_in(path: Path) -> int:
    """Bytes to be read, for progress only; what is unusable is refused by the job itself."""
    try:
        if path.is_dir():
            return sum(file.stat().st_size for file in path.iterdir() if file.is_file())
        return path.stat().st_size
    except OSError:
        return 0


def _refuse_files(flag: str, paths: Iterable[Path]) -> None:
    for path in paths:
        nearest = next((each for each in (path, *path.parents) if each.exists()), Path())
        if not nearest.is_dir():
            raise engine.Refused(f"{flag} {path}: {nearest} is a file: give a directory")


def _refuse_filled(flag: str, directories: list[Path]) -> None:
    """Refuses directories whose files would be taken for the output's.

    Names of parts are left to the job: it knows those that a killed one left.
    """
    seen: set[Path] = set()
    for directory in directories:
        if directory.resolve() in seen:
            raise engine.Refused(f"{flag} {directory} is given twice: give each directory once")
        seen.add(directory.resolve())
        for path in sorted(directory.iterdir()) if directory.is_dir() else []:
            if path.is_file() and not path.name.startswith((".", "_", "part-")):
                raise engine.Refused(
                    f"{flag} {directory} is not empty (it holds {path.name}): give an empty or "
                    "new directory"
                )


def _refuse_size(flag: str, size: int) -> None:
    if size < 1_000_000:
        raise engine.Refused(f"{flag} {size}: give at least 1MB, less cannot be measured")


def _new_directory(name: str) -> Path:
    number = 1
    while (path := Path(f"{name}-{number}")).exists():
        number += 1
    return path


def _command() -> list[str]:
    return ["tonnage", *sys.argv[1:]]
