"""Import fio's JSON and JSON+: one metric for each direction of each job that did I/O.

A job's latency is the completion latency (clat), to which fio's percentiles refer by default; if it
was not measured, the total latency (lat). Percentiles are fio's own, or computed from the bins if
fio does not list them.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tonnage.base.records import Latency, Metric, Source
from tonnage.measure.importers import fio_bins
from tonnage.measure.importers.json_reader import JsonValue
from tonnage.measure.importers.metric import UnreadableFile, build_metric, require_any
from tonnage.measure.trial.cache_detection import cache_reason

TOOL = "fio"

_DIRECTIONS = ("read", "write", "trim", "mixed")
_LATENCIES = ("clat", "lat")
# Fields in nanoseconds have a suffix; old ones without it are in microseconds.
_PER_SECOND = {"_ns": 1e9, "": 1e6}

# Engines that wait for each operation, whatever iodepth says. psync is the default on Linux.
_SYNCHRONOUS = {"", "psync", "sync", "vsync", "pvsync", "pvsync2", "mmap", "splice"}
# Engines that read and write files, and may use the page cache.
_FILE_ENGINES = _SYNCHRONOUS | {"libaio", "posixaio", "io_uring"}

# Options with which a job waits until its data is durable.
_WAITS = (
    "fsync",
    "fdatasync",
    "end_fsync",
    "end_syncfs",
    "fsync_on_close",
    "sync",
    "sync_file_range",
)

_DEFAULT_BLOCK = 4096
_SIZE = re.compile(r"([0-9]{1,18})([kmgtp]?)(i?)b?", re.IGNORECASE)
_POWERS = "kmgtp"
_NO = {"0", "false", "no"}


@dataclass(frozen=True)
class _Job:
    """A job's options with the global ones; ``known`` is whether fio prints options at all."""

    options: dict[str, str]
    known: bool

    def option(self, *names: str) -> str | None:
        return next((self.options[name] for name in names if name in self.options), None)

    def flag(self, *names: str) -> bool | None:
        """Whether an option is set; without a value it is."""
        value = self.option(*names)
        return None if value is None else value.lower() not in _NO

    @property
    def engine(self) -> str:
        return (self.option("ioengine") or "").partition(":")[0]

    @property
    def pattern(self) -> str:
        return (self.option("rw", "readwrite") or "").partition(":")[0]

    @property
    def direct(self) -> bool | None:
        if "direct" in self.options:
            return self.flag("direct")
        buffered = self.flag("buffered")
        if buffered is not None:
            return not buffered
        if self.engine == "io_uring_cmd":  # It talks to the device directly.
            return True
        return False if self.known else None

    @property
    def concurrency(self) -> int | None:
        """The queue depth of a job, times the jobs that it stands for."""
        if not self.known:
            return None
        depth = 1 if self.engine in _SYNCHRONOUS else _count(self.option("iodepth"), 1)
        jobs = _count(self.option("numjobs"), 1) if self.flag("group_reporting") else 1
        return None if depth is None or jobs is None else depth * jobs

    def size(self, name: str) -> int | None:
        return _size(self.option(name) or "", self.option("kb_base") or "1024")

    def block(self, direction: str) -> int | None:
        """The block size, if there is one; ``bs`` may list those for reads, writes and trims."""
        if self.option("bsrange", "blocksize_range", "bssplit"):
            return None
        value = self.option("bs", "blocksize")
        if value is None:
            return _DEFAULT_BLOCK if self.known else None
        sizes = value.split(",")
        at = {"read": 0, "write": 1, "trim": 2}.get(direction)
        if at is None:
            return _size(value, self.option("kb_base") or "1024")
        return _size(sizes[min(at, len(sizes) - 1)], self.option("kb_base") or "1024")


def matches(document: JsonValue) -> bool:
    return "fio version" in document or "client_stats" in document


def read(documents: list[JsonValue]) -> list[Metric]:
    """Read fio's documents; of several states of one run, only the last counts."""
    results = (
        metric for document in _last_states(documents) for metric in _from_document(document)
    )
    return require_any(results, "a job that did I/O", _jobs(documents[-1]).path)


