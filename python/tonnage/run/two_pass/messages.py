"""What the driver of a two-pass job asks of its workers, and what they answer: its steps.

Kinds of jobs add to `PassOne`, `PassOneResult` and `PassTwo`. Checksums are hexadecimal: sums of
CRC-32s may have more than 64 bits. The core's requests and answers stay JSON within the worker.
"""

from collections.abc import Mapping, Sequence
from types import NoneType
from typing import Any, Self

import msgspec

from tonnage.base.core.stage_stats import phase_record
from tonnage.base.records import Phase
from tonnage.base.records.base import Count
from tonnage.cluster.protocol import Idle, Message, Step
from tonnage.run.two_pass.output.manifest import Checksum, Manifest
from tonnage.run.two_pass.schedule import Finished, Split, Total
from tonnage.run.two_pass.splits import FileId

RequestTotals = dict[str, int | dict[str, int]]
"""Requests to an object store, as `storage.object_store.sum_requests` counts them."""


class Sum(Message, frozen=True):
    """A `Total`."""

    records: int
    bytes: int
    checksum: str

    @classmethod
    def of(cls, total: Total) -> Self:
        return cls(total.records, total.bytes, f"{total.checksum:x}")

    @property
    def total(self) -> Total:
        return Total(self.records, self.bytes, int(self.checksum, 16))


class FinishedFile(Message, frozen=True):
    """A line of a worker's list of finished files, with the file as it is now."""

    path: str
    bytes: Count
    records: Count = 0
    checksum: Checksum = "0"
    copy: bool = False
    """Whether it is a copy of another node's."""
    files: Count | None = None
    """How many files the partition has, if its files may not be listed all at once."""
    taken: Count | None = None
    """How many bytes of blocks these were made of."""
    place: Count = 0
    """Among these files by their rows, where their names do not tell it."""
    file_id: FileId | None = None
    """None if the file is gone, or is not as it was."""

    @property
    def finished(self) -> Finished:
        total = Sum(self.records, self.bytes, self.checksum).total
        return Finished(self.path, total)


class DeviceSpace(Message, frozen=True):
    """Free bytes on a device, and how many of the job's directories are there."""

    device: int
    free_bytes: int
    output: int
    scratch: int


class NodeInventory(Message, frozen=True):
    workers: int
    files: list[FileId]
    absent: list[str]
    parts: list[str]
    """The parts that manifests among the inputs name."""
    others: dict[str, str]
    """Other nodes that use one of its directories, with the directory."""
    devices: list[DeviceSpace]
    rounds: list[int]
    """Rounds of pass one that are whole there."""
    finished: list[FinishedFile]


class SplitToRead(Message, frozen=True):
    path: str
    offset: int
    bytes: int
    etag: str | None
    file_bytes: int

    @classmethod
    def of(cls, split: Split) -> Self:
        return cls(split.path, split.offset, split.bytes, split.etag, split.file_bytes)


class Mesh(Message, frozen=True):
    """How nodes connect in a step: endpoints in the order of nodes, and the node's own number."""

    endpoints: list[str]
    connections: int
    secret: str
    patience_seconds: float
    number: int

    def to_json(self) -> dict[str, Any]:
        return msgspec.structs.asdict(self) | {"checked": True}


class Link(Message, frozen=True):
    """What went over the connections with a peer, and why the rest did not."""

    peer: int
    bytes: int
    lost: str | None

    @classmethod
    def all_of(cls, reported: Sequence[Mapping[str, Any]]) -> list[Self]:
        return [cls(each["peer"], each["bytes"], each["lost"]) for each in reported]


class Sample(Message, frozen=True):
    splits: list[SplitToRead]
    chunks: int
    files: list[FileId]
    """The splits' files, as they have to be."""


class SampleResult(Message, frozen=True):
    """What was sampled, in the form of the job's kind: keys, or rows as Arrow streams."""

    sampled: bytes
    requests: RequestTotals


class PassOne(Message, frozen=True, kw_only=True):
    number: int
    files: list[FileId]
    """The splits' files, as they have to be."""
    splits: list[SplitToRead]
    owners: list[int | None]
    """The endpoint that owns each partition; None if it is not gathered in this round."""
    mesh: Mesh


class WorkReport(Message, frozen=True, kw_only=True):
    """What a step has done, for the run record and to find links that failed."""

    phases: list[Phase] = msgspec.field(default_factory=list)
    sent: list[Link] = msgspec.field(default_factory=list)
    received: list[Link] = msgspec.field(default_factory=list)
    requests: RequestTotals = msgspec.field(default_factory=dict)
    repartitioned_bytes: int = 0
    input_bytes: int = 0
    """Read by other than the core's stages."""
    output_bytes: int = 0
    """Written by other than the core's stages."""

    @classmethod
    def of(cls, outcome: Mapping[str, Any], **more: Any) -> Self:
        """The report of the core on a graph, with what a kind of job adds."""
        values = {
            "phases": [phase_record(each) for each in outcome["phases"]],
            "sent": Link.all_of(outcome["sent"]),
            "received": Link.all_of(outcome["received"]),
            "requests": outcome.get("requests", {}),
            "repartitioned_bytes": outcome.get("repartitioned_bytes", 0),
        }
        return cls(**values | more)


