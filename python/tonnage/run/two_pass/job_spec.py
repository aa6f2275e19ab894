"""What a two-pass job is to do: what all jobs have in common, and what each kind says itself.

The driver runs rounds of pass one until nothing is missing, then pass two, and does again what was
lost. Which splits a job reads, how keys are divided among partitions, what workers are asked, and
which totals have to agree, is its kind's: those of `run.sort.cluster`, `run.mapreduce.cluster`.
"""

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol

from tonnage.base import core
from tonnage.base.records.durability import DURABILITIES, Durability
from tonnage.cluster.protocol import Step
from tonnage.cluster.step_worker import WorkerSteps
from tonnage.cluster.time_limits import PATIENCE_SECONDS
from tonnage.run.storage.object_store import ObjectStoreOptions, is_url
from tonnage.run.two_pass.messages import (
    SAMPLE,
    FinishedFile,
    NodeInventory,
    PassOne,
    PassTwo,
    SampleResult,
    WorkReport,
)
from tonnage.run.two_pass.output.names import name_below
from tonnage.run.two_pass.schedule import Finished, Round, Schedule, Split
from tonnage.run.two_pass.splits import FileId

NODE_PLACEHOLDER = "{node}"
"""In a path, the node's name."""

Plan = Mapping[str, Any]
"""The job's ``plan.json``: its input, its partitions, the nodes' weights."""
Event = Mapping[str, Any]
"""A line of the job's ``rounds.json``."""


class Sampler(Protocol):
    """Has nodes look at the input before it is known how keys are divided."""

    def __call__(
        self,
        chunks: int,
        step: Step[Any, SampleResult] = SAMPLE,
        numbers: Sequence[int] | None = None,
        of_splits: Mapping[str, Sequence[Any]] | None = None,
        **more: Any,
    ) -> list[bytes]:
        """What nodes find in so many chunks together, evenly spread over splits of these numbers.

        ``step`` is asked of each node with its share of the splits; by default, all. ``more`` are
        fields that the step's request has in addition to `messages.Sample`; so are ``of_splits``,
        which have a value for each of all splits, of which a request has those of its own.
        """


def check_node_paths(setting: str, paths: Iterable[str]) -> None:
    """Refuses relative paths, which machines would resolve differently, and other placeholders."""
    for path in paths:
        if not path.startswith("/"):
            raise core.UsageError(
                f"{path} must be an absolute path, because it is resolved on each node",
                setting=setting,
            )
        unknown = [each for each in re.findall(r"\{[^{}/]*\}", path) if each != NODE_PLACEHOLDER]
        if unknown:
            raise core.UsageError(
                f"{path}: unknown placeholder {unknown[0]}; only {NODE_PLACEHOLDER} (the node's "
                "name) is supported",
                setting=setting,
            )


def durability_of(durability: str | None, output: Iterable[str]) -> Durability:
    """The durability of an output there; `UsageError` if it cannot have the requested one."""
    if durability is not None and durability not in DURABILITIES:
        raise core.UsageError(
            f"unknown durability {durability}; choose {' or '.join(DURABILITIES)}",
            setting="durability",
        )
    url = next(filter(is_url, output), None)
    if url is not None and durability == "replicated":
        raise core.UsageError(
            f"{durability}: the output {url} is in object storage, which survives the loss of "
            "any node; omit durability, or use directories for the output",
            setting="durability",
        )
    return "replicated" if durability == "replicated" else "none"


@dataclass(frozen=True, kw_only=True)
class WorkerConfig(ABC):
    """A job as one of its nodes has it: it is sent there, and makes the node's worker."""

    job: str
    node: str
    inputs: tuple[str, ...]
    output: tuple[str, ...]
    scratch: tuple[str, ...]
    memory_bytes: int
    output_url: str | None = None
    object_store: ObjectStoreOptions = field(default_factory=ObjectStoreOptions)

    @abstractmethod
    def steps(self) -> WorkerSteps:
        """The node's worker."""


