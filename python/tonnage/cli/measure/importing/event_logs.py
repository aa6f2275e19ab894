"""Event logs among the files of a command: in files, directories and object stores."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, cast

from tonnage.cli.options.validate import usage_errors
from tonnage.run.storage.object_store import ObjectStoreOptions, is_url, parse_url

if TYPE_CHECKING:
    from tonnage.base.records.application import Application
    from tonnage.measure.importers.spark.log_files import EventLog
    from tonnage.run.storage.sources import InputFile, Sources

STORE_READ_BYTES = 16 << 20
"""Requested at once from an object store, by several concurrent requests."""


def is_event_log(place: str) -> bool:
    """Whether this is read as an event log, by its content; a URL always is."""
    from tonnage.measure.importers.spark.log_files import is_rolling_log, local_log
    from tonnage.measure.importers.spark.read import is_event_log

    if is_url(place):
        return True
    path = Path(place)
    if path.is_dir():
        return is_rolling_log(path)
    # The start of a pipe could not be read again.
    return path.is_file() and is_event_log(local_log(path).files[0])


def read_application(place: str, store: ObjectStoreOptions) -> Application:
    """The application of an event log; `UsageError` if it cannot be read."""
    from tonnage.measure.importers.metric import UnreadableFile
    from tonnage.measure.importers.spark.log_files import local_log
    from tonnage.measure.importers.spark.read import read_event_log

    with usage_errors(UnreadableFile):
        log = _stored_log(place, store) if is_url(place) else local_log(Path(place))
        return read_event_log(log)


def _stored_log(url: str, store: ObjectStoreOptions) -> EventLog:
    from tonnage.measure.importers.spark.log_files import EventLog, LogFile, rolling_log
    from tonnage.run.storage.sources import Sources

    parse_url(url)
    sources = Sources(store, readers=1)
    files = [LogFile(each.name, _opener(sources, each)) for each in sources.find(url)]
    if [each.name for each in files] == [url]:
        return EventLog(url, files)
    # A store lists all objects below a prefix, and other logs may be there.
    directory = url.rstrip("/")
    return rolling_log(url, [each for each in files if each.name.rpartition("/")[0] == directory])


def _opener(sources: Sources, file: InputFile) -> Callable[[], BinaryIO]:
    def open_buffered() -> BinaryIO:
        raw = cast("io.RawIOBase", sources.open(file))
        return io.BufferedReader(raw, STORE_READ_BYTES)

    return open_buffered
