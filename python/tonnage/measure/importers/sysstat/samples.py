"""What sysstat's tools state of a host, whatever the format: samples of its resources.

Each format's reader splits its file into rows (`SampleRow`); this file knows what their columns
mean, from sysstat 9 to 12. sysstat's kilobytes have 1024 bytes, its sectors 512. A rate is the mean
over the interval that ends at the sample's time.
"""

from collections.abc import Container, Iterable
from dataclasses import dataclass, field
from typing import Literal, Protocol

from tonnage.measure.importers.metric import UnreadableFile

KIB, MIB, SECTOR_BYTES = 1 << 10, 1 << 20, 512
ALL_CORES = "all"
Clock = Literal["UTC", "local time"]
Tool = Literal["sar", "mpstat", "iostat"]
LONGEST_SECONDS = 31 * 86_400.0
_OLD_MEMORY = 0.05
"""Used and free memory add up to all of it, to this share, where used memory has the page cache."""

_MOST = 1e12
_MARKS = ("%idle", "%util", "rd_sec/s", "rxkB/s", "rxbyt/s", "kbmemused")
"""Columns of sar's text by which its tables are known."""


class SampleRow(Protocol):
    """A table's row, or an object of JSON, by the names of its columns."""

    where: str

    def __contains__(self, name: object, /) -> bool: ...

    def number(self, name: str) -> float:
        """A number of zero or more; raises `UnreadableFile`."""
        ...

    def text(self, name: str) -> str: ...


def is_known_table(columns: Container[str]) -> bool:
    """Whether rows with these columns state something that `HostSamples` has."""
    return _first(columns, _MARKS) is not None


@dataclass(frozen=True)
class Moment:
    """When a sample was taken; what a file does not state is None."""

    seconds: float | None
    """Since 1970, of a clock that shows what `HostSamples.clock` says."""
    interval_seconds: float | None


@dataclass(frozen=True)
class CpuSample:
    moment: Moment
    core: str
    """`ALL_CORES`, or its number."""
    busy: float
    """Shares of the cores' time, from 0 to 1; stolen by the hypervisor, waiting for a disk."""
    waiting: float
    stolen: float


@dataclass(frozen=True)
class MemorySample:
    moment: Moment
    used_bytes: float
    """Without the page cache."""


@dataclass(frozen=True)
class Transfer:
    """One direction of a disk; what a tool does not state is None."""

    bytes_per_second: float
    operations_per_second: float | None
    wait_seconds: float | None


@dataclass(frozen=True)
class DiskSample:
    moment: Moment
    disk: str
    transfers: dict[str, Transfer]
    """By direction (``read``, ``write``, ``discard``)."""
    operations_per_second: float | None
    """In all directions."""
    busy: float | None
    """Share of the time with a request in flight."""


@dataclass(frozen=True)
class InterfaceSample:
    moment: Moment
    interface: str
    received: float
    sent: float
    """Bytes per second."""
    used: float | None
    """Share of the nominal bandwidth, of the busier direction."""


@dataclass
class HostSamples:
    """A file's samples of one host."""

    host: str | None = None
    kernel: str | None = None
    cores: int | None = None
    clock: Clock = "local time"
    tool: Tool = "sar"
    cpu: list[CpuSample] = field(default_factory=list)
    memory: list[MemorySample] = field(default_factory=list)
    disks: list[DiskSample] = field(default_factory=list)
    interfaces: list[InterfaceSample] = field(default_factory=list)
    restarts: list[float] = field(default_factory=list)
    is_cut: bool = False
    """The file ends within a line."""

    def add(self, moment: Moment, row: SampleRow) -> None:
        """Add what this row states; other tables' rows are ignored."""
        if (moment.interval_seconds or 0.0) > LONGEST_SECONDS:
            raise UnreadableFile("samples less than a month apart", row.where)
        if (name := _first(row, ("CPU", "cpu"))) and _first(row, ("%idle", "idle")):
            core = row.text(name)
            self.add_cpu(moment, row, ALL_CORES if core == "-1" else core)
        elif (name := _first(row, ("DEV", "Device", "Device:", "disk-device", "disk_device"))) and (
            sample := _disk(moment, row, name)
        ):
            self.disks.append(sample)
        elif (name := _first(row, ("IFACE", "iface"))) and (
            both := _received_and_sent(row)
        ) is not None:
            used = _share(row, ("%ifutil", "ifutil-percent"))
            self.interfaces.append(InterfaceSample(moment, row.text(name), *both, used))
        elif _first(row, ("kbmemused", "memused")):
            self.memory.append(MemorySample(moment, _used_memory(row)))

    def add_cpu(self, moment: Moment, row: SampleRow, core: str = ALL_CORES) -> None:
        idle, waiting, stolen = (
            _share(row, (f"%{name}", name)) or 0.0 for name in ("idle", "iowait", "steal")
        )
        # Guests' time is in sar's user time, or apart from it: only what is not busy is sure.
        busy = min(max(1.0 - idle - waiting - stolen, 0.0), 1.0)
        self.cpu.append(CpuSample(moment, core, busy, waiting, stolen))

    @property
    def is_empty(self) -> bool:
        return not (self.cpu or self.memory or self.disks or self.interfaces)


