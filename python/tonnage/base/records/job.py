"""A job as demands: phases, and what each takes of every resource for each byte of input.

``seconds(phase) = max over resources of demand / capacity`` on the slowest node of the phase, and
phases add up. What a kind of job takes is a row of demands, whether it comes from a document's
equation or from a run that was watched.
"""

import json
from typing import Annotated, ClassVar, Literal, cast

from msgspec import Meta, field

from tonnage.base.records.base import (
    Count,
    Number,
    PositiveCount,
    Record,
    Seconds,
    Spread,
    Struct,
)
from tonnage.base.records.durability import EARLIER_VOLUMES, Durability
from tonnage.base.records.known_keys import JobSettings, check_known_keys
from tonnage.base.records.location import Location

Resource = Literal[
    "local read",
    "local write",
    "volume read",
    "volume write",
    "object get",
    "object put",
    "network",
    "cpu",
    "cpu partition",
    "cpu sort",
    "cpu object",
    "cpu copy",
    "cpu kmeans",
    "cpu pca",
    "task wait",
]
"""Bytes a second of a node; of ``cpu``, core seconds a second.

``cpu partition`` and ``cpu sort`` are the sort's work in its two passes, in bytes, ``cpu object``
is the work of getting or putting objects, ``cpu copy`` of copying output to another node. ``cpu
kmeans`` and ``cpu pca`` are a pass of these reductions, from getting the input on. ``task wait`` is
the time that tasks hold a slot without computing, in seconds.
``network`` is each way, all to all. Local (or volume) reading and writing of a phase share the
devices.
"""


PerByte = Annotated[float, Meta(ge=0, le=1e12)]
"""Bytes, core seconds or requests for each byte of the job's input."""


START_UP = "start-up"
"""The phase before a job's own, until all machines run."""
OUTSIDE_PHASES = "beginning and end"
"""The time of a run outside of its phases, as a phase of its own."""
INTERRUPTIONS = "interruptions"
"""What interruptions of spot machines are expected to add, as a phase of its own."""
PHASES_OF_PLANS = (START_UP, OUTSIDE_PHASES, INTERRUPTIONS)
LEAST_PER_BYTE = 1e-18
"""A demand of less is 0: of an exabyte it would be a byte."""
IN_TURN = ("local read", "local write", "volume read", "volume write", "object get", "object put")
"""What a thread can wait for."""


class Demand(Struct, frozen=True, kw_only=True):
    """What a phase needs of one resource, on all nodes together."""

    resource: Resource
    per_byte: PerByte  # Of ``cpu`` core seconds, else bytes
    source: str  # A document and its equation, or a measurement's name
    shuffled: bool = False
    """Of the network: a node of N keeps 1/N of it, so that (N - 1)/N are sent."""
    in_turn: bool = False
    """A thread that reads or writes it does no other work of the phase at that time."""

    def __post_init__(self) -> None:
        if 0 < self.per_byte < LEAST_PER_BYTE:
            raise ValueError(f".per_byte: expected 0, or at least {LEAST_PER_BYTE:g}")
        if self.shuffled and self.resource != "network":
            raise ValueError(f".shuffled: expected false, as {self.resource} is not the network")
        if self.in_turn and self.resource not in IN_TURN:
            raise ValueError(f".in_turn: expected false, as no thread waits for {self.resource}")


class JobPhase(Struct, frozen=True, kw_only=True):
    name: str
    demands: list[Demand]
    fixed_seconds: Seconds = 0.0  # Whatever the input's size and the number of nodes
    most_cores: Annotated[float, Meta(ge=1e-3, le=1e6)] | None = None
    """Maximum number of cores of a node that it uses; ``None``: all."""
    tasks: PositiveCount | None = None
    """Into how many tasks it is divided, each of which runs in a slot of a vCPU; ``None``: any."""
    longest_task_per_byte: PerByte = 0.0
    """Seconds of a vCPU that its longest task takes, below which no number of nodes brings it."""
    warm_up_seconds: Seconds = 0.0
    """Of a vCPU, which each slot takes, whatever the input's size and the number of nodes."""


class SpaceDemand(Struct, frozen=True, kw_only=True):
    """What must fit at once, on all nodes together."""

    where: Literal["local", "volume", "object", "memory"]
    what: str
    per_byte: PerByte  # Bytes


class RequestDemand(Struct, frozen=True, kw_only=True):
    """Requests to object storage, which are paid for."""

    kind: Literal["get", "put"]
    per_byte: PerByte  # Requests


class Job(Record, frozen=True, kw_only=True):
    SCHEMA: ClassVar[str] = "tonnage.job/1"

    name: str
    phases: Annotated[list[JobPhase], Meta(min_length=1)]
    room: list[SpaceDemand]
    requests: list[RequestDemand] = field(default_factory=list)
    taken_out_per_byte: PerByte = 0.0  # Bytes to the internet
    least_memory_bytes: Count | None = None  # Of a node; ``None``: any will do
    least_memory_per_vcpu: Count | None = None  # Bytes; a task that runs in each took so much
    seen_bytes: Count | None = None  # The input of the observed run; ``None`` without one
    divisible: bool = True
    """Whether machines can share the work; a command that was watched on one need not divide."""
    core_speed: Annotated[float, Meta(ge=1e-3, le=1e3)] | None = None
    """How much a vCPU does where its core seconds were seen, in cores of the reference; ``None``:
    unknown, so that all vCPUs count as equal."""
    spread: Spread = 0.0
    """Of the logarithm of its time, beyond that of capacities: how runs vary, and how far a job is
    from what is known of its demands."""
    settings: dict[str, Number | str | bool] = field(default_factory=dict)
    """What the demands follow from: selectivities, passes, durability, locations."""

    def __post_init__(self) -> None:
        check_known_keys(self.settings, JobSettings, "settings")
        names: list[str] = []
        for at, phase in enumerate(self.phases):
            if phase.name in PHASES_OF_PLANS:
                raise ValueError(
                    f".phases[{at}].name: expected another name, as plans have a phase "
                    f"{json.dumps(phase.name)} of their own"
                )
            if phase.name in names:
                raise ValueError(
                    f".phases[{at}].name: expected a name that no other phase has, got "
                    f"{json.dumps(phase.name)}"
                )
            names.append(phase.name)

    @property
    def durability(self) -> Durability:
        return "replicated" if self.settings.get("durability") == "replicated" else "none"

    @property
    def input_location(self) -> Location:
        return self._location("from")

    @property
    def output_location(self) -> Location:
        return self._location("to")

    def _location(self, way: str) -> Location:
        earlier: Location = "local"
        if self.settings.get("durability") == EARLIER_VOLUMES:
            earlier = "objects" if self.settings.get("objects") else "volumes"
        return cast(Location, self.settings.get(way, earlier))
