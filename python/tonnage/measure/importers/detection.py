"""Importers: what other tools have measured, as readings in one vocabulary.

``read`` finds out by its content which tool wrote a file. Only fio's logs, which are nothing but
numbers, need their names. What cannot be read whole is refused in one line, and gives nothing.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Callable
from pathlib import Path

from msgspec import structs

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
from tonnage.measure.importers.metric import OPERATIONS, UnreadableFile, one_line
from tonnage.measure.trial.trial import utc_now

__all__ = ["OPERATIONS", "UnreadableFile", "one_line", "read", "to_measurement"]

# A file is held in memory, twice if it is compressed.
LARGEST_BYTES = 256 << 20
PART_BYTES = 1 << 20
IDENTITY_DIGITS = 16
"""By which two files are told from each other."""

_ZSTD = b"\x28\xb5\x2f\xfd"
_KNOWN = "a result of fio, IOR, mdtest, bonnie++, iozone, hdparm, iperf3, sysstat, elbencho or warp"

_OF_JSON: list[tuple[Callable[[JsonValue], bool], Callable[[list[JsonValue]], list[Metric]]]] = [
    (fio.matches, fio.read),
    (ior.matches_json, ior.read_json),
    (sysstat.matches, sysstat.read),
    (warp.matches, warp.read),
    (elbencho.matches, elbencho.read),
    (iperf3.matches, iperf3.read),
]
_OF_TEXT: list[tuple[Callable[[str], bool], Callable[[str], list[Metric]]]] = [
    (ior.matches, ior.read),
    (mdtest.matches, mdtest.read),
    (iozone.matches, iozone.read),
    (warp.matches_text, warp.read_text),
    (elbencho.matches_csv, elbencho.read_csv),
    (fio_terse.matches, fio_terse.read),
    (hdparm.matches, hdparm.read),
    (bonnie.matches, bonnie.read),
]

# What is known and not read, by what is in it, and what to do instead.
_UNREAD = {
    "(groupid=": "fio's JSON, terse output or logs, not its text (use --output-format=json+)",
    "- - - - - - - - - -\n[ ID]": "iperf3's JSON, not its text (use -J)",
    "-Per Chr-": "bonnie++'s CSV, not its text or HTML (use -q)",
}


def read(path: Path) -> list[Metric]:
    """The readings of a file that another tool wrote; there is at least one.

    Raises:
        Unreadable: The file is of no tool that is known here, or not whole; the message is one
            line and says what was expected, and where.
    """
    try:
        return _of_text(_text(_content(path)), path)
    except UnreadableFile as why:
        raise why.in_file(one_line(str(path))) from None
    except RecursionError:
        raise UnreadableFile("a reasonable depth", file=one_line(str(path))) from None


def to_measurement(path: Path, readings: list[Metric], *, command: list[str]) -> Measurement:
    """The readings of a file as a measurement; what the tool did not say of itself is not known.

    Its name is its content's: the same file, under whatever name and whenever it is imported, is
    the same measurement.
    """
    tools = sorted({reading.source.tool for reading in readings})
    measurement = Measurement(
        id=f"import-{hashlib.sha256(_content(path)).hexdigest()[:IDENTITY_DIGITS]}",
        kind="import",
        began_at=utc_now(),
        command=command,
        environment=None,
        settings={"file": one_line(str(path)), "tools": tools},
        stopping_rule="the tool's own",
        page_cache="as the tool used it: a reading says direct, cached, or nothing",
        trials=[],
        imported=readings,
    )
    return structs.replace(measurement, scorecard=scorecard([measurement]))


def _content(path: Path) -> bytes:
    """What the file holds, uncompressed."""
    try:
        with path.open("rb") as file:
            content = _limited(file.read)
    except (OSError, ValueError) as why:
        reason = why.strerror if isinstance(why, OSError) else str(why)
        raise UnreadableFile(f"a file that can be read ({reason})") from None
    if content.startswith(_ZSTD):
        content = _uncompressed(content)
    if not content.strip():
        raise UnreadableFile(f"{_KNOWN}, not an empty file")
    return content


def _limited(read_some: Callable[[int], bytes]) -> bytes:
    """All that a file holds, which may be anything: a device, or the zeros of a small file."""
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
        raise UnreadableFile("a whole zstd file") from None


def _text(content: bytes) -> str:
    """The text; bytes that are none are replaced (a path in another encoding is no obstacle)."""
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        return content.decode("utf-16", errors="replace")
    return content.decode("utf-8-sig", errors="replace")


def _of_text(text: str, path: Path) -> list[Metric]:
    if fio_logs.matches(text, path.name):
        return fio_logs.read(text, path.name)
    if document_start(text) is not None:
        held = parse_documents(text)
        for is_its, of_json in _OF_JSON:
            if is_its(held[0]):
                return of_json(held)
        raise UnreadableFile(f"{_KNOWN}, not {describe(held[0])}")
    for is_text_its, of_text in _OF_TEXT:
        if is_text_its(text):
            return of_text(text)
    for sign, instead in _UNREAD.items():
        if sign in text:
            raise UnreadableFile(instead)
    if fio_logs.looks_like_one(text):
        raise UnreadableFile(
            "a name that ends in _bw.N.log, _iops, _lat, _clat, _slat or _clat_hist"
        )
    raise UnreadableFile(_KNOWN)
