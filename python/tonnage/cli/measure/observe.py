"""``tonnage observe``."""

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tonnage.base import core
from tonnage.base.records import Environment
from tonnage.cli.options.cluster import (
    TIMEOUT_SECONDS,
    ClusterAddress,
    Nodes,
    Timeout,
    refuse_without_ray,
)
from tonnage.cli.options.files import new_directory
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
from tonnage.cli.options.validate import refuse_files, refuse_non_empty, refuse_without
from tonnage.cli.output.observed_runs.observation import observation_lines

if TYPE_CHECKING:
    from tonnage.measure.observe.observation import ObservationResult

INTERVAL_SECONDS, CLUSTER_INTERVAL_SECONDS = 0.05, 0.25


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
        float | None,
        Time(
            "Interval between samples, lengthened automatically during long observations. "
            "Default: 0.05s, with --cluster 0.25s.",
            duration(0.01, 3600),
        ),
    ] = None,
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
    cluster: ClusterAddress = None,
    nodes: Nodes = None,
    timeout: Timeout = None,
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

    With --cluster the command runs here, like spark-submit, and every node is watched whole: all
    that its cores, disks and network cards do, whatever does it.

    Examples:
        tonnage observe --output tar -- sh -c 'tar c data | zstd > data.tar.zst'
        tonnage observe --pid 4711 --interval 1s
        tonnage observe --cluster auto --data 2TB -- spark-submit job.py
    """
    from tonnage.measure.observe.launch import CommandNotStarted
    from tonnage.measure.observe.monitor import monitor_command, monitor_processes
    from tonnage.measure.trial import environment

    if bool(command) == bool(pid):
        raise core.UsageError("use either -- COMMAND or --pid PID...")
    if cluster is None:
        refuse_without("--cluster", {"--nodes": nodes, "--timeout": timeout})
    elif pid:
        raise core.UsageError("--pid: with --cluster, use -- COMMAND")
    if out:
        refuse_files("--output", [out])
        refuse_non_empty("--output", [out])
    captured = environment.capture([Path()])
    out = out or new_directory("tonnage-observe")
    is_new = not out.exists()
    out.mkdir(parents=True, exist_ok=True)
    try:
        if cluster is not None and command:
            written = _observe_on_cluster(
                command,
                out,
                cluster=cluster,
                nodes=nodes,
                interval_seconds=CLUSTER_INTERVAL_SECONDS if interval is None else interval,
                patience_seconds=TIMEOUT_SECONDS if timeout is None else timeout,
                to_stderr=as_json,
                data=data,
                environment=captured,
            )
        else:
            seconds = INTERVAL_SECONDS if interval is None else interval
            if command:
                observed = monitor_command(command, out, seconds, to_stderr=as_json)
            else:
                observed = monitor_processes(pid or [], out, seconds)
            # Imported only now: NumPy's threads would not block our signals.
            from tonnage.measure.observe.observation import write_observation

            written = write_observation(
                observed,
                out,
                command=command or [],
                pids=pid or [],
                data=data,
                interval_seconds=seconds,
                environment=captured,
            )
    except (core.UsageError, core.RunError) as error:
        for path in [*out.glob("*.csv"), *out.glob("*.parquet")]:
            path.unlink()
        if is_new:
            out.rmdir()
        if isinstance(error, CommandNotStarted):
            print(f"tonnage: {error}", file=sys.stderr)
            raise typer.Exit(error.code) from None
        raise
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
    if written.observation.exit_code:
        raise typer.Exit(written.observation.exit_code)


def _observe_on_cluster(
    command: list[str],
    out: Path,
    *,
    cluster: str,
    nodes: int | None,
    interval_seconds: float,
    patience_seconds: float,
    to_stderr: bool,
    data: int | None,
    environment: Environment,
) -> "ObservationResult":
    """Watch the nodes while the command runs, and write what was seen."""
    refuse_without_ray()
    from tonnage.cluster.ray_adapter import connect
    from tonnage.measure.observe.nodes.cluster_run import run_on_cluster
    from tonnage.measure.observe.nodes.observation import ClusterCommand, write_cluster_run

    with connect(cluster) as connected:
        run = run_on_cluster(
            connected,
            command,
            out,
            interval_seconds=interval_seconds,
            nodes=nodes,
            patience_seconds=patience_seconds,
            to_stderr=to_stderr,
        )
    return write_cluster_run(
        run,
        out,
        ClusterCommand(command, run.exit_code, environment, run.own_cpu_seconds),
        data=data,
    )
