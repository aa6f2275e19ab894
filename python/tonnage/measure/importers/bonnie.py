"""Import bonnie++'s CSV of all versions: 1.03, 1.96, 1.97, 1.98 and 2.00.

The number of fields determines the layout. Plus signs mean that a test ended too soon for a figure:
it has no rate then. bonnie++'s text output ends with the same line.
"""

import re
from collections.abc import Iterator, Mapping

from tonnage.base.records import Latency, Metric, Source
from tonnage.measure.importers.metric import UnreadableFile, build_metric, require_any
from tonnage.measure.importers.text import integer, lines, number, size_bytes
from tonnage.measure.trial.cache_detection import cache_reason

TOOL = "bonnie++"

_RESULTS = ("putc", "put_block", "rewrite", "getc", "get_block", "seeks")
_FILE_RESULTS = ("seq_create", "seq_stat", "seq_del", "ran_create", "ran_stat", "ran_del")


def _with_cpu(names: tuple[str, ...]) -> list[str]:
    return [field for name in names for field in (name, f"{name}_cpu")]


_LATENCIES = [f"{name}_latency" for name in _RESULTS + _FILE_RESULTS]
_FILES = ["num_files", "max_size", "min_size", "num_dirs", "file_chunk_size"]
_HEAD = ["format_version", "bonnie_version", "name", "concurrency", "seed", "file_size"]
_BODY = [*_with_cpu(_RESULTS), *_FILES, *_with_cpu(_FILE_RESULTS), *_LATENCIES]

# By number of fields; 1.98 added the number of seeks and of seeking processes.
_LAYOUTS = {
    27: ["name", "file_size", *_with_cpu(_RESULTS), "num_files", *_with_cpu(_FILE_RESULTS)],
    48: [*_HEAD, "io_chunk_size", *_BODY],
    50: [*_HEAD, "io_chunk_size", "seeks_done", "seek_processes", *_BODY],
}
_OLD = 27
_LINE = re.compile(r"[12]\.[0-9]{1,3},[12]\.[0-9a-z.]{1,6},")
_OLD_LINE = re.compile(r"[^,]*,[0-9]+[kKmMgG]?(?::[0-9kKmMgG:]+)?(?:,(?:[0-9.]*|\++)){12},")

_OPERATIONS = {
    "putc": ("write", "byte"),
    "put_block": ("write", "block"),
    "rewrite": ("rewrite", "block"),
    "getc": ("read", "byte"),
    "get_block": ("read", "block"),
}
_FILE_OPERATIONS = {"create": "create", "stat": "stat", "del": "remove"}
_ORDERS = {"seq": "sequential", "ran": "random"}
_LATENCY = re.compile(r"([0-9]{1,15})(us|ms|s)")
_SECONDS = {"us": 1e-6, "ms": 1e-3, "s": 1.0}
_BLOCK = 8192  # bonnie++'s chunk by default.


def matches(text: str) -> bool:
    return any(_is_result(line) for _, line in lines(text))


def read(text: str) -> list[Metric]:
    results = (
        metric
        for at, line in lines(text)
        if _is_result(line)
        for metric in _from_line(line.split(","), f"line {at}")
    )
    return require_any(results, "a bonnie++ result")


def _is_result(line: str) -> bool:
    is_old = line.count(",") == _OLD - 1 and _OLD_LINE.match(line)
    return bool(_LINE.match(line) or is_old)


def _from_line(fields: list[str], where: str) -> Iterator[Metric]:
    layout = _LAYOUTS.get(len(fields))
    if layout is None:
        counts = ", ".join(map(str, _LAYOUTS))
        raise UnreadableFile(f"a bonnie++ line of {counts} fields, not {len(fields)}", where)
    row = dict(zip(layout, fields, strict=True))
    source = Source(tool=TOOL, version=row.get("bonnie_version"))
    processes = row.get("concurrency", "")
    concurrency = integer(processes, "the concurrency", where) if processes else None
    # "1G", "1G:4k"; megabytes if it has no unit.
    file_size, _, chunk = row["file_size"].partition(":")
    chunk = row.get("io_chunk_size") or chunk
    file_bytes = size_bytes(f"{file_size}M" if file_size.isdecimal() else file_size)
    details = {
        "machine": row["name"],
        "file_bytes": file_bytes,
        "format_version": row.get("format_version"),
    }
    block = (size_bytes(chunk) if chunk else _BLOCK) or None
    for name in (*_OPERATIONS, "seeks"):
        yield from _from_file_test(source, row, name, block, concurrency, details, where)
    files = {"machine": row["name"], "files": row["num_files"] or None}
    files |= {name: row.get(name) or None for name in ("max_size", "min_size", "num_dirs")}
    for name in _FILE_RESULTS:
        order, _, action = name.partition("_")
        value, more = _rate(row, name, where)
        if value is not None or more:
            yield build_metric(
                source=source,
                operation=_FILE_OPERATIONS[action],
                concurrency=concurrency,
                operations_per_second=value,
                latency_seconds=_latency(row, name, where),
                details={**files, **more, "test": name, "order": _ORDERS[order]},
            )


def _from_file_test(
    source: Source,
    row: dict[str, str],
    name: str,
    block: int | None,
    concurrency: int | None,
    details: Mapping[str, object],
    where: str,
) -> Iterator[Metric]:
    """A test on the large file. Seeks have processes of their own, some of which write."""
    value, more = _rate(row, name, where)
    if value is None and not more:
        return
    latency = _latency(row, name, where)
    if name == "seeks":
        seekers = row.get("seek_processes", "")
        yield build_metric(
            source=source,
            operation="seek",
            block_bytes=block,
            concurrency=integer(seekers, "the number of seeking processes", where)
            if seekers
            else None,
            operations_per_second=value,
            latency_seconds=latency,
            details={**details, **more, "test": name},
        )
        return
    operation, by = _OPERATIONS[name]
    bandwidth = None if value is None else value * 1024
    yield build_metric(
        source=source,
        operation=operation,
        block_bytes=1 if by == "byte" else block,
        concurrency=concurrency,
        bandwidth_bytes_per_second=bandwidth,
        latency_seconds=latency,
        cached=cache_reason(None, bandwidth),
        details={**details, **more, "test": name},
    )


def _rate(row: dict[str, str], name: str, where: str) -> tuple[float | None, dict[str, object]]:
    """A test's rate and further details; neither for a test that was skipped."""
    text, cpu = row[name], row[f"{name}_cpu"]
    if text in ("", "0"):
        return None, {}
    if set(text) == {"+"}:
        return None, {"too_fast_to_measure": True}
    share = None if not cpu or set(cpu) == {"+"} else number(cpu, f"the CPU use of {name}", where)
    return number(text, name, where), {"cpu_percent": share}


def _latency(row: dict[str, str], name: str, where: str) -> Latency:
    """The longest latency, which bonnie++ prints since 1.96."""
    text = row.get(f"{name}_latency", "")
    if not text or set(text) == {"+"}:
        return Latency()
    found = _LATENCY.fullmatch(text)
    if not found:
        raise UnreadableFile(f"the latency of {name} in us, ms or s", where)
    return Latency(max=int(found[1]) * _SECONDS[found[2]])
