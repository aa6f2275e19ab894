"""Import elbencho's result files, JSON (--jsonfile) and CSV (--csvfile): one metric per phase.

The rates are those when the slowest thread ended ("last done"); those when the fastest ended
("first done") are among the details. The JSON has numbers in quotes, and one document per line.
These files have no percentiles.
"""

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from tonnage.base.records import Latency, Metric, Source
from tonnage.measure.importers.json_reader import JsonValue
from tonnage.measure.importers.metric import UnreadableFile, build_metric, require_any
from tonnage.measure.importers.text import lines, number
from tonnage.measure.trial.cache_detection import cache_reason

TOOL = "elbencho"

_EXPECTED = "an elbencho phase with results"
_CSV_HEADER = "ISO date,label,path type,"
_MIB = 1 << 20
_OBJECTS = {"bucket", "object"}
_YES = {"1", "true"}
# A phase's name without suffix (RWMIX50, READ+s), its operation on files and on objects, and its
# target.
_PHASES = {
    "WRITE": ("write", "put", "file"),
    "RWMIX": ("write", "put", "file"),
    "MIX": ("write", "put", "file"),
    "READ": ("read", "get", "file"),
    "STATDIRS": ("stat", "stat", "directory"),
    "STAT": ("stat", "stat", "file"),
    "HEADOBJ": ("stat", "stat", "object"),
    "MKDIRS": ("create", "create", "directory"),
    "MKBUCKETS": ("create", "create", "bucket"),
    "RMFILES": ("remove", "remove", "file"),
    "RMOBJECTS": ("remove", "remove", "object"),
    "RMDIRS": ("remove", "remove", "directory"),
    "RMBUCKETS": ("remove", "remove", "bucket"),
    "MULTIDEL": ("remove", "remove", "object"),
    "LISTOBJ": ("list", "list", "object"),
    "NET": ("send", "send", "network"),
}


class _Phase(NamedTuple):
    name: str
    version: str | None
    command: str | None
    label: str | None
    path_type: str
    hosts: float | None
    threads: float | None
    depth: float | None
    block: float | None
    file_size: float | None
    direct: bool | None
    random: bool

    @property
    def concurrency(self) -> int | None:
        if self.hosts is None or self.threads is None:
            return None
        return round(self.hosts * self.threads * max(self.depth or 1, 1))


class _Rates(NamedTuple):
    entries: float | None
    operations: float | None
    bandwidth: float | None
    latency: Latency
    first_bandwidth: float | None


def matches(document: JsonValue) -> bool:
    return "phase_type" in document and "last_done" in document


def matches_csv(text: str) -> bool:
    return any(line.startswith(_CSV_HEADER) for _, line in lines(text))


def read(documents: list[JsonValue]) -> list[Metric]:
    results = (metric for document in documents for metric in _from_document(document))
    return require_any(results, _EXPECTED)


def read_csv(text: str) -> list[Metric]:
    """Read elbencho's CSV, which must have its header."""
    return require_any(_from_csv(text), _EXPECTED)


def _from_document(document: JsonValue) -> Iterator[Metric]:
    # Early versions did not write the configuration.
    config = document.get("config") or JsonValue({}, document.path)
    phase = _Phase(
        name=document.member("phase_type").text(),
        version=config.optional_text("version"),
        command=config.optional_text("command"),
        label=document.optional_text("label"),
        path_type=config.optional_text("path_type") or "",
        hosts=config.optional_number("hosts"),
        threads=config.optional_number("threads"),
        depth=config.optional_number("io_depth"),
        block=config.optional_number("block_size"),
        file_size=config.optional_number("file_size"),
        direct=_is_set(config, "direct_io") if "direct_io" in config else None,
        random=_is_set(config, "random_offsets"),
    )
    last, first = document.member("last_done"), document.get("first_done")
    for mixed in (False, True):
        yield from _from_rates(phase, _rates(last, first, mixed), mixed)


def _is_set(config: JsonValue, name: str) -> bool:
    value = config.object().get(name)
    return value is True or str(value).lower() in _YES