def _last_states(documents: list[JsonValue]) -> list[JsonValue]:
    """Leave out what ``--status-interval`` wrote before the end of a run."""
    last: dict[str, int] = {}
    documents_left: list[JsonValue | None] = []
    for document in documents:
        jobs = _jobs(document).items()
        key = repr([(job.member("jobname").text(), _options(job)) for job in jobs])
        before = last.get(key)
        if before is not None and _is_later(document, documents[before]):
            documents_left[before] = None
        last[key] = len(documents_left)
        documents_left.append(document)
    return [document for document in documents_left if document is not None]


def _is_later(document: JsonValue, before: JsonValue) -> bool:
    now = [job.optional_number("elapsed") for job in _jobs(document).items()]
    then = [job.optional_number("elapsed") for job in _jobs(before).items()]
    pairs = list(zip(now, then, strict=True))
    return all(a is not None and b is not None and a >= b for a, b in pairs) and now != then


def _jobs(document: JsonValue) -> JsonValue:
    return document.member("client_stats" if "client_stats" in document else "jobs")


def _options(node: JsonValue, name: str = "job options") -> dict[str, str]:
    options = node.get(name)
    return options.text_members() if options else {}


def _from_document(document: JsonValue) -> Iterator[Metric]:
    version = document.optional_text("fio version")
    source = Source(tool=TOOL, version=version.removeprefix("fio-") if version else None)
    general = _options(document, "global options")
    for node in _jobs(document).items():
        known = "job options" in node or "global options" in document
        yield from _from_job(source, node, _Job({**general, **_options(node)}, known))


def _from_job(source: Source, node: JsonValue, job: _Job) -> Iterator[Metric]:
    details = {
        "job": node.optional_text("jobname"),
        "group": node.optional_int("groupid"),
        "host": node.optional_text("hostname"),
        "error": node.optional_int("error") or None,
        "sum_of_all_clients": node.optional_text("jobname") == "All clients" or None,
        "file_bytes": job.size("size"),
        "options": job.options,
    }
    if steady := node.get("steadystate"):
        attained = steady.optional_int("attained")
        details["steady_state_attained"] = None if attained is None else bool(attained)
    sides = {name: side for name in _DIRECTIONS if (side := node.get(name)) and _has_io(side)}
    if len(sides) > 1:  # unified_rw_reporting=both: the sum is not a result of its own.
        sides.pop("mixed", None)
    for direction, side in sides.items():
        yield _from_direction(source, job, direction, side, details)
    sync = node.get("sync")
    if sync and sync.optional_int("total_ios"):
        latency, bins, more = _latency(source, sync)
        yield build_metric(
            source=source,
            operation="fsync",
            concurrency=job.concurrency,
            latency_seconds=latency,
            bins=bins,
            details={**details, **more, "operations": sync.optional_int("total_ios")},
        )


def _has_io(side: JsonValue) -> bool:
    return bool(side.optional_number("io_bytes") or side.optional_int("total_ios"))


def _from_direction(
    source: Source, job: _Job, direction: str, side: JsonValue, details: Mapping[str, object]
) -> Metric:
    bandwidth = side.optional_number("bw_bytes")
    if bandwidth is None:  # KiB/s, before fio 3.5.
        bandwidth = side.member("bw").number() * 1024
    operation = _operation(job.pattern, direction)
    # fio 2 calls KiB bytes if it has only one of them.
    moved = side.member("io_bytes").number() * (1 if "io_kbytes" in side else 1024)
    latency, bins, more = _latency(source, side)
    return build_metric(
        source=source,
        operation=operation,
        block_bytes=job.block(direction),
        direct=job.direct,
        concurrency=job.concurrency,
        bandwidth_bytes_per_second=bandwidth,
        operations_per_second=side.member("iops").number(),
        latency_seconds=latency,
        cached=_cached(job, direction, bandwidth, moved),
        bins=bins,
        details={
            **details,
            **more,
            "bytes": moved,
            "operations": side.optional_int("total_ios"),
            "seconds": side.member("runtime").number() / 1e3,
        },
    )


def _operation(pattern: str, direction: str) -> str:
    """The operation: fio states the job's pattern, and reports by direction."""
    random = pattern.startswith("rand")
    if direction == "mixed":
        return "randreadwrite" if random else "readwrite"
    return f"rand{direction}" if random else direction


