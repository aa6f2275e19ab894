"""Read sysstat's tables: the text of sar and iostat, and the CSV of sadf -d.

::

    Linux 6.1.0 (node-1) 	11/20/26 	_x86_64_	(2 CPU)

    22:01:50        CPU     %user     %nice   %system   %iowait    %steal     %idle
    22:01:51        all     67.66      0.00     31.34      0.50      0.50      0.00

A table of sar begins after an empty line; the time of its head is when its first interval begins.
A report of iostat begins with its time (-t); the first covers the time since the machine's start,
so it only says when the next one begins. A last line without its end may be cut, so it is ignored.
"""

import re
from collections.abc import Sequence

from tonnage.measure.importers import text as parsing
from tonnage.measure.importers.metric import UnreadableFile
from tonnage.measure.importers.sysstat.clock import (
    DayClock,
    day_seconds,
    moment_seconds,
    take_time,
)
from tonnage.measure.importers.sysstat.samples import (
    Clock,
    HostSamples,
    Moment,
    is_known_table,
)

BANNER = re.compile(
    r"Linux (\S+) \(([^)]*)\)\s+(\S+(?: \S+)*)\s+_(\w+?)_(?:\s+\(([0-9]{1,6}) [^)]*\))?\s*"
)
CSV_HEAD = "# hostname;interval;timestamp;"
RESTART = re.compile(r"LINUX[ -]RESTART(?:\s+\(([0-9]{1,6}) CPU\))?")
_CORES = "avg-cpu:"
_DISKS = ("Device", "Device:")


class TableRow:
    """A line of a table, by its head."""

    def __init__(self, columns: Sequence[str], cells: Sequence[str], where: str) -> None:
        if len(cells) != len(columns):
            raise UnreadableFile(f"{len(columns)} columns, as in the head of the table", where)
        self._cells, self.where = dict(zip(columns, cells, strict=True)), where

    def __contains__(self, name: object, /) -> bool:
        return name in self._cells

    def number(self, name: str) -> float:
        """A number of zero or more; some locales have a decimal comma."""
        text = self._cells[name].replace(",", ".")
        return parsing.number(text, f"{name} (without units)", self.where)

    def text(self, name: str) -> str:
        return self._cells[name]


def matches(text: str) -> bool:
    return any(
        line.startswith(CSV_HEAD) or BANNER.fullmatch(line)
        for _, line in parsing.lines(text)
        if line.startswith(("Linux ", "# "))
    )


def read_tables(text: str) -> list[HostSamples]:
    """The hosts of a file; several files may follow each other in it."""
    complete, _, rest = text.rpartition("\n")
    hosts: list[HostSamples] = []
    reader: _Sar | _Iostat | None = None
    csv = _SadfCsv(hosts)
    for number, line in parsing.lines(complete):
        where = f"line {number}"
        if banner := BANNER.fullmatch(line):
            hosts.append(_host(banner))
            reader = _Sar(hosts[-1], day_seconds(banner[3], where))
        elif ";" in line and (csv.columns or line.startswith(CSV_HEAD)):
            csv.take(line, where)
        elif reader:
            tokens = line.split()
            if isinstance(reader, _Sar) and _is_iostat(tokens):
                reader = _Iostat(hosts[-1], reader.last_line)
            reader.take(tokens, where)
    for host in hosts:
        host.is_cut = bool(rest.strip())
    return hosts


def _host(banner: re.Match[str]) -> HostSamples:
    kernel, name, _, _, cores = banner.groups()
    return HostSamples(host=name or None, kernel=kernel, cores=int(cores) if cores else None)