_DIRECTIONS = {
    direction: {
        f"{letter}kB": KIB,
        f"{old}_sec": SECTOR_BYTES,
        f"{letter}kB/s": KIB,
        f"{letter}MB/s": MIB,
        f"{old}_sec/s": SECTOR_BYTES,
        f"{letter}sec/s": SECTOR_BYTES,
        f"kB_{past}/s": KIB,
        f"MB_{past}/s": MIB,
        f"Blk_{past}/s": SECTOR_BYTES,
    }
    for direction, letter, old, past in (
        ("read", "r", "rd", "read"),
        ("write", "w", "wr", "wrtn"),
        ("discard", "d", "dc", "dscd"),
    )
}
"""The first that a row has is its rate, in units of so many bytes."""


def _disk(moment: Moment, row: SampleRow, name: str) -> DiskSample | None:
    transfers = {}
    for direction, units in _DIRECTIONS.items():
        if unit := _first(row, units):
            letter = direction[0]
            rate, wait = f"{letter}/s", f"{letter}_await"
            transfers[direction] = Transfer(
                _rate(row, unit, units[unit]),
                _rate(row, rate) if rate in row else None,
                row.number(wait) / 1e3 if wait in row else None,
            )
    if not transfers:
        return None
    rates = [each.operations_per_second for each in transfers.values()]
    stated = [rate for rate in rates if rate is not None]
    return DiskSample(
        moment,
        row.text(name),
        transfers,
        _rate(row, "tps") if "tps" in row else sum(stated) if stated else None,
        _share(row, ("%util", "util-percent", "util")),
    )


def _received_and_sent(row: SampleRow) -> tuple[float, float] | None:
    for suffix, unit in (("kB", KIB), ("kB/s", KIB), ("byt/s", 1)):
        if f"rx{suffix}" in row and f"tx{suffix}" in row:
            return _rate(row, f"rx{suffix}", unit), _rate(row, f"tx{suffix}", unit)
    return None


def _used_memory(row: SampleRow) -> float:
    """Used memory; before sysstat 11.7 that of sar had buffers and the page cache."""

    def kilobytes(name: str) -> float:
        column = _first(row, (f"kb{name}", name))
        return _rate(row, column) if column else 0.0

    used, free = kilobytes("memused"), kilobytes("memfree")
    share = _share(row, ("%memused", "memused-percent"))
    if share and used + free >= (1 - _OLD_MEMORY) * used / share:
        used -= kilobytes("buffers") + kilobytes("cached")
    return max(used, 0.0) * KIB


def _rate(row: SampleRow, name: str, unit: int = 1) -> float:
    """A rate in bytes or operations; sysstat prints absurd ones when a counter starts anew."""
    rate = row.number(name) * unit
    if rate > _MOST:
        raise UnreadableFile(f"{name} below {_MOST:.0e} bytes or operations per second", row.where)
    return rate


def _share(row: SampleRow, names: tuple[str, ...]) -> float | None:
    name = _first(row, names)
    return min(row.number(name) / 100, 1.0) if name else None


def _first(row: Container[str], names: Iterable[str]) -> str | None:
    for name in names:
        if name in row:
            return name
    return None
