"""Options of commands that can run on a cluster, here or as a job of its own."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from tonnage.base import core
from tonnage.cli.options.option_groups import flags_and_values
from tonnage.cli.options.optional_dependencies import refuse_missing_extra
from tonnage.cli.options.types import Count, Option, Time
from tonnage.cli.options.validate import refuse_without
from tonnage.cluster.time_limits import ACCUSED_SECONDS, PATIENCE_SECONDS

TIMEOUT_SECONDS = PATIENCE_SECONDS
NODE = "{node}"
"""In a path on a cluster, the node's name."""

ClusterAddress = Annotated[
    str | None,
    Option(
        "ADDRESS",
        "Use the nodes of a Ray cluster: HOST:PORT, or auto for the cluster this machine belongs "
        "to. TYPE@ADDRESS uses only that cluster's nodes of machine type TYPE. Paths are local to "
        "each node; {node} in a path is replaced by the node's name.",
    ),
]
Nodes = Annotated[
    int | None, Count("With --cluster: number of nodes to use. Default: all.", 1, 10_000)
]
Timeout = Annotated[
    float | None,
    Time(
        "With --cluster: a node is considered lost if it reports nothing for this long; if its "
        "connections to other nodes are broken and it reports nothing for "
        f"{ACCUSED_SECONDS:g}s; or "
        "if all other nodes have waited for it for twice this long. "
        f"Default: {TIMEOUT_SECONDS:g}s."
    ),
]
CandidateNumber = Annotated[
    int | None,
    Count(
        "Which candidate of the plan to use, by its number; 1 is the best. Default: 1.",
        1,
        1_000_000,
    ),
]
Capacities = Annotated[
    list[Path] | None,
    Option(
        "DIR...",
        "With --cluster: measurements of these nodes (tonnage measure disk, net and object "
        "--cluster). Each phase is then compared with the time these measurements predict, and "
        "nodes with slower disks get less data. Default: all nodes get the same amount.",
    ),
]
Durability = Annotated[
    str | None,
    Option(
        "none|replicated",
        "With --cluster: what protects output on the nodes' disks. none: a node lost during the "
        "job is recovered from; one lost afterwards takes its part of the output with it; "
        "replicated: another node keeps a copy of each file. Output in object storage needs no "
        "protection. Default: none.",
    ),
]


@dataclass(frozen=True, kw_only=True)
class JobOptions:
    cluster: ClusterAddress = None
    job_dir: Annotated[
        Path | None,
        Option(
            "DIR",
            "With --cluster: directory for the job's state and results. An unfinished job there is "
            "resumed. Default: a new directory in the current one.",
        ),
    ] = None
    nodes: Nodes = None
    timeout: Timeout = None
    plan: Annotated[
        Path | None,
        Option(
            "FILE",
            "With --cluster: a plan for this kind of job, from tonnage plan --json. The plan sets "
            "the number of nodes and, for sort and mapreduce, the durability; the run is compared "
            "with the plan.",
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
            "With --cluster: TCP connections from each node to every other. Default: as many "
            "in all as it has cores, up to 256.",
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
            raise core.UsageError(f"{url}: a URL is the same for all nodes; remove {NODE} from it")
