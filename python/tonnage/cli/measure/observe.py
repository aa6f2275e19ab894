"""``tonnage observe``."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from tonnage.base import core, formatting
from tonnage.base.records import Observation, ObservedPhase
from tonnage.cli.options.files import new_directory
from tonnage.cli.options.types import number, parse_measurable, whole_number
from tonnage.cli.options.validate import refuse_files, refuse_non_empty


def observe(
    command: Annotated[
        list[str] | None,
        typer.Argument(metavar="-- COMMAND...", help="What to run and watch; after --."),
    ] = None,
    pid: Annotated[
        list[int] | None,
        typer.Option(
            "--pid",
            parser=whole_number(1, 1 << 22),
            metavar="PID...",
            help="Watch processes that run already, and all below them, until they end or Ctrl-C.",
        ),
    ] = None,
    interval: Annotated[
        float,
        typer.Option(
            "--interval",
            parser=number(0.01, 3600),
            metavar="SECONDS",
            help="From one sample to the next; more where it lasts long.",
        ),
    ] = "0.05",  # type: ignore[assignment]
    data: Annotated[
        int | None,
        typer.Option(
            "--data",
            parser=parse_measurable,
            metavar="SIZE",
            help="Size of its input. Default: what the first phase reads.",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--output", metavar="DIR", help="Where results go. Default: tonnage-observe-N, here."
        ),
    ] = None,
    as_json: Annotated[
        bool,
        typer.Option(
            "--json",
            help="Print the observation as one JSON document; the command's standard output goes "
            "to standard error.",
        ),
    ] = False,
) -> None:
    """Run a command, watch what it takes of this machine, and find its phases and bottlenecks.

    The command's input, output and exit code stay its own; a summary goes to standard error. DIR
    gets observation.json, job.json (the demands of each phase) and the series as Parquet.
    """
    from tonnage.measure.observe.launch import CommandNotStarted
    from tonnage.measure.observe.monitor import monitor_command, monitor_processes
    from tonnage.measure.trial import environment

    if bool(command) == bool(pid):
        raise core.UsageError("give either -- COMMAND or --pid PID...: what is to be watched")
    if out:
        refuse_files("--output", [out])
        refuse_non_empty("--output", [out])
    known = environment.capture([Path()])
    out = out or new_directory("tonnage-observe")
    is_new = not out.exists()
    out.mkdir(parents=True, exist_ok=True)
    try:
        if command:
            watched = monitor_command(command, out, interval, to_stderr=as_json)
        else:
            watched = monitor_processes(pid or [], out, interval)
    except core.UsageError as why:
        for path in out.glob("*.csv"):
            path.unlink()
        if is_new:
            out.rmdir()
        if isinstance(why, CommandNotStarted):
            print(f"tonnage: {why}", file=sys.stderr)
            raise typer.Exit(why.code) from None
        raise
    # Only now: numpy has threads of its own, which would not hold our signals back.
    from tonnage.measure.observe.observation import write_observation

    done = write_observation(
        watched,
        out,
        command=command or [],
        pids=pid or [],
        data=data,
        interval_seconds=interval,
        environment=known,
    )
    if as_json:
        print(json.dumps(done.observation.to_json()))
    else:
        for line in in_words(done.observation):
            print(line, file=sys.stderr)
        kept = (
            "observation.json and job.json"
            if done.job
            else "observation.json (no job, since its input is not known: give --data)"
        )
        print(f"{kept} are in {out}" if done.job else f"{kept} is in {out}", file=sys.stderr)
    if watched.exit_code:
        raise typer.Exit(watched.exit_code)


def in_words(observation: Observation) -> list[str]:
    """What was seen, line by line."""
    phases = observation.phases
    what = formatting.command(observation.command) if observation.command else "processes"
    read, written = (
        sum(getattr(phase, f"{kind}_bytes") for phase in phases) for kind in ("read", "written")
    )
    said = [
        f"{what}: {formatting.seconds(observation.seconds)}, "
        f"{formatting.significant(sum(phase.cpu_seconds for phase in phases))} core seconds, "
        f"{formatting.size(read)} read, {formatting.size(written)} written"
        + (f", exit code {observation.exit_code}" if observation.exit_code else ""),
        *(_phase(phase) for phase in phases),
    ]
    if observation.input_bytes:
        said.append(
            f"input: {formatting.size(observation.input_bytes)} ({observation.input_from}); "
            "--data says it better"
            if observation.input_from != "--data"
            else f"input: {formatting.size(observation.input_bytes)}"
        )
    return [*said, *observation.notes]


def _phase(phase: ObservedPhase) -> str:
    parts = [formatting.seconds(phase.seconds)]
    for verb, amount in (
        ("read", phase.read_bytes),
        ("written", phase.written_bytes),
        ("sent", phase.network_sent_bytes),
        ("received", phase.network_received_bytes),
    ):
        if amount >= 1e6:
            parts.append(f"{formatting.size(amount)} {verb}")
    parts.append(f"{formatting.significant(phase.cpu_seconds)} core seconds")
    parts.append(f"{formatting.memory(phase.peak_memory_bytes)} at most")
    fixed = "" if phase.grows else " (not part of the job: it moves next to nothing)"
    limited = (
        "limited by nothing here"
        if phase.bottleneck.startswith("none")
        else f"limited by {formatting.resource(phase.bottleneck)}"
    )
    return f"{phase.name}{fixed}: {', '.join(parts)}; {limited}: {phase.why}"
