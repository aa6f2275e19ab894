"""``tonnage observe``."""

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from tonnage.base import core
from tonnage.cli.options.files import new_directory
from tonnage.cli.options.option_groups import default
from tonnage.cli.options.types import (
    Argument,
    Option,
    Size,
    Switch,
    Time,
    duration,
    parse_measurable,
    whole_number,
)
from tonnage.cli.options.validate import refuse_files, refuse_non_empty
from tonnage.cli.output.observed_runs.observation import observation_lines


def observe(
    command: Annotated[
        list[str] | None, Argument("-- COMMAND...", "The command to run and observe, after --.")
    ] = None,
    pid: Annotated[
        list[int] | None,
        Option(
            "PID...",
            "Observe running processes and their children, until they end or you press Ctrl-C.",
            whole_number(1, 1 << 22),
        ),
    ] = None,
    interval: Annotated[
        float,
        Time(
            "Interval between samples, lengthened automatically during long observations.",
            duration(0.01, 3600),
        ),
    ] = default("0.05s"),
    data: Annotated[
        int | None,
        Size(
            "Size of the command's input. Default: the number of bytes that its first phase reads.",
            parse_measurable,
        ),
    ] = None,
    out: Annotated[
        Path | None,
        Option(
            "DIR",
            "Directory for the results. Default: a new tonnage-observe-N in the current directory.",
            flag="--output",
        ),
    ] = None,
    as_json: Annotated[
        bool,
        Switch(
            "--json",
            "Print the observation as one JSON document; the command's standard output is "
            "redirected to standard error.",
        ),
    ] = False,
) -> None:
    """Run a command, record its resource use, and find its phases and bottlenecks.

    The command's stdin, stdout and exit code pass through unchanged; a summary goes to standard
    error. The results are observation.json, job.json (the resources that each phase needs, for
    tonnage plan) and time series in Parquet files.

    Examples:
        tonnage observe --output tar -- sh -c 'tar c data | zstd > data.tar.zst'
        tonnage observe --pid 4711 --interval 1s
    """
    from tonnage.measure.observe.launch import CommandNotStarted
    from tonnage.measure.observe.monitor import monitor_command, monitor_processes
    from tonnage.measure.trial import environment

    if bool(command) == bool(pid):
        raise core.UsageError("use either -- COMMAND or --pid PID...")
    if out:
        refuse_files("--output", [out])
        refuse_non_empty("--output", [out])
    captured = environment.capture([Path()])
    out = out or new_directory("tonnage-observe")
    is_new = not out.exists()
    out.mkdir(parents=True, exist_ok=True)
    try:
        if command:
            observed = monitor_command(command, out, interval, to_stderr=as_json)
        else:
            observed = monitor_processes(pid or [], out, interval)
    except core.UsageError as error:
        for path in out.glob("*.csv"):
            path.unlink()
        if is_new:
            out.rmdir()
        if isinstance(error, CommandNotStarted):
            print(f"tonnage: {error}", file=sys.stderr)
            raise typer.Exit(error.code) from None
        raise
    # Imported only now: NumPy's threads would not block our signals.
    from tonnage.measure.observe.observation import write_observation

    written = write_observation(
        observed,
        out,
        command=command or [],
        pids=pid or [],
        data=data,
        interval_seconds=interval,
        environment=captured,
    )
    if as_json:
        print(json.dumps(written.observation.to_json()))
    else:
        for line in observation_lines(written.observation):
            print(line, file=sys.stderr)
        files = (
            "observation.json, job.json"
            if written.job
            else "observation.json (no job.json, since the input size is unknown; add --data)"
        )
        print(f"Results in {out}: {files}", file=sys.stderr)
    if observed.exit_code:
        raise typer.Exit(observed.exit_code)
