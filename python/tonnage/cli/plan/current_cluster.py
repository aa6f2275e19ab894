"""The cluster that a job runs on today: ``--now "20 x r5.4xlarge" --per-month 30``."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from tonnage.base import core
from tonnage.cli.options.types import MAX_NODES, Option, number
from tonnage.cli.options.validate import usage_errors

if TYPE_CHECKING:
    from tonnage.catalog import Catalog
    from tonnage.plan.recommendations.current_cluster import Cluster

MOST_RUNS = 1e6


@dataclass(frozen=True)
class NodesOfType:
    nodes: int
    machine_type: str


def parse_cluster(text: str) -> NodesOfType:
    """``20 x r5.4xlarge``, ``20*aws/r5.4xlarge``, or one machine's type alone."""
    match = re.fullmatch(r"\s*(?:(\d{1,7})\s*(?:[x×*]\s*|\s))?\s*([\w./-]+)\s*", text)
    nodes = int(match[1] or 1) if match else 0
    if match is None or not 1 <= nodes <= MAX_NODES:
        raise typer.BadParameter(
            f"{text!r} is not a cluster; use a number of nodes and their type, like "
            "'20 x r5.4xlarge'"
        )
    return NodesOfType(nodes, match[2])


@dataclass(frozen=True, kw_only=True)
class CurrentClusterOptions:
    now: Annotated[
        NodesOfType | None,
        Option(
            "CLUSTER",
            "The cluster that the job runs on today, like '20 x r5.4xlarge': prints what it costs "
            "there, what limits it, and what the best candidate saves. Without --deadline, only "
            "clusters that are no slower. Of an application that was imported, the cluster of that "
            "run: its core seconds then count as those of such machines.",
            parse_cluster,
        ),
    ] = None
    per_month: Annotated[
        float | None,
        Option("N", "With --now: number of runs a month.", number(1e-3, MOST_RUNS)),
    ] = None

    def cluster(self, catalogs: Sequence[Catalog]) -> Cluster | None:
        """The cluster, as the catalogs have its machines."""
        from tonnage.catalog import CatalogError, find_offer
        from tonnage.plan.recommendations.current_cluster import Cluster

        if self.now is None:
            if self.per_month is not None:
                raise core.UsageError(
                    "--per-month counts runs on today's cluster; add --now, like --now "
                    "'20 x r5.4xlarge'"
                )
            return None
        with usage_errors(CatalogError, prefix="--now: "):
            catalog, offer = find_offer(catalogs, self.now.machine_type)
        return Cluster(catalog, offer, self.now.nodes)
