"""Read an event log: its lines become events, and those an application.

A line whose event does not matter is not parsed. A last line that is incomplete is what an
application leaves that is still running, or was killed; any other mistake refuses the log.
"""

import msgspec

from tonnage.base.records.application import Application
from tonnage.base.records.base import RecordError
from tonnage.measure.importers.metric import UnreadableFile
from tonnage.measure.importers.spark.application import ApplicationReader
from tonnage.measure.importers.spark.codecs import Truncated
from tonnage.measure.importers.spark.events import EVENTS, NAME, QueryStart
from tonnage.measure.importers.spark.log_files import EventLog, LogFile, lines
from tonnage.measure.importers.spark.places import query_places

HEAD_BYTES = 200
"""Where the name of an event is found in its line."""
EXPECTED = "an event of a Spark log"
QUERY_START = b"SparkListenerSQLExecutionStart"
INCOMPLETE = "The log ends early: what happened after its last complete line is unknown."
_DECODERS = {name: msgspec.json.Decoder(kind) for name, kind in EVENTS.items()}
_QUERY = msgspec.json.Decoder(QueryStart)


def is_event_log(file: LogFile) -> bool:
    """Whether a file's content begins as Spark's event logs do; false for unreadable files."""
    try:
        with file.open() as opened:
            first = next(lines(opened), b"")
    except (OSError, ValueError, Truncated, UnreadableFile):
        return False
    return NAME.match(first[:HEAD_BYTES]) is not None


def read_event_log(log: EventLog) -> Application:
    """The application of an event log.

    Raises:
        UnreadableFile: It is no such log, is damaged, or no task has ended in it.
    """
    reader = ApplicationReader()
    is_complete = True
    for number, file in enumerate(log.files, start=1):
        try:
            is_complete = _read_file(file, reader, is_last=number == len(log.files))
        except UnreadableFile as why:
            raise why.in_file(file.name) from None
        except OSError as why:
            raise UnreadableFile(f"a readable file ({why.strerror})", file=file.name) from None
    try:
        application = reader.to_record()
    except UnreadableFile as why:
        raise why.in_file(log.name) from None
    if not is_complete:
        application = msgspec.structs.replace(application, notes=[*application.notes, INCOMPLETE])
    try:
        return Application.from_json(application.to_json())
    except RecordError as why:  # Sums may be out of range where each amount is not.
        raise UnreadableFile(f"plausible amounts ({why})", file=log.name) from None


def _read_file(file: LogFile, reader: ApplicationReader, is_last: bool) -> bool:
    """Whether the file is complete; `UnreadableFile` for a mistake that is not at the log's end."""
    mistake: UnreadableFile | None = None
    number = 0
    with file.open() as opened:
        try:
            for number, line in enumerate(lines(opened), start=1):
                if mistake is not None:
                    raise mistake
                mistake = _read_line(line, reader, number)
        except Truncated:
            if not is_last:
                raise UnreadableFile("a complete file before the log's last one") from None
            return False
    if mistake is not None and (number == 1 or not is_last):
        raise mistake
    return mistake is None


def _read_line(line: bytes, reader: ApplicationReader, number: int) -> UnreadableFile | None:
    """Take the event of a line; returns its mistake, if it has one."""
    name = NAME.match(line[:HEAD_BYTES])
    if name is None:
        return UnreadableFile(EXPECTED, f"line {number}") if line.strip() else None
    try:
        if name[1] == QUERY_START:
            reader.add_query(_QUERY.decode(line).id, query_places(line))
        elif decoder := _DECODERS.get(name[1]):
            reader.add(decoder.decode(line))
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as why:
        return UnreadableFile(EXPECTED, f"line {number} ({why})")
    return None