class PassOneResult(WorkReport, frozen=True, kw_only=True):
    """What came of a round on a node: what it read, and the bytes it got of each partition."""

    read: Sum
    partitions: list[int]


class PartitionToFinish(Message, frozen=True):
    number: int
    single: bool = False
    """Of a sort: whether all its keys are equal."""
    keeper: int | None = None
    """The endpoint that keeps a copy."""


class PassTwo(Message, frozen=True, kw_only=True):
    rounds: list[int]
    """The rounds that left their records here."""
    partitions: list[PartitionToFinish]
    keeps: list[int]
    """The partitions of others of which copies come here."""
    mesh: Mesh | None = None


class FileToCopy(Message, frozen=True):
    """A finished file, its name below the output, and the endpoint that is to keep a copy."""

    path: str
    name: str
    keeper: int


class CopyFiles(Message, frozen=True):
    files: list[FileToCopy]
    mesh: Mesh
    keeps: list[int]


class AdoptedFile(Message, frozen=True):
    """A file that a node has a copy of, by the path that it is to have as the node's own."""

    path: str
    sum: Sum


class AdoptCopies(Message, frozen=True):
    """Make copies part of the node's own output; those that are so already stay."""

    files: list[AdoptedFile]


class Paths(Message, frozen=True):
    paths: list[str]


class FilesThere(Message, frozen=True):
    files: list[FileId]


class Drop(Message, frozen=True):
    """Remove what a lost node had, but these finished partitions.

    It is the node's own output, unless directories are named.
    """

    keeps: list[int]
    output: list[str] | None = None


class Seal(Message, frozen=True):
    """Write the manifest: from then on the output is whole."""

    manifest: Manifest
    output: list[str]
    """The directories that lack it, the node's own and others'."""
    copies: list[str]
    """Names of the copies that are kept here."""


class Publish(Message, frozen=True):
    """Write the manifest to object storage, where these parts have to be."""

    manifest: Manifest
    sizes: dict[str, int]
    """Of all parts, by their urls."""


class Leave(Message, frozen=True):
    """Remove all of the job but its output."""

    parts: dict[str, list[str]] = msgspec.field(default_factory=dict)
    """By directory, others' too, the names of the parts that stay; all stay elsewhere."""


class Clear(Message, frozen=True):
    """Remove partitions that are done again from object storage, or all, and open uploads."""

    partitions: list[int] | None


class ObjectsFound(Message, frozen=True):
    objects: list[FileId]
    requests: RequestTotals


class FolderClaimed(Message, frozen=True):
    """The output's folder is the job's: sizes of the parts there, and the object that says so."""

    sizes: dict[str, int]
    marker: str
    requests: RequestTotals


class StoreRequests(Message, frozen=True):
    requests: RequestTotals


PREPARE = Step("prepare", NoneType, NoneType)
LOOK = Step("look", NoneType, NodeInventory)
SEES = Step("sees", Paths, FilesThere)
SAMPLE = Step("sample", Sample, SampleResult)
COPY = Step("copy", CopyFiles, WorkReport, news=FinishedFile)
ADOPT = Step("adopt_copies", AdoptCopies, NoneType, news=FinishedFile)
DROP = Step("drop", Drop, NoneType)
SEAL = Step("seal", Seal, NoneType)
LEAVE = Step("leave", Leave, NoneType)

# Of object storage, which one node does for all. A client retries, and then fails by itself.
FIND = Step("find", Paths, ObjectsFound, idle=Idle.ALLOWED)
REACH = Step("reach", Paths, StoreRequests, idle=Idle.ALLOWED)
CLAIM = Step("claim", NoneType, FolderClaimed, idle=Idle.ALLOWED)
CLEAR = Step("clear", Clear, StoreRequests, idle=Idle.ALLOWED)
PUBLISH = Step("publish", Publish, StoreRequests, idle=Idle.ALLOWED)
RELEASE = Step("release", NoneType, StoreRequests, idle=Idle.ALLOWED)


def pass_one_step(request: type[PassOne], result: type[PassOneResult]) -> Step[Any, Any]:
    return Step("pass_one", request, result)


def pass_two_step(request: type[PassTwo]) -> Step[Any, WorkReport]:
    return Step("pass_two", request, WorkReport, news=FinishedFile)
