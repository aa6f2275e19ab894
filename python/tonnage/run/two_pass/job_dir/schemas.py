"""What the files of a two-pass job's directory hold (`job_dir` says which there are)."""

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, UnsetType, field

from tonnage.base.records import Phase, Stage
from tonnage.base.records.base import Count, Level, PositiveCount, Seconds, StoredFile, Struct
from tonnage.base.records.known_keys import RequestCounts
from tonnage.run.two_pass.output.manifest import Checksum

SCHEMA: Literal["tonnage.fleet-job/1"] = "tonnage.fleet-job/1"
_JobName = Annotated[str, Meta(pattern="^[0-9a-f]{16}$")]
_Inode = Annotated[int, Meta(ge=0)]
_Weight = Annotated[float, Meta(gt=0, le=1e21)]
_Big = Annotated[int, Meta(ge=0)]
"""A sum of checksums: there may be more of them than 64 bits hold."""

_HeldFile = tuple[str, _Inode, Count, Level, Level, str | None, Count]
"""A `FileId`, and the number of its holders."""
_File = tuple[str, Count, Count, _Big]
"""A path, and a `Total`."""


class JobFile(StoredFile, frozen=True):
    """``job.json``."""

    schema: Literal["tonnage.fleet-job/1"]
    job: _JobName
    began_at: str
    settings: dict[str, Any]


class InputFiles(StoredFile, frozen=True):
    """``plan.json`` of a reduction: the files of the input, and the nodes that have each."""

    holders: list[list[str]]
    files: list[_HeldFile]

    def __post_init__(self) -> None:
        if any(each[-1] >= len(self.holders) for each in self.files):
            raise ValueError("a file is on a node that is not listed")


class Bound(Struct, frozen=True):
    """Where a partition of a sort begins."""

    key: Annotated[str, Meta(pattern="^([0-9a-f]{2})*$")]
    after: bool


class TablePlan(Struct, frozen=True):
    """How all nodes read and divide a table."""

    format: dict[str, Any]
    split_bytes: Count
    block_bytes: Count
    row_bytes: Count
    rows_bytes: Count
    wanted: Count
    quoted: list[Count]


class PlanFile(InputFiles, frozen=True, kw_only=True):
    """``plan.json`` of a sort or a MapReduce: boundaries of partitions, too."""

    partitions: PositiveCount
    weights: Annotated[dict[str, _Weight], Meta(min_length=1)]
    bounds: list[Bound] | UnsetType = UNSET
    single: list[bool] | UnsetType = UNSET
    firsts: str | UnsetType | None = UNSET
    table: TablePlan | UnsetType = UNSET

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.single is not UNSET and len(self.single) != self.partitions:
            raise ValueError("single does not have a value for each partition")
        if self.bounds is not UNSET and len(self.bounds) != self.partitions - 1:
            raise ValueError("bounds do not make this many partitions")


class ReportedStage(Stage, frozen=True, kw_only=True):
    depth: Count


class ReportedPhase(Phase, frozen=True, kw_only=True):
    stages: list[ReportedStage]  # type: ignore[assignment]
    timeline: list[Any]


class StepReport(Struct, frozen=True):
    seconds: Seconds
    cpu_seconds: Seconds
    peak_memory_bytes: Count
    phases: list[ReportedPhase]
    read_bytes: Count
    written_bytes: Count
    sent_bytes: Count
    received_bytes: Count
    repartitioned_bytes: Count
    requests: RequestCounts


_Reports = dict[str, dict[str, StepReport]]


class RoundOutcome(Struct, frozen=True):
    read: tuple[Count, Count, _Big]
    lost: list[str]
    partitions: list[tuple[Count, Count]]


class RoundEvent(Struct, frozen=True, tag_field="event", tag="round", kw_only=True):
    number: Count
    reads: dict[str, list[Count]]
    owners: list[tuple[Count, str]]
    outcomes: dict[str, RoundOutcome]
    blames: dict[str, list[str]]
    seconds: Seconds
    told: _Reports
    bytes: Count
    rows: Count | UnsetType = UNSET
    given_bytes: Count | UnsetType = UNSET
    partition_rows: list[tuple[Count, Count, _Big]] | UnsetType = UNSET
    schemas: list[tuple[str, str]] | UnsetType = UNSET


class LostEvent(Struct, frozen=True, tag_field="event", tag="lost"):
    node: str
    why: str
    reads: bool
    joins: bool
    keeps: list[tuple[Count, list[_File]]]
    new_owners: list[tuple[Count, str, list[_File]]] = field(name="heirs")


class CommandEvent(Struct, frozen=True, tag_field="event", tag="command"):
    """Another command continued the job."""


class PassTwoEvent(Struct, frozen=True, tag_field="event", tag="pass_two"):
    seconds: Seconds
    told: _Reports


class CopyEvent(Struct, frozen=True, tag_field="event", tag="copy"):
    seconds: Seconds
    told: _Reports


class PublishEvent(Struct, frozen=True, tag_field="event", tag="publish"):
    """The output became visible in object storage."""

    told: _Reports


Events = list[RoundEvent | LostEvent | CommandEvent | PassTwoEvent | CopyEvent | PublishEvent]
"""``rounds.json``."""


class PartCopy(Struct, frozen=True):
    node: str
    path: str


class OutputFile(Struct, frozen=True, kw_only=True):
    node: str
    path: str
    records: Count
    bytes: Count
    checksum: Checksum
    range: tuple[Bound | None, Bound | None] | UnsetType = UNSET
    copy: PartCopy | None


OutputFiles = list[OutputFile]
"""``sorted.json``, or ``reduced.json``."""
