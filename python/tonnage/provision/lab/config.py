"""Parse a lab's file: its machines, their rates and prices.

    [lab]
    name = "two-kinds"

    [[machine]]
    type = "fast"
    count = 2                       # default 1
    price_usd_per_hour = 1.0
    cpus = 0.5                      # default: all of this machine
    memory = "2GiB"                 # with the page cache; default: all of this machine
    link_mb_per_s = 60              # each way, TCP payload; default: unlimited
    disks = [{ size = "4GiB", read_mb_per_s = 120, write_mb_per_s = 120, fs = "xfs" }]

A disk may also have ``read_iops`` and ``write_iops``; ``fs`` is xfs, ext4, or none for a bare
device. Unlimited resources are as fast as this machine.
"""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from tonnage.base import formatting
from tonnage.base.byte_sizes import bytes_of
from tonnage.base.system import UsageError

MB = 1e6
FILE_SYSTEMS = ("xfs", "ext4", "none")
MIN_BYTES = {"xfs": 300 << 20, "ext4": 8 << 20, "none": 1 << 20}
"""mkfs.xfs accepts nothing smaller."""
MIN_MEMORY = 16 << 20
SECTOR_BYTES = 4096
MAX_NODES = 200
MAX_DISKS = 24
LONGEST_NAME = 12
"""Ray's sockets are in a lab's directory, and Linux limits their paths to 107 characters."""
LONGEST_TYPE = 40


@dataclass(frozen=True)
class DiskConfig:
    """A disk with its limits in bytes and operations per second; ``None`` is unlimited."""

    size_bytes: int
    file_system: str
    read_bytes_per_second: int | None = None
    write_bytes_per_second: int | None = None
    read_operations_per_second: int | None = None
    write_operations_per_second: int | None = None

    @property
    def limits(self) -> dict[str, int | None]:
        """Its limits by the names of their fields."""
        return {name: value for name, value in vars(self).items() if name.endswith("_per_second")}


@dataclass(frozen=True)
class MachineType:
    type: str
    count: int
    price_usd_per_hour: float
    cpus: float | None
    link_bytes_per_second: float | None
    """Each way, TCP payload."""
    disks: tuple[DiskConfig, ...]
    memory_bytes: int | None = None
    """With the page cache."""


@dataclass(frozen=True)
class LabConfig:
    name: str
    machines: tuple[MachineType, ...]


def parse(text: str, file: str) -> LabConfig:
    """Parse the text of a lab's file, whose name is for errors.

    Raises:
        UsageError: A key is wrong; the message names it and says what to write.
    """
    try:
        top = _Table(file, "", tomllib.loads(text))
    except tomllib.TOMLDecodeError as why:
        raise UsageError(f"{file}: invalid TOML: {why}") from None
    lab = top.table("lab")
    name = lab.word("name", LONGEST_NAME, "")
    lab.refuse_others()
    machines = tuple(_machine(table) for table in top.tables("machine"))
    top.refuse_others()
    if not machines:
        raise top.wrong("machine", "missing; add a [[machine]] for each machine type")
    types: set[str] = set()
    for number, machine in enumerate(machines):
        if machine.type in types:
            raise top.wrong(
                f"machine[{number}].type",
                f"{machine.type} appears twice; list each type once, with its count",
            )
        types.add(machine.type)
    nodes = sum(machine.count for machine in machines)
    if nodes > MAX_NODES:
        raise top.wrong("machine", f"{nodes} nodes in total; the limit is {MAX_NODES}")
    return LabConfig(name, machines)


def _machine(table: _Table) -> MachineType:
    link = table.number("link_mb_per_s", 0.1, 100_000, None)
    found = MachineType(
        type=table.word("type", LONGEST_TYPE, "."),
        count=table.integer("count", 1, MAX_NODES, 1) or 1,
        price_usd_per_hour=table.needed("price_usd_per_hour", 1e-6, 1e6),
        cpus=table.number("cpus", 0.05, 4096, None),
        link_bytes_per_second=None if link is None else link * MB,
        disks=tuple(_disk(each) for each in table.tables("disks")),
        memory_bytes=table.size("memory", MIN_MEMORY, "a machine") if table.has("memory") else None,
    )
    table.refuse_others()
    if len(found.disks) > MAX_DISKS:
        raise table.wrong("disks", f"{len(found.disks)} disks; the limit is {MAX_DISKS}")
    return found


