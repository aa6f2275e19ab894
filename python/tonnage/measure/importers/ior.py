"""Import IOR's results as text, JSON, CSV and rank details: one metric per iteration.

Bandwidth is that of the whole iteration, with opening and closing, in MiB/s. IOR's latency is the
mean of the fastest task.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from tonnage.base.records import Latency, Metric, Source
from tonnage.measure.importers.json_reader import JsonValue
from tonnage.measure.importers.metric import UnreadableFile, build_metric, require_any
from tonnage.measure.importers.text import integer, lines, number, size_bytes
from tonnage.measure.trial.cache_detection import cache_reason

TOOL = "ior"

_EXPECTED = "an IOR result"
_MIB = 1 << 20
_KIB = 1 << 10
_VERSION = re.compile(r"IOR-(\S+):? ")
_OPTION = re.compile(r"\s{0,20}([A-Za-z][\w ]{0,60}?)\s{0,40}[:=]\s*(\S.*)?")
_ACCESSES = ("write", "read")
_CSV_HEADER = "access,bw(MiB/s),"
_RANKS_HEADER = "access,rank,runtime-with-openclose,runtime,throughput-withopenclose"
# After the iterations: summaries, which have rows of their own, and the end.
_SUMMARIES = ("Max Write:", "Max Read:", "Summary of all tests:")
_END = "Finished"
_DIRECT = re.compile(r"(?:^|\s)(?:--posix\.odirect|-[a-zA-Z]*B)(?:=1)?(?=\s|$)|useO_DIRECT=1")
_FLUSH = re.compile(r"(?:^|\s)-(?:e|Y)(?=\s|$)")


@dataclass
class _Test:
    version: str | None = None
    command: str = ""
    options: dict[str, str] = field(default_factory=dict)

    def reading(
        self,
        access: str,
        mib_per_second: float,
        *,
        transfer_bytes: int | None,
        operations_per_second: float | None,
        latency: float | None,
        tasks: int | None,
        details: Mapping[str, object],
    ) -> Metric:
        bandwidth = mib_per_second * _MIB
        random = self.options.get("ordering in a file", "").startswith("random")
        return build_metric(
            source=Source(tool=TOOL, version=self.version),
            operation=f"rand{access}" if random else access,
            block_bytes=transfer_bytes,
            direct=self.direct,
            concurrency=tasks if tasks is not None else self.tasks,
            bandwidth_bytes_per_second=bandwidth,
            operations_per_second=operations_per_second,
            latency_seconds=Latency(mean=latency),
            cached=self._cached(access, bandwidth),
            details={
                "command": self.command or None,
                "api": self.options.get("api"),
                "access": self.options.get("access"),
                "type": self.options.get("type"),
                "file": self.options.get("test filename"),
                "file_bytes": self.file_bytes,
                "latency_of": "the fastest task, on average" if latency is not None else None,
                **details,
            },
        )

    @property
    def direct(self) -> bool | None:
        """Not stated for interfaces other than POSIX."""
        if _DIRECT.search(self.command):
            return True
        return False if self.command and self.options.get("api") == "POSIX" else None

    @property
    def tasks(self) -> int | None:
        """The tasks: ``2``, before version 3.2 ``2 (2 per node)``."""
        text = self.options.get("tasks") or self.options.get("clients") or ""
        found = re.match(r"[0-9]{1,9}", text)
        return int(found[0]) if found else None

    @property
    def file_bytes(self) -> int | None:
        return size_bytes(self.options.get("aggregate filesize", ""))

    @property
    def _is_on_one_node(self) -> bool:
        """Whether all tasks run on one node; before version 3.2, from the tasks per node."""
        each = re.fullmatch(r"([0-9]+) \(([0-9]+) per node\)", self.options.get("clients", ""))
        return each[1] == each[2] if each else self.options.get("nodes") == "1"

    def _cached(self, access: str, bandwidth: float) -> str | None:
        """Only with a single node the run's own files are known to be in memory."""
        flags = set(re.findall(r"\s-([wWrR])(?=\s|$)", self.command))
        writes = "w" in flags or not flags  # By default it writes and reads.
        flushes = _FLUSH.search(self.command) is not None
        own = self.file_bytes if self._is_on_one_node else None
        return cache_reason(
            self.direct,
            bandwidth,
            reread_bytes=own if access == "read" and writes else None,
            unflushed_bytes=own if access == "write" and self.command and not flushes else None,
        )


def matches(text: str) -> bool:
    return bool(
        re.search(r"^IOR-\S+ MPI Coordinated Test", text, re.MULTILINE)
        or any(line.startswith((_CSV_HEADER, _RANKS_HEADER)) for _, line in lines(text))
    )


def matches_json(document: JsonValue) -> bool:
    return "tests" in document and ("Command line" in document or "Began" in document)


def read(text: str) -> list[Metric]:
    results = _from_text(text)
    for at, line in lines(text):
        if line.startswith((_CSV_HEADER, _RANKS_HEADER)):
            from_lines = _from_csv if line.startswith(_CSV_HEADER) else _from_ranks
            results = from_lines(text, at)
            break
    return require_any(results, _EXPECTED)


def read_json(documents: list[JsonValue]) -> list[Metric]:
    results = (metric for document in documents for metric in _from_json(document))
    return require_any(results, _EXPECTED)


