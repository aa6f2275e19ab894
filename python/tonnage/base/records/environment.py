"""Where something was measured or run."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from tonnage.base.records.base import Record

HOST, PROVIDER, MACHINE_TYPE = "host", "provider", "machine-type"
"""Labels that say what a machine is called or was rented as, for those that do not tell."""


@dataclass(frozen=True, kw_only=True)
class Device:
    """A block device, or another thing that holds a directory."""

    name: str
    directories: list[str]
    file_system: str
    mount_options: str
    scheduler: str | None
    rotational: bool | None
    size_bytes: int | None
    model: str | None


@dataclass(frozen=True, kw_only=True)
class Environment(Record):
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
    cores: int
    memory_bytes: int
    memory_limit_bytes: int | None
    load_average: float
    devices: list[Device]
    versions: dict[str, str]
    debug_build: bool
    provider: str | None = None
    machine_type: str | None = None
    labels: dict[str, str] = field(default_factory=dict)
    niceness: int | None = None
