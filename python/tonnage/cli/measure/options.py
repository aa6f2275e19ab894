"""Options that the commands of ``tonnage measure`` share."""

import dataclasses
import functools
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from tonnage.base import core, formatting
from tonnage.base.records import Measurement, Trial
from tonnage.cli.options.cluster import NODE, ClusterAddress, Nodes
from tonnage.cli.options.files import command_line, new_directory
from tonnage.cli.options.option_groups import default
from tonnage.cli.options.types import (
    Count,
    Json,
    Option,
    Size,
    Switch,
    Time,
    duration,
    parse_measurable,
    parse_share,
)
from tonnage.cli.options.validate import (
    refuse_memory,
    refuse_missing,
    refuse_relative,
    refuse_without,
)

ENGINES = ("ring", "sync")
REPETITIONS = 3
MAX_REPETITIONS = 30
"""With --until-confidence, unless --repetitions is given."""

Operations = Annotated[
    list[str] | None,
    Option(
        "OPERATION...",
        "read4k, read4m, write4k, write4m (each write is flushed), write4k-64 (one write in 64, "
        "chosen at random, is flushed). Default: all.",
    ),
]
Directory = Annotated[Path, Option("DIR", "Directory on the device to measure.", flag="--dir")]
FileSize = Annotated[
    int,
    Size(
        "Size of the test file; it must be larger than any cache of the device or machine.",
        parse_measurable,
    ),
]
EngineName = Annotated[
    str,
    Option(
        "ENGINE",
        "ring: one io_uring for all operations; sync: one blocking thread per operation.",
        flag="--engine",
    ),
]
TrialSize = Annotated[
    int,
    Size(
        "Maximum amount of data that a trial reads, and maximum amount that it writes.",
        parse_measurable,
    ),
]
TrialSeconds = Annotated[float, Time("Maximum duration of a trial.", duration(0.1, 1_000_000))]
Seed = Annotated[int, Count("Random seed.", 0, 1 << 62)]
Labels = Annotated[
    list[str] | None,
    Option(
        "NAME=VALUE...",
        "Labels to store with the results, like region=us-east-1. Use machine-type=... and "
        "provider=... to record which offer was measured.",
    ),
]
Measure = Callable[..., Iterator[Trial | Measurement]]
"""Measures into a directory; takes ``command``, ``labels`` and ``on_progress`` by name."""
Work = Callable[[str | None], Measure]
"""What measures on the node of a name; ``None`` is this machine."""


@dataclass(frozen=True, kw_only=True)
class RepetitionOptions:
    repetitions: Annotated[
        int | None,
        Count(
            f"Number of times each trial is run. Default: {REPETITIONS}; with --until-confidence, "
            f"at most {MAX_REPETITIONS}.",
            1,
            10_000,
        ),
    ] = None
    until_confidence: Annotated[
        float | None,
        Option(
            "PERCENT",
            "Repeat until the 95 % confidence interval of the median lies within this percentage "
            "of the median, like 2%.",
            parse_share,
        ),
    ] = None

    @property
    def most(self) -> int:
        return self.repetitions or (MAX_REPETITIONS if self.until_confidence else REPETITIONS)


@dataclass(frozen=True, kw_only=True)
class ResultOptions:
    label: Labels = None
    output: Annotated[
        Path | None,
        Option(
            "DIR",
            "Directory for the results. An unfinished measurement there is resumed. Default: a "
            "new directory in the current one.",
        ),
    ] = None
    as_json: Json = False

    @property
    def labels(self) -> dict[str, str]:
        labels: dict[str, str] = {}
        for each in self.label or []:
            name, separator, value = each.partition("=")
            if not separator or not name or not value:
                raise core.UsageError(f"--label {each}: use NAME=VALUE, like region=us-east-1")
            if labels.setdefault(name, value) != value:
                raise core.UsageError(
                    f"--label {each} conflicts with {name}={labels[name]}; remove one of them"
                )
        return labels

    def directory(self, kind: str) -> Path:
        return self.output or new_directory(f"tonnage-{kind}")


@dataclass(frozen=True, kw_only=True)
class NodeOptions:
    cluster: ClusterAddress = None
    nodes: Nodes = None
    timeout: Annotated[
        float,
        Time(
            "With --cluster: a node that reports nothing, or makes no progress, for this long is "
            "dropped. The other nodes' results are kept, and the exit code is 1."
        ),
    ] = default("60s")


@dataclass(frozen=True, kw_only=True)
class NodeOrderOptions(NodeOptions):
    one_at_a_time: Annotated[
        bool,
        Switch(
            "--one-at-a-time",
            "With --cluster: measure nodes one at a time instead of all at once.",
        ),
    ] = False


@dataclass(frozen=True, kw_only=True)
class ClusterOptions(ResultOptions, NodeOptions):
    """A measurement here, or on the nodes of a cluster. (The order of bases is that of help.)"""

    def __post_init__(self) -> None:
        if self.cluster is None:
            refuse_without("--cluster", self._of_cluster())

    def _of_cluster(self) -> dict[str, Any]:
        return {"--nodes": self.nodes}

    @property
    def request(self) -> dict[str, Any]:
        return {
            "command": command_line(),
            "labels": self.labels,
            "nodes": self.nodes,
            "patience_seconds": self.timeout,
        }


@dataclass(frozen=True, kw_only=True)
class MeasureOptions(ClusterOptions, NodeOrderOptions):
    def _of_cluster(self) -> dict[str, Any]:
        return {"--nodes": self.nodes, "--one-at-a-time": self.one_at_a_time}

    @property
    def request(self) -> dict[str, Any]:
        return super().request | {"one_at_a_time": self.one_at_a_time}


def on_node(directory: Path, node: str | None) -> Path:
    return directory if node is None else Path(str(directory).replace(NODE, node))


def work_in(directory: Path, measure: Measure, settings: Any) -> Work:
    def work(node: str | None) -> Measure:
        of_node = settings if node is None else settings.for_node(node)
        return functools.partial(measure, on_node(directory, node), settings=of_node)

    return work


def settings_in(directory: Path, settings: Any) -> Mapping[str, Any]:
    return dataclasses.asdict(settings) | {"directory": directory}


def refuse_directories(options: ClusterOptions, directories: Sequence[Path]) -> None:
    """Refuses ``--dir`` that does not exist here, or that nodes of a cluster could not find."""
    for directory in directories:
        unknown = [each for each in re.findall(r"\{[^{}/]*\}", str(directory)) if each != NODE]
        if options.cluster is not None and unknown:
            raise core.UsageError(
                f"--dir {directory}: {unknown[0]} is not replaced; use {NODE} for the node's name"
            )
        if options.cluster is None and NODE in str(directory) and not directory.is_dir():
            raise core.UsageError(
                f"--dir {directory}: {NODE} needs --cluster; add --cluster, or use a path without "
                "it"
            )
    if options.cluster is None:
        refuse_missing("--dir", directories)
    else:
        refuse_relative(directories)


def refuse_queue_depth(memory_bytes: int) -> None:
    refuse_memory(
        f"--queue-depth needs {formatting.memory(memory_bytes)} of buffers,",
        memory_bytes,
        "lower --queue-depth, or use only --operation read4k write4k write4k-64",
    )
