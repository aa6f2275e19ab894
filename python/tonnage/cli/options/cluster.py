"""Flags of jobs that run on a fleet."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tonnage.cli.options.types import parse_duration, whole_number

CONNECTIONS = 1
PATIENCE_SECONDS = 60.0

Fleet = Annotated[
    str | None,
    typer.Option(
        "--cluster",
        metavar="ADDRESS",
        help="Do it on every machine of the Ray cluster at HOST:PORT, or, with auto, of the one "
        "that this machine is in; TYPE@auto: on those of this machine type. Paths are the "
        "machines' own, --memory is of each; {node} in a path is its name.",
    ),
]
Out = Annotated[
    Path | None,
    typer.Option(
        "--job-dir",
        metavar="DIR",
        help="With --cluster: where what befell is kept; what was begun there goes on. Default: a "
        "new directory here.",
    ),
]
Connections = Annotated[
    int | None,
    typer.Option(
        "--connections",
        parser=whole_number(1, 64),
        metavar="N",
        help=f"With --cluster: connections from each machine to each other. Default: {CONNECTIONS}.",
    ),
]
Patience = Annotated[
    float | None,
    typer.Option(
        "--timeout",
        parser=parse_duration,
        metavar="TIME",
        help="With --cluster: a machine that says nothing for so long is lost (at most 3s, if others "
        "find its connections broken), as is one for which nobody has moved anything for twice as "
        f"long. Default: {PATIENCE_SECONDS:g}s.",
    ),
]
Instances = Annotated[
    int | None,
    typer.Option(
        "--nodes",
        parser=whole_number(1, 10_000),
        metavar="N",
        help="With --cluster: on so many machines. Default: all.",
    ),
]
Plan = Annotated[
    Path | None,
    typer.Option(
        "--plan",
        metavar="FILE",
        help="With --cluster: what tonnage plan --json printed of such a job; so many machines, and "
        "what is promised, are as planned, and the plan stands beside what came.",
    ),
]
Candidate = Annotated[
    int | None,
    typer.Option(
        "--candidate",
        parser=whole_number(1, 1_000_000),
        metavar="N",
        help="With --plan: not the best but the N-th.",
    ),
]
Capacities = Annotated[
    list[Path] | None,
    typer.Option(
        "--capacities",
        metavar="DIR...",
        help="With --cluster: what tonnage measure disk, net and object --cluster kept: the limit of "
        "each phase is told; a machine with slower disks gets less. Default: all get the same.",
    ),
]