def _from_text(text: str) -> Iterator[Metric]:
    test = _Test()
    columns: list[str] = []
    summed = ended = False
    for at, line in lines(text):
        fields = line.split()
        if found := _VERSION.match(line):
            test, columns = _Test(version=found[1].rstrip(":")), []
            summed = ended = False
        elif fields[:2] == ["access", "bw(MiB/s)"]:
            columns = fields
        elif columns and fields and fields[0] in _ACCESSES and len(fields) > 1:
            if summed:
                continue
            yield _from_row(test, columns, fields, f"line {at}")
        elif line.startswith(_SUMMARIES):
            summed = True
        elif line.startswith(_END):
            ended = True
        elif found := _OPTION.fullmatch(line):
            _note(test, found[1], (found[2] or "").rstrip())
            # Each further test has its own options and table.
            if found[1] in ("TestID", "api"):
                columns, summed = [], False
    if not ended:
        raise UnreadableFile(f'"{_END}" at the end of complete IOR output', "the last line")


def _note(test: _Test, name: str, value: str) -> None:
    if name in ("Command line", "Command line used"):
        test.command = value
    else:
        test.options[name] = value


def _from_row(test: _Test, columns: list[str], fields: list[str], where: str) -> Metric:
    if len(fields) != len(columns):
        raise UnreadableFile(f"{len(columns)} columns, as in the header", where)
    row = dict(zip(columns, fields, strict=True))

    def figure(*names: str) -> float | None:
        text = next((row[name] for name in names if name in row), "-")
        return None if text in ("-", "NA", "inf", "nan") else number(text, names[0], where)

    transfer = figure("xfer(KiB)", "xfer")
    bandwidth = figure("bw(MiB/s)")
    if bandwidth is None:
        raise UnreadableFile("a bandwidth", where)
    tasks, iteration = figure("numTasks"), figure("iter")
    return test.reading(
        row["access"],
        bandwidth,
        transfer_bytes=None if not transfer else round(transfer * _KIB),
        operations_per_second=figure("IOPS"),
        latency=figure("Latency(s)", "Latency"),
        tasks=None if tasks is None else round(tasks),
        details={
            "iteration": None if iteration is None else round(iteration),
            "seconds": figure("total(s)"),
            "open_seconds": figure("open(s)"),
            "close_seconds": figure("close(s)"),
        },
    )


def _from_csv(text: str, heading: int) -> Iterator[Metric]:
    columns: list[str] = []
    for at, line in lines(text):
        if at == heading:
            columns = line.split(",")
        elif at > heading and line.partition(",")[0] in _ACCESSES:
            yield _from_row(_Test(), columns, line.split(","), f"line {at}")
        elif at > heading and line.strip():
            raise UnreadableFile("a line of a read or write", f"line {at}")


def _from_ranks(text: str, heading: int) -> Iterator[Metric]:
    """Ranks from 0 on make one iteration, which lasts as long as the slowest."""
    iteration: list[tuple[str, float, float]] = []
    for at, line in lines(text):
        fields = line.split(",")
        if at > heading and line.strip():
            where = f"line {at}"
            if len(fields) < 6 or fields[0] not in _ACCESSES:
                raise UnreadableFile("read or write, a rank and four numbers", where)
            rank = integer(fields[1], "a rank", where)
            seconds = number(fields[2], "a run time", where)
            speed = number(fields[4], "a throughput", where)
            if rank == 0 and iteration:
                yield _from_iteration(iteration)
                iteration = []
            if rank != len(iteration) or (iteration and iteration[0][0] != fields[0]):
                raise UnreadableFile(f"rank {len(iteration)} of the same operation", where)
            iteration.append((fields[0], seconds, speed))
    if iteration:
        yield _from_iteration(iteration)


def _from_iteration(ranks: list[tuple[str, float, float]]) -> Metric:
    moved = sum(seconds * speed for _, seconds, speed in ranks)
    longest = max(seconds for _, seconds, _ in ranks)
    if not longest:
        raise UnreadableFile("a run time above zero")
    return _Test().reading(
        ranks[0][0],
        moved / longest / _MIB,
        transfer_bytes=None,
        operations_per_second=None,
        latency=None,
        tasks=len(ranks),
        details={"seconds": longest, "ranks_bytes_per_second": [speed for *_, speed in ranks]},
    )


def _from_json(document: JsonValue) -> Iterator[Metric]:
    if "Finished" not in document:
        raise UnreadableFile('a member "Finished", which IOR writes at its end', document.path)
    version = document.optional_text("Version")
    command = document.optional_text("Command line") or ""
    for node in document.member("tests").items():
        options = node.get("Options")
        test = _Test(
            version=version, command=command, options=options.text_members() if options else {}
        )
        for at, result in enumerate(_results(node.member("Results"))):
            access = result.member("access").text()
            if access in _ACCESSES:
                yield _from_result(test, access, result, at)


def _results(node: JsonValue) -> Iterator[JsonValue]:
    """All results; version 3.2 has a list for each iteration."""
    for result in node.items():
        if isinstance(result.value, list):
            yield from result.items()
        else:
            yield result


def _from_result(test: _Test, access: str, result: JsonValue, at: int) -> Metric:
    transfer = result.optional_number("xferKiB")
    return test.reading(
        access,
        result.member("bwMiB").number(),
        transfer_bytes=None if not transfer else round(transfer * _KIB),
        operations_per_second=result.optional_number("iops"),
        latency=result.optional_number("latency"),
        tasks=None,
        details={
            "result": at,
            "seconds": result.optional_number("totalTime"),
            "open_seconds": result.optional_number("openTime"),
            "close_seconds": result.optional_number("closeTime"),
        },
    )
