"""Options of commands that can run on a cluster, here or as a job of its own."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from tonnage.base import core
from tonnage.cli.options.option_groups import flags_and_values
from tonnage.cli.options.optional_dependencies import refuse_missing_extra
from tonnage.cli.options.types import Count, Option, Time
from tonnage.cli.options.validate import refuse_without
from tonnage.cluster.time_limits import PATIENCE_SECONDS

CONNECTIONS = 1
TIMEOUT_SECONDS = PATIENCE_SECONDS
NODE = "{node}"
"""In a path on a cluster, the node's name."""

ClusterAddress = Annotated[
    str | None,
    Option(
        "ADDRESS",
        "Use the nodes of a Ray cluster: HOST:PORT, or auto for the cluster that this machine is "
        "in; TYPE@ADDRESS uses only its nodes of one machine type. Paths are local to each node; "
        "{node} in a path stands for the node's name.",
    ),
]
Nodes = Annotated[
    int | None, Count("With --cluster: how many nodes to use. Default: all.", 1, 10_000)
]
Timeout = Annotated[
    float | None,
    Time(
        "With --cluster: a node that reports nothing for this long counts as lost (for 3s, if "
        "its connections to other nodes are broken), and so does one that holds up all others "
        f"for twice as long. Default: {TIMEOUT_SECONDS:g}s."
    ),
]
CandidateNumber = Annotated[
    int | None, Count("Which candidate of the plan, 1 being the best. Default: 1.", 1, 1_000_000)
]
Capacities = Annotated[
    list[Path] | None,
    Option(
        "DIR...",
        "With --cluster: measurements of these nodes (tonnage measure disk, net and object "
        "--cluster). Each phase is then compared with its limit, and nodes with slower disks get "
        "less data. Default: all nodes get the same amount.",
    ),
]
Durability = Annotated[
    str | None,
    Option(
        "none|replicated|volumes",
        "With --cluster: what protects the output when a node is lost. none: its part is "
        "computed again while the job runs; replicated: another node keeps a copy of each file; "
        "volumes: the output is in object storage. Default: none, or volumes if --output is a URL.",
    ),
]


@dataclass(frozen=True, kw_only=True)
class JobOptions:
    cluster: ClusterAddress = None
    job_dir: Annotated[
        Path | None,
        Option(
            "DIR",
            "With --cluster: directory for the job's state and results. An existing job is "
            "resumed. Default: a new one in the current directory.",
        ),
    ] = None
    nodes: Nodes = None
    timeout: Timeout = None
    plan: Annotated[
        Path | None,
        Option(
            "FILE",
            "With --cluster: a plan for this kind of job, from tonnage plan --json. It sets the "
            "number of nodes and the durability, and the run is compared with it.",
        ),
    ] = None
    candidate: CandidateNumber = None

    def refuse_without_cluster(self) -> None:
        if self.cluster is None:
            refuse_without("--cluster", flags_and_values(self))


@dataclass(frozen=True, kw_only=True)
class ShuffleOptions(JobOptions):
    connections: Annotated[
        int | None,
        Count(
            "With --cluster: TCP connections from each node to every other. Default: "
            f"{CONNECTIONS}.",
            1,
            64,
        ),
    ] = None
    capacities: Capacities = None
    durability: Durability = None


def refuse_without_ray() -> None:
    refuse_missing_extra("cluster", "--cluster")


def refuse_node_in_urls(urls: list[str]) -> None:
    for url in urls:
        if NODE in url:
            raise core.UsageError(
                f"{url}: a URL is the same for all nodes: write it without {NODE}"
            )