def _disk(table: _Table) -> DiskConfig:
    file_system = table.choice("fs", FILE_SYSTEMS, FILE_SYSTEMS[0])
    rates = {
        f"{way}_bytes_per_second": table.number(f"{way}_mb_per_s", 0.01, 1_000_000, None)
        for way in ("read", "write")
    }
    found = DiskConfig(
        size_bytes=table.size("size", MIN_BYTES[file_system], file_system),
        file_system=file_system,
        **{name: None if rate is None else round(rate * MB) for name, rate in rates.items()},
        read_operations_per_second=table.integer("read_iops", 1, 10**8, None),
        write_operations_per_second=table.integer("write_iops", 1, 10**8, None),
    )
    table.refuse_others()
    return found


class _Table:
    """A TOML table whose keys are read one by one; unread keys are errors."""

    def __init__(self, file: str, place: str, values: dict[str, Any]) -> None:
        self._file, self._place = file, place
        self._values = values
        self._taken: list[str] = []

    def wrong(self, key: str, why: str) -> UsageError:
        return UsageError(f"{self._file}: {self._place}{key}: {why}")

    def refuse_others(self) -> None:
        for key in self._values:
            if key not in self._taken:
                meant = formatting.did_you_mean(key, self._taken)
                known = ", ".join(self._taken)
                raise self.wrong(key, f"unknown key{meant}; the known keys are {known}")

    def table(self, key: str) -> _Table:
        value = self._take(key)
        if not isinstance(value, dict):
            raise self.wrong(key, f"missing; add a table [{key}]")
        return _Table(self._file, f"{self._place}{key}.", value)

    def tables(self, key: str) -> Iterable[_Table]:
        values = self._take(key)
        if values is None:
            return
        if not isinstance(values, list) or not all(isinstance(each, dict) for each in values):
            written = "disks = [{ size = ... }]" if self._place else f"[[{key}]]"
            raise self.wrong(key, f"is not a list of tables; write {written}")
        for number, value in enumerate(values):
            yield _Table(self._file, f"{self._place}{key}[{number}].", value)

    def word(self, key: str, longest: int, more: str) -> str:
        """A name that is valid for files, control groups and Ray's labels."""
        value = self._take(key)
        if value is None:
            raise self.wrong(key, f'is missing; write {key} = "..."')
        letters = f"letters and digits, and between them {'-, _ and dots' if more else '- and _'}"
        pattern = rf"[A-Za-z0-9]([A-Za-z0-9_{re.escape(more)}-]*[A-Za-z0-9])?"
        if not isinstance(value, str) or not re.fullmatch(pattern, value, re.ASCII):
            raise self.wrong(key, f"{value!r} is not a valid name; use {letters}")
        if len(value) > longest:
            raise self.wrong(key, f"{value!r} is too long; the limit is {longest} characters")
        return value

    def choice(self, key: str, known: tuple[str, ...], default: str) -> str:
        value = self._take(key, default)
        if value not in known:
            raise self.wrong(key, f"{value!r} is unknown; use one of {', '.join(known)}")
        return str(value)

    def needed(self, key: str, least: float, most: float) -> float:
        found = self.number(key, least, most, None)
        if found is None:
            raise self.wrong(key, f"is missing; write {key} = a number")
        return found

    def number(self, key: str, least: float, most: float, default: float | None) -> float | None:
        value = self._take(key, default)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float) or math.isnan(value):
            raise self.wrong(key, f"{value!r} is not a number; write a number without quotes")
        if not least <= value <= most:
            raise self.wrong(
                key, f"{value:g} is out of range; it must be from {least:g} to {most:g}"
            )
        return float(value)

    def integer(self, key: str, least: int, most: int, default: int | None) -> int | None:
        found = self.number(key, least, most, default)
        if found is not None and not found.is_integer():
            raise self.wrong(key, f"{found:g} is not a whole number")
        return None if found is None else int(found)

    def has(self, key: str) -> bool:
        return key in self._values

    def size(self, key: str, least: int, user: str) -> int:
        """A required size in whole sectors, which is for a file system or another ``user``."""
        value = self._take(key)
        if value is None:
            raise self.wrong(key, f'is missing; write for example {key} = "4GiB"')
        found = bytes_of(value) if isinstance(value, str) else value
        if isinstance(found, bool) or not isinstance(found, int):
            raise self.wrong(key, f'{value!r} is not a size; write for example "4GiB" or "500MB"')
        if not least <= found < 1 << 60:
            what = "a device" if user == "none" else user
            raise self.wrong(key, f"{what} needs at least {formatting.memory(least)}")
        return found // SECTOR_BYTES * SECTOR_BYTES

    def _take(self, key: str, default: Any = None) -> Any:
        self._taken.append(key)
        return self._values.get(key, default)
