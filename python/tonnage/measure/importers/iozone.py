"""Import iozone: the table of automatic mode, its Excel output, and throughput mode.

iozone's kilobytes have 1024 bytes. It works on a file that it has just created, so without O_DIRECT
a small file is read from the page cache. Columns of skipped tests are blank, so a figure belongs to
the column whose header ends nearest to its own end.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from tonnage.base.records import Latency, Metric, Source
from tonnage.measure.importers.metric import UnreadableFile, build_metric, require_any
from tonnage.measure.importers.text import integer, lines, number
from tonnage.measure.trial.cache_detection import cache_reason

TOOL = "iozone"

_KIB = 1 << 10
_STDIO = "stdio"
# Reports of the Excel output, in the order of the table's columns: operation and interface.
_REPORTS = {
    "writer": ("write", None),
    "re-writer": ("rewrite", None),
    "reader": ("read", None),
    "re-reader": ("reread", None),
    "random read": ("randread", None),
    "random write": ("randwrite", None),
    "backward read": ("backwardread", None),
    "record rewrite": ("recordrewrite", None),
    "stride read": ("strideread", None),
    "fwrite": ("write", _STDIO),
    "re-fwrite": ("rewrite", _STDIO),
    "fread": ("read", _STDIO),
    "re-fread": ("reread", _STDIO),
}
_COLUMNS = tuple(_REPORTS.values())
_HEADINGS = 2 + len(_COLUMNS)
_CHILDREN = {
    "initial writers": ("write", None),
    "rewriters": ("rewrite", None),
    "readers": ("read", None),
    "re-readers": ("reread", None),
    "reverse readers": ("backwardread", None),
    "stride readers": ("strideread", None),
    "random readers": ("randread", None),
    "random writers": ("randwrite", None),
    "mixed workload": ("randreadwrite", None),
    "pwrite writers": ("write", "pwrite"),
    "pread readers": ("read", "pread"),
    "fwriters": ("write", _STDIO),
    "freaders": ("read", _STDIO),
}
_READS = {"read", "reread", "randread", "backwardread", "strideread"}

_VERSION = re.compile(r"\s*Version \$Revision: (\S+) \$")
_TITLE = re.compile(r'"([A-Za-z -]+) report"')
_THROUGHPUT = re.compile(
    r"\s*Children see throughput for\s+([0-9]{1,9}) ([a-z -]+?)\s*=\s*([0-9.]+) (\w+)/sec\s*"
)
_EACH = re.compile(r"\s*Each (?:process|thread) writes an? ([0-9]{1,15}) \w+ file in ([0-9]{1,15})")
_COMMAND = "Command line used:"
_DONE = "iozone test complete"
_LETTERS = re.compile(r"\s-([A-Za-z]+)")


@dataclass
class _Run:
    """What precedes the results."""

    version: str | None = None
    command: str = ""
    modes: set[str] = field(default_factory=set)
    file_kib: int | None = None
    record_kib: int | None = None

    def flag(self, letter: str) -> bool:
        return any(letter in letters for letters in _LETTERS.findall(self.command))

    @property
    def direct(self) -> bool | None:
        if "O_DIRECT" in self.modes or self.flag("I"):
            return True
        return False if self.command else None

    @property
    def flushes(self) -> bool:
        """Whether the time of a write includes making it durable."""
        return self.flag("e") or self.flag("o") or "SYNC" in self.modes

    def reading(
        self,
        test: tuple[str, str | None],
        figure: float,
        file_kib: float | None,
        record_kib: float | None,
        processes: int = 1,
    ) -> Metric:
        operation, interface = test
        in_operations, in_microseconds = "OPS" in self.modes, "Microseconds" in self.modes
        bandwidth = None if in_operations or in_microseconds else figure * _KIB
        file_bytes = None if file_kib is None else file_kib * _KIB * processes
        return build_metric(
            source=Source(tool=TOOL, version=self.version),
            operation=operation,
            block_bytes=None if not record_kib else round(record_kib * _KIB),
            direct=self.direct,
            concurrency=processes,
            bandwidth_bytes_per_second=bandwidth,
            operations_per_second=figure if in_operations else None,
            latency_seconds=Latency(mean=figure / 1e6) if in_microseconds else Latency(),
            cached=self._cached(operation, bandwidth, file_bytes),
            details={
                "command": self.command or None,
                "file_bytes": file_bytes,
                "interface": interface,
                "synchronous_writes": True if "SYNC" in self.modes else None,
            },
        )

    def _cached(
        self, operation: str, bandwidth: float | None, file_bytes: float | None
    ) -> str | None:
        # -U remounts the file system before each test.
        own = None if self.flag("U") else file_bytes
        reads = operation in _READS
        return cache_reason(
            self.direct,
            bandwidth,
            reread_bytes=own if reads else None,
            unflushed_bytes=None if reads or self.flushes else file_bytes,
        )


def matches(text: str) -> bool:
    """Whether this is iozone's output, or only its Excel part."""
    return "Iozone: Performance Test of File I/O" in text or bool(
        re.search(r'^"Writer report"', text, re.MULTILINE)
    )


