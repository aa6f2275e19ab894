"""Where something was measured or run."""

from typing import Annotated, ClassVar

from msgspec import Meta, field

from tonnage.base.records.base import Amount, Count, Record, Struct

Niceness = Annotated[int, Meta(ge=-20, le=19)]

HOST, PROVIDER, MACHINE_TYPE = "host", "provider", "machine-type"
"""Labels that state a machine's name or offer, for those that do not report it."""


class Device(Struct, frozen=True, kw_only=True):
    name: str
    directories: list[str]
    file_system: str
    mount_options: str
    scheduler: str | None
    rotational: bool | None
    size_bytes: Count | None
    model: str | None


class Environment(Record, frozen=True, kw_only=True):
    """The machine of a measurement or run.

    Machines report ``provider`` and ``machine_type``, or labels do; ``labels`` are the other ones.
    Old records lack these and ``niceness``, the priority that processes gave up.
    """

    SCHEMA: ClassVar[str] = "tonnage.environment/1"

    host: str
    kernel: str
    operating_system: str
    virtualisation: str
    cpu_model: str
    cores: Count
    memory_bytes: Count
    memory_limit_bytes: Count | None
    load_average: Amount
    devices: list[Device]
    versions: dict[str, str]
    debug_build: bool
    provider: str | None = None
    machine_type: str | None = None
    labels: dict[str, str] = field(default_factory=dict)
    niceness: Niceness | None = None
