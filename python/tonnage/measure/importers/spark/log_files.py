"""The files of an event log and their lines: one file, or the parts of a rolling log.

A rolling log is a directory ``eventlog_v2_<application>`` of parts ``events_<n>_<application>``; a
compacted part, whose name ends in ``.compact``, replaces all parts up to its number
(`RollingEventLogFilesFileReader`). Spark writes one JSON object a line.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import BinaryIO

from tonnage.measure.importers.metric import UnreadableFile, one_line
from tonnage.measure.importers.spark.codecs import decompressed

LONGEST_LINE = 64 << 20
"""Bytes; Spark's longest lines are query plans, of some megabytes."""
PART = re.compile(r"events_(\d{1,9})_.+")
COMPACTED = ".compact"


@dataclass(frozen=True)
class LogFile:
    """A file of an event log, wherever it is."""

    name: str
    open: Callable[[], BinaryIO]


@dataclass(frozen=True)
class EventLog:
    """An event log; its files are in the order of their events."""

    name: str
    files: list[LogFile]


def is_rolling_log(directory: Path) -> bool:
    """Whether a directory has parts of a rolling log."""
    try:
        return any(PART.fullmatch(each.name) for each in directory.iterdir())
    except OSError:
        return False


def local_log(path: Path) -> EventLog:
    """The log of a file or a directory; `UnreadableFile` if a directory is no rolling log."""
    name = one_line(str(path))
    if not path.is_dir():
        return EventLog(name, [_local(path)])
    try:
        files = [_local(each) for each in path.iterdir()]
    except OSError as why:
        raise UnreadableFile(f"a readable directory ({why.strerror})", file=name) from None
    return rolling_log(name, files)


def rolling_log(name: str, files: Iterable[LogFile]) -> EventLog:
    """The log of a directory's files; `UnreadableFile` if it is no rolling log."""
    parts: dict[int, LogFile] = {}
    compacted = 0
    for file in sorted(files, key=lambda each: COMPACTED in each.name):
        if number := PART.fullmatch(file.name.rpartition("/")[2]):
            parts[int(number[1])] = file
            if COMPACTED in file.name:
                compacted = max(compacted, int(number[1]))
    if not parts:
        raise UnreadableFile(
            "the parts of one rolling event log in a directory (events_1_..., ...)", file=name
        )
    numbers = [number for number in sorted(parts) if number >= compacted]
    for before, after in pairwise(numbers):
        if after > before + 1:
            raise UnreadableFile(
                f"all parts of a rolling event log, but events_{before + 1}_... is missing",
                file=name,
            )
    return EventLog(name, [parts[number] for number in numbers])


def lines(file: BinaryIO) -> Iterator[bytes]:
    """The lines of a file, without their ends; the last may lack one.

    Raises:
        Truncated: The compressed stream ends early; what it had was given before.
        UnreadableFile: The file is damaged, or has a line of an implausible length.
    """
    pieces: list[bytes] = []
    length = 0
    for chunk in decompressed(file):
        first, *others = chunk.split(b"\n")
        pieces.append(first)
        length += len(first)
        if length > LONGEST_LINE:
            raise UnreadableFile(f"lines of at most {LONGEST_LINE >> 20} MiB")
        if others:
            yield b"".join(pieces)
            yield from others[:-1]
            pieces = others[-1:]
            length = len(pieces[0])
    if rest := b"".join(pieces):
        yield rest


def _local(path: Path) -> LogFile:
    return LogFile(one_line(str(path)), lambda: path.open("rb"))
