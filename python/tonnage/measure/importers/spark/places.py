"""Where an application's data is, as the URLs in its log show it."""

import re
from collections.abc import Iterable

from tonnage.base.records.application import Source

STORES = {"s3", "s3a", "s3n", "gs", "abfs", "abfss", "wasb", "wasbs", "oss", "cos", "cosn", "obs"}
FILE_SYSTEMS = {"file", "hdfs", "viewfs", "maprfs", "alluxio"}
SCHEME = re.compile(r"\b([a-z][a-z0-9]*):/")
SCANNED = re.compile(rb'"Location"\s*:\s*"([^"]{0,4096})')
"""In the metadata of a plan's scan; a text, since a plan may be nested too deeply to be parsed."""
WRITTEN = re.compile(rb'"simpleString"\s*:\s*"Execute InsertIntoHadoopFs\w* ([^"\s]{0,4096})')


def place_of(texts: Iterable[str]) -> Source:
    """The kind of place that the URLs in these texts name, if it is one."""
    schemes = {scheme for text in texts for scheme in SCHEME.findall(text)}
    kinds: set[Source] = set()
    if schemes & STORES:
        kinds.add("objects")
    if schemes & FILE_SYSTEMS:
        kinds.add("files")
    return kinds.pop() if len(kinds) == 1 else "unknown"


def query_places(line: bytes) -> tuple[Source, Source]:
    """Where the query of an event reads and writes."""
    return _place(SCANNED.findall(line)), _place(WRITTEN.findall(line))


def _place(texts: list[bytes]) -> Source:
    return place_of(text.decode(errors="replace") for text in texts)
