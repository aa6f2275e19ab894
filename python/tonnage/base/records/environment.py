"""Where something was measured or run."""

from __future__ import annotations

from typing import Annotated, ClassVar

from msgspec import Meta, field

from tonnage.base.records.base import Amount, Count, Record, Struct

Niceness = Annotated[int, Meta(ge=-20, le=19)]

HOST, PROVIDER, MACHINE_TYPE = "host", "provider", "machine-type"
"""Labels that say what a machine is called or was rented as, for those that do not tell."""


class Device(Struct, frozen=True, kw_only=True):
    """A block device, or another thing that holds a directory."""

    name: str
    directories: list[str]
    file_system: str
    mount_options: str
    scheduler: str | None
    rotational: bool | None
    size_bytes: Count | None
    model: str | None


class Environment(Record, frozen=True, kw_only=True):
    """What a measurement or a run was done on, captured without being asked.

    ``provider`` and ``machine_type`` are there where the machine itself, or a label, tells what it
    was rented as; ``labels`` are what else somebody said of it, like its region. ``niceness`` is
    how far what was done yielded to other processes, 0 if it did not. These four came after the
    first records were written.
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