def _cached(job: _Job, direction: str, bandwidth: float, moved: float) -> str | None:
    if job.engine not in _FILE_ENGINES or not job.known:
        return None
    size = job.size("size")
    waits = any(job.option(name) not in (None, "0", "none") for name in _WAITS)
    return cache_reason(
        job.direct,
        bandwidth,
        reread_bytes=size if direction == "read" and size and moved > size else None,
        unflushed_bytes=moved if direction == "write" and not waits else None,
    )


def _latency(
    source: Source, side: JsonValue
) -> tuple[Latency, list[tuple[float, int]] | None, dict[str, object]]:
    """The latency that counts, its histogram, and details of the other."""
    measured: dict[str, tuple[JsonValue, float]] = {}
    for name in _LATENCIES:
        for suffix, per_second in _PER_SECOND.items():
            node = side.get(name + suffix)
            if node and (node.optional_number("mean") or node.optional_number("max")):
                measured.setdefault(name, (node, per_second))
    if not measured:
        return Latency(), None, {}
    kind = next(name for name in _LATENCIES if name in measured)
    if "lat" in measured and _listed(measured["lat"][0]) and not _listed(measured[kind][0]):
        kind = "lat"
    node, per_second = measured[kind]
    bins = _bins(node)
    listed = _listed(node)
    percents = {}
    for percent in (50.0, 90.0, 99.0, 99.9):
        value: float | None = listed.get(percent)
        if value is None and bins:
            samples = node.optional_int("N")
            value = fio_bins.percentile(bins, percent, samples, extended=_is_extended(source))
        percents[percent] = None if value is None else value / per_second
    latency = Latency(
        mean=node.member("mean").number() / per_second,
        p50=percents[50.0],
        p90=percents[90.0],
        p99=percents[99.0],
        p999=percents[99.9],
        max=node.member("max").number() / per_second,
    )
    more: dict[str, object] = {
        "latency_of": "completion" if kind == "clat" else "the whole operation",
        "percentiles_seconds": {f"{at:g}": value / per_second for at, value in listed.items()},
    }
    if kind == "clat" and "lat" in measured:
        whole, per = measured["lat"]
        more["whole_latency_mean_seconds"] = whole.member("mean").number() / per
    return latency, [(value / per_second, count) for value, count in bins] or None, more


def _listed(node: JsonValue) -> dict[float, float]:
    """The percentiles that fio lists. fio 2 pads its list with 0.00."""
    listed = {}
    percentiles = node.get("percentile")
    for name, value in percentiles.members() if percentiles else ():
        try:
            percent = float(name)
        except ValueError:
            raise UnreadableFile("a percentile as the key", value.path) from None
        if 0 < percent <= 100:
            listed[percent] = value.number()
    return listed


def _bins(node: JsonValue) -> fio_bins.Bins:
    """The bins of JSON+. Keys are values, or before fio 2.21 bin numbers."""
    bins = node.get("bins")
    if not bins:
        return []
    by_place = "FIO_IO_U_PLAT_NR" in bins
    counts = {}
    for name, value in bins.members():
        if name.startswith("FIO_IO_U_PLAT_"):
            continue
        if not re.fullmatch(r"[0-9]{1,19}", name) or (by_place and len(name) > 4):
            raise UnreadableFile("a bin's value as the key", value.path)
        count = value.integer()
        if count:
            counts[fio_bins.value_of(int(name)) if by_place else int(name)] = count
    return sorted(counts.items())


def _is_extended(source: Source) -> bool:
    """Whether this version of fio compares percentiles in long doubles."""
    found = re.match(r"([0-9]{1,4})\.([0-9]{1,4})", source.version or "")
    return not found or (int(found[1]), int(found[2])) >= (3, 14)


def _count(text: str | None, otherwise: int) -> int | None:
    if text is None:
        return otherwise
    return int(text) if re.fullmatch(r"[0-9]{1,9}", text) else None


def _size(text: str, kb_base: str) -> int | None:
    """The bytes of a size: by default ``4k`` is 4096 and ``4ki`` 4000; kb_base=1000 swaps them."""
    found = _SIZE.fullmatch(text.strip())
    if not found:
        return None
    binary = (found[3] == "") == (kb_base != "1000")
    power = _POWERS.index(found[2].lower()) + 1 if found[2] else 0
    number = int(found[1]) * (1024 if binary else 1000) ** power
    return number if 0 < number < 1 << 63 else None