def _rates(last: JsonValue, first: JsonValue | None, mixed: bool) -> _Rates:
    inner = last.get("rwmix_read") if mixed else last
    early = first.get("rwmix_read") if mixed and first else first
    if inner is None:
        return _Rates(None, None, None, Latency(), None)
    latency = Latency()
    if latencies := last.get("latency"):
        kind = latencies.get("IO") or latencies.get("entries")
        kind = kind.get("rwmix_read") if mixed and kind else kind
        if kind and "avg_us" in kind:
            latency = Latency(
                mean=kind.member("avg_us").number() / 1e6, max=kind.member("max_us").number() / 1e6
            )
    return _Rates(
        entries=inner.optional_number("entries/s"),
        operations=inner.optional_number("iops"),
        bandwidth=inner.optional_number("bytes/s"),
        latency=latency,
        first_bandwidth=early.optional_number("bytes/s") if early else None,
    )


def _from_csv(text: str) -> Iterator[Metric]:
    columns: list[str] = []
    for at, line in lines(text):
        where = f"line {at}"
        if line.startswith(_CSV_HEADER):
            columns = line.split(",")
        elif columns and line.strip():
            # elbencho replaces commas in the command by spaces, so all commas are separators.
            fields = line.split(",")
            if len(fields) != len(columns):
                raise UnreadableFile(f"{len(columns)} fields, as in the header", where)
            yield from _from_row(dict(zip(columns, fields, strict=True)), where)


def _from_row(row: dict[str, str], where: str) -> Iterator[Metric]:
    def figure(name: str) -> float | None:
        text = row.get(name, "")
        return number(text, name, where) if text else None

    if "operation" not in row:
        raise UnreadableFile('a column "operation"', where)
    phase = _Phase(
        name=row["operation"],
        version=row.get("version") or None,
        command=row.get("command") or None,
        label=row.get("label") or None,
        path_type=row["path type"],
        hosts=figure("hosts"),
        threads=figure("threads"),
        depth=figure("IO depth"),
        block=figure("block size"),
        file_size=figure("file size"),
        direct=row["direct IO"].lower() in _YES if row.get("direct IO") else None,
        random=row.get("random", "").lower() in _YES,
    )
    for mixed in (False, True):
        prefix = "rwmix read " if mixed else ""
        yield from _from_rates(phase, _row_rates(prefix, figure, row), mixed)


def _row_rates(prefix: str, figure: Callable[[str], float | None], row: dict[str, str]) -> _Rates:
    kind = "IO" if row.get(f"{prefix}IO lat us [avg]") else "Ent"
    mean, most = (figure(f"{prefix}{kind} lat us [{at}]") for at in ("avg", "max"))
    bandwidth, first = (figure(f"{prefix}MiB/s [{at}]") for at in ("last", "first"))
    return _Rates(
        entries=figure(f"{prefix}entries/s [last]"),
        operations=figure(f"{prefix}IOPS [last]"),
        bandwidth=None if bandwidth is None else bandwidth * _MIB,
        latency=Latency(
            mean=None if mean is None else mean / 1e6, max=None if most is None else most / 1e6
        ),
        first_bandwidth=None if first is None else first * _MIB,
    )


def _from_rates(phase: _Phase, rates: _Rates, mixed: bool) -> Iterator[Metric]:
    if not any((rates.entries, rates.operations, rates.bandwidth)):
        return
    found = re.match(r"[A-Z]+", phase.name)
    name = next((name for name in _PHASES if found and found[0].startswith(name)), "")
    on_files, on_objects, thing = _PHASES.get(name, ("other", "other", None))
    objects = phase.path_type in _OBJECTS
    if mixed:
        on_files, on_objects = "read", "get"
    operation = on_objects if objects else on_files
    moves = rates.bandwidth is not None
    if phase.random and operation in ("read", "write"):
        operation = f"rand{operation}"
    network = objects or operation == "send"
    why = None if network or not moves else cache_reason(phase.direct, rates.bandwidth)
    yield build_metric(
        source=Source(tool=TOOL, version=phase.version),
        operation=operation,
        block_bytes=round(phase.block) if moves and phase.block else None,
        direct=None if network or not moves else phase.direct,
        concurrency=phase.concurrency,
        bandwidth_bytes_per_second=rates.bandwidth,
        operations_per_second=rates.operations or rates.entries,
        latency_seconds=rates.latency,
        cached=why,
        details={
            "tool_operation": phase.name,
            "label": phase.label,
            "command": phase.command,
            "object": thing,
            "path_type": phase.path_type or None,
            "hosts": phase.hosts,
            "threads": phase.threads,
            "file_bytes": phase.file_size or None,
            "entries_per_second": rates.entries,
            "first_done_bytes_per_second": rates.first_bandwidth,
        },
    )
