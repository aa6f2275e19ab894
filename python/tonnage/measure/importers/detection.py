"""Detect which tool wrote a file, by its content, and read its metrics.

Only fio's logs, which contain nothing but numbers, need their file names. An incomplete file gives
a one-line error and no metrics.
"""

import hashlib
import io
from collections.abc import Callable
from pathlib import Path

from msgspec import structs

from tonnage.base.clock import utc_now
from tonnage.base.credibility import scorecard
from tonnage.base.records import Measurement, Metric
from tonnage.measure.importers import (
    bonnie,
    elbencho,
    fio,
    fio_logs,
    fio_terse,
    hdparm,
    ior,
    iozone,
    iperf3,
    mdtest,
    sysstat,
    warp,
)
from tonnage.measure.importers.json_reader import (
    JsonValue,
    describe,
    document_start,
    parse_documents,
)
from tonnage.measure.importers.metric import OPERATIONS, UnknownFormat, UnreadableFile, one_line

__all__ = ["OPERATIONS", "UnreadableFile", "one_line", "read", "to_measurement"]

# A file is kept in memory, twice if it is compressed.
LARGEST_BYTES = 256 << 20
PART_BYTES = 1 << 20
IDENTITY_DIGITS = 16
"""Length of the content's hash in an id."""

_ZSTD = b"\x28\xb5\x2f\xfd"
_BINARY_SAMPLES = (b"\x96\xd5", b"\xd5\x96")
"""The start of sysstat's sa files, of either byte order."""
_KNOWN = "a result of fio, IOR, mdtest, bonnie++, iozone, hdparm, iperf3, sysstat, elbencho or warp"

_JSON_IMPORTERS: list[
    tuple[Callable[[JsonValue], bool], Callable[[list[JsonValue]], list[Metric]]]
] = [
    (fio.matches, fio.read),
    (ior.matches_json, ior.read_json),
    (sysstat.matches, sysstat.read),
    (warp.matches, warp.read),
    (elbencho.matches, elbencho.read),
    (iperf3.matches, iperf3.read),
]
_TEXT_IMPORTERS: list[tuple[Callable[[str], bool], Callable[[str], list[Metric]]]] = [
    (ior.matches, ior.read),
    (mdtest.matches, mdtest.read),
    (iozone.matches, iozone.read),
    (warp.matches_text, warp.read_text),
    (elbencho.matches_csv, elbencho.read_csv),
    (fio_terse.matches, fio_terse.read),
    (sysstat.matches_text, sysstat.read_text),
    (hdparm.matches, hdparm.read),
    (bonnie.matches, bonnie.read),
]

# Known formats that are not read, by a text in them, and what to use instead.
_INSTEAD = {
    "(groupid=": "fio's JSON, terse output or logs, not its text; use --output-format=json+",
    "- - - - - - - - - -\n[ ID]": "iperf3's JSON, not its text; use -J",
    "-Per Chr-": "bonnie++'s CSV, not its text or HTML; use -q",
}


def read(path: Path) -> list[Metric]:
    """Read a file's metrics, at least one; `UnreadableFile` says what was expected, and where."""
    try:
        return _from_text(content_text(path), path)
    except UnreadableFile as why:
        raise why.in_file(one_line(str(path))) from None
    except RecursionError:
        raise UnreadableFile("less deeply nested content", file=one_line(str(path))) from None


def content_text(path: Path) -> str:
    """The text in a file, which may be compressed; bytes that are not text are replaced."""
    content = _content(path)
    if content.startswith(_BINARY_SAMPLES):
        raise UnreadableFile(
            "the text of sadc's binary samples; convert them with sadf -j FILE -- -A"
        )
    return _text(content)


def to_measurement(path: Path, metrics: list[Metric], *, command: list[str]) -> Measurement:
    """Make a measurement; its id is a hash of the content, whatever the file's name and time."""
    tools = sorted({metric.source.tool for metric in metrics})
    measurement = Measurement(
        id=f"import-{hashlib.sha256(_content(path)).hexdigest()[:IDENTITY_DIGITS]}",
        kind="import",
        began_at=utc_now(),
        command=command,
        environment=None,
        settings={"file": one_line(str(path)), "tools": tools},
        stopping_rule="the tool's own",
        page_cache="as stated by the tool; see direct and cached of each result",
        trials=[],
        imported=metrics,
    )
    return structs.replace(measurement, scorecard=scorecard([measurement]))


def _content(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            content = _limited(file.read)
    except (OSError, ValueError) as why:
        reason = why.strerror if isinstance(why, OSError) else str(why)
        raise UnreadableFile(f"a readable file ({reason})") from None
    if content.startswith(_ZSTD):
        content = _uncompressed(content)
    if not content.strip():
        raise UnreadableFile(f"{_KNOWN}, not an empty file")
    return content


def _limited(read_some: Callable[[int], bytes]) -> bytes:
    """Read everything, up to a limit: a file may be a device, or a small one that expands."""
    parts: list[bytes] = []
    total = 0
    while part := read_some(PART_BYTES):
        parts.append(part)
        total += len(part)
        if total > LARGEST_BYTES:
            raise UnreadableFile(f"a file of at most {LARGEST_BYTES >> 20} MiB")
    return b"".join(parts)


def _uncompressed(content: bytes) -> bytes:
    import pyarrow as pa

    try:
        with pa.input_stream(io.BytesIO(content), compression="zstd") as stream:
            return _limited(stream.read)
    except (OSError, ValueError):
        raise UnreadableFile("a complete zstd file") from None


def _text(content: bytes) -> str:
    """Decode the text; bytes that are not text are replaced, as in paths of another encoding."""
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        return content.decode("utf-16", errors="replace")
    return content.decode("utf-8-sig", errors="replace")


def _from_text(text: str, path: Path) -> list[Metric]:
    if fio_logs.matches(text, path.name):
        return fio_logs.read(text, path.name)
    if document_start(text) is not None:
        parsed = parse_documents(text)
        for matches, read_json in _JSON_IMPORTERS:
            if matches(parsed[0]):
                return read_json(parsed)
        raise UnreadableFile(f"{_KNOWN}, not {describe(parsed[0])}")
    for matches_text, read_text in _TEXT_IMPORTERS:
        if matches_text(text):
            return read_text(text)
    for mark, instead in _INSTEAD.items():
        if mark in text:
            raise UnreadableFile(instead)
    if fio_logs.looks_like_one(text):
        raise UnreadableFile(
            "the file name of a fio log, which ends in _bw.N.log, _iops, _lat, _clat, _slat or "
            "_clat_hist"
        )
    raise UnknownFormat(_KNOWN)