@dataclass(frozen=True, kw_only=True)
class TwoPassJob(ABC):
    """A two-pass job on a cluster.

    Attributes:
        inputs: Paths on the nodes, with `NODE_PLACEHOLDER` in them, or urls.
        output: Directories on the nodes, or a url.
        memory_bytes: Of each node.
        connections: From each node to each other; by default as many in all as a node has threads.
        patience_seconds: How long a node may be silent (`cluster.time_limits`).
        nodes: How many nodes; all by default.
        weights: The nodes' shares of the partitions; equal by default.
        durability: What is promised of the output when a node is lost.
    """

    JOB: ClassVar[str]
    """What its record calls it."""
    LISTED: ClassVar[str]
    """The file, in the job's own directory, that lists the output's files."""
    COPIED_AS_WRITTEN: ClassVar[bool]
    """Whether copies are made while pass two writes, or of what it has written."""
    SAMPLE: ClassVar[Step[Any, SampleResult]] = SAMPLE
    PASS_ONE: ClassVar[Step[Any, Any]]
    PASS_TWO: ClassVar[Step[Any, WorkReport]]

    inputs: Sequence[str]
    output: Sequence[str]
    scratch: Sequence[str]
    memory_bytes: int
    connections: int | None
    command: list[str]
    patience_seconds: float = PATIENCE_SECONDS
    nodes: int | None = None
    weights: Mapping[str, float] | None = None
    durability: Durability = "none"
    object_store: ObjectStoreOptions = field(default_factory=ObjectStoreOptions)

    @property
    def settings(self) -> dict[str, Any]:
        """What has to be the same for the job to be resumed."""
        return {
            "inputs": list(self.inputs),
            "output": list(self.output),
            "scratch": list(self.scratch),
            **self.kind_settings,
            "memory_bytes": self.memory_bytes,
            "instances": self.nodes,
            "weights": None if self.weights is None else dict(self.weights),
            "durability": self.durability,
            "endpoint": self.object_store.endpoint,
        }

    @property
    def input_urls(self) -> list[str]:
        return [each for each in self.inputs if is_url(each)]

    @property
    def output_url(self) -> str | None:
        return next(filter(is_url, self.output), None)

    def paths_on(self, node: str, paths: Iterable[str]) -> tuple[str, ...]:
        """Paths as a node has them; urls are no node's."""
        return tuple(path.replace(NODE_PLACEHOLDER, node) for path in paths if not is_url(path))

    def output_name(self, node: str, path: str) -> str:
        """The name below the output of a file of a node, or of a copy there, with its folders."""
        urls = filter(is_url, self.output)
        return name_below(path, [*self.paths_on(node, self.output), *urls])

    def worker_fields(self, job: str, node: str) -> dict[str, Any]:
        return {
            "job": job,
            "node": node,
            "inputs": self.paths_on(node, self.inputs),
            "output": self.paths_on(node, self.output),
            "scratch": self.paths_on(node, self.scratch),
            "memory_bytes": self.memory_bytes,
            "output_url": self.output_url,
            "object_store": self.object_store,
        }

    @property
    @abstractmethod
    def kind_settings(self) -> dict[str, Any]:
        """Settings that only this kind of job has."""

    @abstractmethod
    def worker_config(self, job: str, node: str) -> WorkerConfig:
        """The job on a node."""

    @abstractmethod
    def splits(self, holders: Mapping[FileId, tuple[str, ...]]) -> list[Split]:
        """Cuts files, given the nodes that have each."""

    @abstractmethod
    def check_space(
        self, nodes: Mapping[str, NodeInventory], weights: Mapping[str, float], total_bytes: int
    ) -> None:
        """Refuses if it is known by now that a node has too little space for its share."""

    @abstractmethod
    def partitioning(
        self,
        workers: Mapping[str, int],
        splits: Sequence[Split],
        sample: Sampler,
    ) -> dict[str, Any]:
        """How keys are divided, as JSON values: ``partitions``, how many, and the kind's own."""

    @abstractmethod
    def pass_one(
        self,
        each: Round,
        requests: Mapping[str, PassOne],
        plan: Plan,
        schedule: Schedule,
        workers: Mapping[str, int],
    ) -> Mapping[str, PassOne]:
        """The requests of a round, with what the kind adds."""

    def check_round(self, each: Round, results: Mapping[str, Any]) -> dict[str, Any]:
        """Check the results of a round; gives what its event keeps of them, as JSON values."""
        return {}

    def wanted_partitions(self, plan: Plan, schedule: Schedule, events: Sequence[Event]) -> int:
        """How many partitions are wanted, the first, as far as rounds have told."""
        return schedule.partitions

    def pass_two(
        self, requests: Mapping[str, PassTwo], plan: Plan, events: Sequence[Event]
    ) -> Mapping[str, PassTwo]:
        """The requests of pass two, with what the kind adds."""
        return requests

    def has_single_key(self, plan: Plan, place: int) -> bool:
        """Whether all keys of a partition are known to be equal."""
        return False

    def listing_fields(self, plan: Plan, place: int) -> dict[str, Any]:
        """A partition's fields in the list of the output's files, in addition to owner and sums."""
        return {}

    def is_complete(
        self, files: Sequence[Finished], last: FinishedFile, received_bytes: int
    ) -> bool:
        """Whether these are all files of a partition, given the last of them as it was listed.

        That is when as many are there as it says, of all that came; adopted copies were complete.
        """
        return (len(files), received_bytes) == (last.files, last.taken)

    @abstractmethod
    def check_totals(self, schedule: Schedule, events: Sequence[Event]) -> None:
        """Check the totals of a finished job; `FatalJobError` if they are not the input's."""

    @abstractmethod
    def record_fields(self, schedule: Schedule, events: Sequence[Event]) -> dict[str, Any]:
        """The record's fields that say how much was done."""