def read(text: str) -> list[Metric]:
    """Read the table, throughput mode, or the Excel output if there is nothing else."""
    run = _Run()
    found: list[Metric] = []
    ends: list[int] = []
    done = False
    for at, line in lines(text):
        where = f"line {at}"
        if heading := _heading(line):
            ends = heading
        elif ends and not done and line.split() and set(line) <= set("0123456789 \t"):
            found += list(_from_row(run, line, ends, where))
        elif result := _THROUGHPUT.fullmatch(line):
            test = _CHILDREN.get(result[2], ("other", result[2]))
            figure = number(result[3], "a throughput", where)
            found.append(run.reading(test, figure, run.file_kib, run.record_kib, int(result[1])))
        elif _DONE in line:
            done = True
        else:
            _note(run, line)
    reports = list(_reports(text))
    if not done and (found or not reports):
        raise UnreadableFile(
            '"iozone test complete" at the end of complete output', "the last line"
        )
    if found and "Excel" in run.modes and len(found) != len(reports):
        raise UnreadableFile(f"{len(found)} figures in the Excel output", "the last report")
    found = found or [
        run.reading(test, figure, kib, record) for test, kib, record, figure in reports
    ]
    return require_any(found, "an iozone result")


def _note(run: _Run, line: str) -> None:
    if found := _VERSION.match(line):
        run.version = found[1]
    elif _COMMAND in line:
        run.command = line.partition(_COMMAND)[2].strip()
    elif found := _EACH.match(line):
        run.file_kib, run.record_kib = int(found[1]), int(found[2])
    elif "O_DIRECT feature enabled" in line:
        run.modes.add("O_DIRECT")
    elif "SYNC Mode" in line:
        run.modes.add("SYNC")
    elif "Excel chart generation enabled" in line:
        run.modes.add("Excel")
    elif "OPS Mode" in line:
        run.modes.add("OPS")
    elif "Microseconds/op Mode" in line:
        run.modes.add("Microseconds")


def _heading(line: str) -> list[int] | None:
    words = list(re.finditer(r"\S+", line))
    if len(words) != _HEADINGS or [word[0].lower() for word in words[:2]] != ["kb", "reclen"]:
        return None
    return [word.end() for word in words]


def _from_row(run: _Run, line: str, ends: list[int], where: str) -> Iterator[Metric]:
    figures = list(re.finditer(r"[0-9]+", line))
    if len(figures) < 3:
        raise UnreadableFile("a file size, a record size and a figure", where)
    if len(figures) == len(ends):
        places = list(range(len(ends)))
    else:
        places = [
            min(range(len(ends)), key=lambda place: abs(ends[place] - figure.end()))
            for figure in figures
        ]
    if places[:2] != [0, 1] or len(set(places)) != len(places):
        raise UnreadableFile("figures below the table's header", where)
    values = [integer(figure[0], "a figure", where) for figure in figures]
    for place, value in zip(places[2:], values[2:], strict=True):
        yield run.reading(_COLUMNS[place - 2], value, values[0], values[1])


_Cell = tuple[tuple[str, str | None], float, float, float]


def _reports(text: str) -> Iterator[_Cell]:
    """The cells of the Excel output: test, file size, record size, figure.

    A report has a line of record sizes, and then one line per file size. All reports of a run have
    cells for the same sizes.
    """
    test: tuple[str, str | None] | None = None
    records: list[float] = []
    shapes: dict[str, list[tuple[float, int]]] = {}
    title = ""
    for at, line in lines(text):
        where = f"line {at}"
        if found := _TITLE.match(line.strip()):
            title = found[1]
            test = _REPORTS.get(title.lower(), ("other", title))
            records, shapes[title] = [], []
        elif test and line.strip():
            cells = line.split()
            sizes = [cell[1:-1] for cell in cells if re.fullmatch(r'"[0-9]+"', cell)]
            figures = cells[len(sizes) :]
            if not figures and not records:
                records = [number(kib, "a record size", where) for kib in sizes]
                continue
            if len(sizes) != 1 or not 0 < len(figures) <= len(records):
                raise UnreadableFile("a file size in quotes, and figures", where)
            kib = number(sizes[0], "a file size", where)
            shapes[title].append((kib, len(figures)))
            for record, cell in zip(records, figures, strict=False):
                yield test, kib, record, number(cell, "a figure", where)
    if len({str(shape) for shape in shapes.values()}) > 1:
        raise UnreadableFile("the same number of figures in each report", "the last report")
