"""What is asked of a fleet: what all jobs have in common, and what each kind of job says itself.

The driver (`sorting`) has rounds of pass one run until nothing is missing, then pass two, and does
again what was lost. What a job reads as splits, how keys are divided among partitions, what
nodes are told beside that, and which sums have to agree, is its kind's: `sorts` has the sort's.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from tonnage.base import core
from tonnage.run.storage.object_store import ObjectStoreOptions, is_url
from tonnage.run.two_pass.schedule import Finished, Round, Schedule, Split
from tonnage.run.two_pass.splits import FileId
from tonnage.run.two_pass.worker import NodeInventory, WorkerConfig

if TYPE_CHECKING:
    from tonnage.run.two_pass.job_state import JobRun

NONE, REPLICATED, VOLUMES = "none", "replicated", "volumes"
"""A lost node's share of the output is done again, another node has a copy of it, or object storage
has it."""
NODE_PLACEHOLDER = "{node}"
"""In a path, the node's name."""


def check_node_paths(flag: str, paths: Iterable[str]) -> None:
    """Refuses paths that are somewhere else on each machine, or name what there is not."""
    for path in paths:
        if not path.startswith("/"):
            raise core.UsageError(
                f"{flag} {path}: with --cluster give a path from / on: it is each machine's own"
            )
        unknown = [each for each in re.findall(r"\{[^{}/]*\}", path) if each != NODE_PLACEHOLDER]
        if unknown:
            raise core.UsageError(
                f"{flag} {path}: there is no {unknown[0]}, only {NODE_PLACEHOLDER}, the node's name"
            )


def durability_of(durability: str | None, output: Iterable[str]) -> str:
    """What is promised of an output that goes there, if somebody asks for this or for nothing.

    Raises:
        UsageError: There is no such promise, or of an output there it cannot be.
    """
    if durability not in (None, NONE, REPLICATED, VOLUMES):
        raise core.UsageError(
            f"--durability {durability}: there are {NONE}, {REPLICATED} and {VOLUMES}"
        )
    folder = next(filter(is_url, output), None)
    if folder is not None and durability not in (None, VOLUMES):
        raise core.UsageError(
            f"--durability {durability}: --output {folder} is in object storage, whoever is "
            "lost: leave it out, or give --output directories"
        )
    if durability == VOLUMES and folder is None:
        raise core.UsageError(
            "--durability volumes: --output is on machines' own disks: give s3://BUCKET/PREFIX"
        )
    return VOLUMES if folder is not None else durability or NONE


@dataclass(frozen=True, kw_only=True)
class TwoPassJob(ABC):
    """What is asked of a fleet."""

    JOB: ClassVar[str]
    """What its record calls it."""
    LISTED: ClassVar[str]
    """The file, in the job's own directory, that lists the output's."""
    COPIED_AS_WRITTEN: ClassVar[bool]
    """Whether copies are made while pass two writes, or of what it has written."""

    inputs: Sequence[str]
    output: Sequence[str]
    scratch: Sequence[str]
    """Paths on the nodes, with `NODE` in them; of input and output also urls."""
    memory_bytes: int
    """Of each node."""
    connections: int
    patience_seconds: float
    command: list[str]
    instances: int | None = None
    weights: Mapping[str, float] | None = None
    """Shares of the partitions; ``None`` for equal ones."""
    durability: str = NONE
    """What is promised of the output when a node is lost."""
    volumes: ObjectStoreOptions = field(default_factory=ObjectStoreOptions)
    """How nodes reach object storage."""

    @property
    def settings(self) -> dict[str, Any]:
        """What has to be the same for the same command to go on."""
        return {
            "inputs": list(self.inputs),
            "output": list(self.output),
            "scratch": list(self.scratch),
            **self.kind_settings,
            "memory_bytes": self.memory_bytes,
            "instances": self.instances,
            "weights": None if self.weights is None else dict(self.weights),
            "durability": self.durability,
            "endpoint": self.volumes.endpoint,
        }

    @property
    def input_urls(self) -> list[str]:
        """Objects, and folders of them, among the inputs."""
        return [each for each in self.inputs if is_url(each)]

    @property
    def output_url(self) -> str | None:
        """Where in object storage the output goes, if not to directories."""
        return next(filter(is_url, self.output), None)

    def paths_on(self, node: str, paths: Iterable[str]) -> tuple[str, ...]:
        """Paths as a node has them; urls are no node's."""
        return tuple(path.replace(NODE_PLACEHOLDER, node) for path in paths if not is_url(path))

    @property
    @abstractmethod
    def kind_settings(self) -> dict[str, Any]:
        """Settings that only this kind of job has; `home.FLAGS` says what gives each."""

    def worker_fields(self, job: str, node: str) -> dict[str, Any]:
        """What each kind of place has."""
        return {
            "job": job,
            "node": node,
            "inputs": self.paths_on(node, self.inputs),
            "output": self.paths_on(node, self.output),
            "scratch": self.paths_on(node, self.scratch),
            "memory_bytes": self.memory_bytes,
            "folder": self.output_url,
            "volumes": self.volumes,
        }

    @abstractmethod
    def worker_config(self, job: str, node: str) -> WorkerConfig:
        """A node's place in the job."""

    @abstractmethod
    def splits(self, held: Mapping[FileId, tuple[str, ...]]) -> list[Split]:
        """Cuts files, of which is told who has them."""

    @abstractmethod
    def check_space(
        self, looks: Mapping[str, NodeInventory], weights: Mapping[str, float], total_bytes: int
    ) -> None:
        """Refuses if it is known by now that a node has too little room.

        Args:
            looks: What is on each node.
            weights: Their shares.
            total_bytes: Of the input.
        """

    @abstractmethod
    def partitioning(self, job: JobRun, splits: Sequence[Split]) -> dict[str, Any]:
        """How keys are divided, as JSON values: ``partitions``, how many, and what else says it."""

    @abstractmethod
    def round(self, job: JobRun, each: Round) -> dict[str, dict[str, Any]]:
        """What the nodes of a round are told beside splits, owners and mesh."""

    @abstractmethod
    def check_round(self, each: Round, answers: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
        """Looks at what nodes told that came to the end of a round; gives what to keep of it.

        Raises:
            RunError: What came is not what was sent.
        """

    @abstractmethod
    def pass_two(self, job: JobRun) -> dict[str, Any]:
        """What all owners are told in pass two."""

    @abstractmethod
    def partition(self, job: JobRun, place: int) -> dict[str, Any]:
        """What a partition's owner is told of it in pass two, beside its number."""

    @abstractmethod
    def listing_fields(self, job: JobRun, place: int) -> dict[str, Any]:
        """What the list of the output's files tells of a partition, beside who has it and sums."""

    @abstractmethod
    def is_complete(self, files: Sequence[Finished], line: Mapping[str, Any], came: int) -> bool:
        """Whether these are all files of a partition.

        Args:
            files: Those that are listed.
            line: The last one's line.
            came: Bytes that came of the partition.
        """

    @abstractmethod
    def check_totals(self, schedule: Schedule) -> None:
        """Looks at the sums of a job of which all is done.

        Raises:
            Over: What was written is not what was read.
        """

    @abstractmethod
    def record_fields(self, job: JobRun) -> dict[str, Any]:
        """The record's fields that tell how much was done."""
