"""A run of a job on a rented cluster: how long it took, and on what."""

from typing import Annotated, ClassVar, Literal

from msgspec import Meta, field

from tonnage.base.records.base import Amount, Count, Number, PositiveCount, Record, Seconds, Struct

Outcome = Literal["ok", "timeout", "failed"]
"""Of ``timeout``, the time after which it was stopped; of ``failed``, how long it took to fail."""


class PastRun(Struct, frozen=True, kw_only=True):
    job: str
    machine_type: str
    nodes: PositiveCount
    seconds: Annotated[float, Meta(ge=1e-3, le=1e11)]
    provider: str = "aws"
    framework: str = ""
    data_label: str = ""
    data_bytes: PositiveCount | None = None
    price_hour: Amount | None = None
    """Dollars for one machine, as its owner counts them."""
    disks: str = ""
    """Where its data was: "local" disks or "volumes"; empty: on local disks, if there are any."""
    outcome: Outcome = "ok"
    repetition: PositiveCount = 1
    parameters: dict[str, Number | str] = field(default_factory=dict)

    @property
    def program(self) -> tuple[str, str]:
        """What runs with other data and parameters have in common."""
        return self.job, self.framework

    @property
    def name(self) -> str:
        """Of the job: the program, its data and its parameters, but not how large the data is."""
        given = (self.job, self.framework, self.data_label)
        rest = [f"{name}={value}" for name, value in sorted(self.parameters.items())]
        return "_".join([*(part for part in given if part), *rest])


class RunDemands(Struct, frozen=True, kw_only=True):
    """What a run took in all, as its event log has it, or as its nodes were sampled.

    ``None`` is unknown: not all that samples a node samples its network.
    """

    provider: str
    machine_type: str
    """The machines that it ran on."""
    core_seconds: Annotated[float, Meta(gt=0, le=1e18)]
    """Of their vCPUs."""
    disk_bytes: Count | None = None
    network_bytes: Count | None = None
    """Sent from node to node."""
    object_bytes: Count | None = None
    """Got from and put to object storage."""
    serial_seconds: Seconds | None = None
    """In which work is not divided: it is the driver's, or a start."""
    memory_per_vcpu: Count | None = None
    """Of a machine, that a task took or had."""


class PastRuns(Record, frozen=True, kw_only=True):
    """The runs of a program, with whatever data and parameters."""

    SCHEMA: ClassVar[str] = "tonnage.past-runs/1"

    job: str
    """The name of the runs to plan for; the others are its variants."""
    runs: Annotated[list[PastRun], Meta(min_length=1)]
    cached_bytes: Count | None = None
    """Of the data that it keeps in memory; ``None`` is unknown."""
    demands: RunDemands | None = None
    """Of one of the runs; ``None`` is unknown."""

    def __post_init__(self) -> None:
        programs = {run.program for run in self.runs}
        if len(programs) > 1:
            raise ValueError(".runs: expected runs of one program")
        if self.job not in {run.name for run in self.runs}:
            raise ValueError(".job: expected the name of some of the runs")