class _Sar:
    def __init__(self, host: HostSamples, day: float) -> None:
        self._host, self._day = host, day
        self._columns: list[str] = []
        self._is_known = False
        self._clocks: dict[tuple[str, ...], DayClock] = {}
        self._previous = 0.0
        self._now = 0.0
        self._is_after_blank = True
        self.last_line: tuple[list[str], str] = ([], "")

    def take(self, tokens: list[str], where: str) -> None:
        after_blank, self._is_after_blank = self._is_after_blank, not tokens
        self.last_line = (tokens, where) if tokens else self.last_line
        taken = take_time(tokens)
        if taken is None or not taken[1]:
            return  # Averages, and what other tools print.
        time, cells = taken
        if restart := RESTART.search(" ".join(cells)):
            self._host.restarts.append(self._clock().seconds(time, where))
            self._host.cores = int(restart[1]) if restart[1] else self._host.cores
            self._columns = []
        elif after_blank or cells == self._columns:
            self._columns, self._is_known = cells, is_known_table(cells)
            self._previous = self._now = self._clock().seconds(time, where)
        elif self._columns and self._is_known and cells[0] != "COM":
            now = self._clock().seconds(time, where)
            if now > self._now:
                self._previous, self._now = self._now, now
            if now > self._previous:
                moment = Moment(now, now - self._previous)
                self._host.add(moment, TableRow(self._columns, cells, where))

    def _clock(self) -> DayClock:
        return self._clocks.setdefault(tuple(self._columns), DayClock(self._day))


class _Iostat:
    def __init__(self, host: HostSamples, time_line: tuple[list[str], str]) -> None:
        self._host = host
        host.tool = "iostat"
        self._columns: list[str] = []
        self._moments: list[float] = []
        self._take_time(*time_line)

    def take(self, tokens: list[str], where: str) -> None:
        if not tokens:
            self._columns = []
        elif _is_iostat(tokens):
            self._columns = tokens
        elif not self._columns:
            self._take_time(tokens, where)
        elif self._columns[0] == _CORES:
            self._host.add_cpu(self._moment, TableRow(self._columns[1:], tokens, where))
        else:
            self._host.add(self._moment, TableRow(self._columns, tokens, where))

    def _take_time(self, tokens: list[str], where: str) -> None:
        if tokens and re.match(r"[0-9]", tokens[0]):
            self._moments.append(moment_seconds(" ".join(tokens), where))
            if self._moments[-2:] != sorted(self._moments[-2:]):
                raise UnreadableFile("times that do not go back", where)

    @property
    def _moment(self) -> Moment:
        if not self._moments:
            return Moment(None, None)
        before = self._moments[-2:-1]
        return Moment(self._moments[-1], self._moments[-1] - before[0] if before else None)


def _is_iostat(tokens: list[str]) -> bool:
    """Whether this is the head of one of its tables; with -h the devices are its last column."""
    return bool(tokens) and (tokens[0] in (_CORES, *_DISKS) or tokens[-1] in _DISKS)


class _SadfCsv:
    """The lines of sadf -d: each has its host, its interval and its time, in UTC unless -t."""

    def __init__(self, hosts: list[HostSamples]) -> None:
        self._hosts = hosts
        self._by_name: dict[str, HostSamples] = {}
        self.columns: list[str] = []

    def take(self, line: str, where: str) -> None:
        if line.startswith(CSV_HEAD):
            self.columns = line.removeprefix("# ").split(";")
            if "[...]" in line:
                raise UnreadableFile("one table after another (sadf -d without -h)", where)
            return
        cells = line.split(";")
        if len(cells) < 4:
            raise UnreadableFile(f"{len(self.columns)} columns, as in the head", where)
        host = self._host(cells[0])
        seconds, host.clock = _csv_time(cells[2], where)
        if restart := RESTART.match(cells[3]):
            host.restarts.append(seconds)
            host.cores = int(restart[1]) if restart[1] else host.cores
        elif cells[3] != "COM":
            interval = parsing.number(cells[1].replace(",", "."), "an interval", where)
            host.add(Moment(seconds, interval or None), TableRow(self.columns, cells, where))

    def _host(self, name: str) -> HostSamples:
        if name not in self._by_name:
            self._by_name[name] = HostSamples(host=name)
            self._hosts.append(self._by_name[name])
        return self._by_name[name]


def _csv_time(text: str, where: str) -> tuple[float, Clock]:
    if re.fullmatch(r"[0-9]{1,10}", text):  # sadf -U.
        return float(text), "UTC"
    return moment_seconds(text, where), "UTC" if text.endswith(" UTC") else "local time"
