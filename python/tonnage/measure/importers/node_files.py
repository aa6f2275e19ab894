"""Read the files of several nodes of one run, by sysstat's tools, in any of their formats."""

from collections.abc import Iterable
from pathlib import Path

from tonnage.measure.importers.detection import content_text
from tonnage.measure.importers.json_reader import document_start, parse_documents
from tonnage.measure.importers.metric import UnknownFormat, UnreadableFile, one_line
from tonnage.measure.importers.sysstat import documents, tables
from tonnage.measure.importers.sysstat.nodes import HostFile, ImportedNodes, to_nodes
from tonnage.measure.importers.sysstat.samples import HostSamples

_KNOWN = "text of sar or iostat, or sadf -d or -j"


def read_nodes(paths: Iterable[Path]) -> ImportedNodes:
    """The nodes of these files, and of the files below these directories.

    `UnreadableFile` says what was expected, and where.
    """
    files = []
    for path in paths:
        below = sorted(_files_below(path))
        if not below:
            raise UnreadableFile(_KNOWN, "any file of it", one_line(str(path)))
        for file in below:
            try:
                files += [HostFile(file, samples) for samples in _read(file)]
            except UnreadableFile as why:
                raise why.in_file(one_line(str(file))) from None
            except RecursionError:
                raise UnreadableFile(
                    "less deeply nested content", file=one_line(str(file))
                ) from None
    return to_nodes(files)


def _files_below(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    return [
        each
        for each in path.rglob("*")
        if each.is_file()
        and not any(part.startswith(".") for part in each.parts[len(path.parts) :])
    ]


def _read(file: Path) -> list[HostSamples]:
    text = content_text(file)
    if tables.matches(text):
        hosts = tables.read_tables(text)
    elif document_start(text) is not None:
        parsed = parse_documents(text)
        if not all(documents.matches(each) for each in parsed):
            raise UnreadableFile(_KNOWN)
        hosts = documents.read_documents(parsed)
    else:
        raise UnknownFormat(_KNOWN)
    if not hosts or all(host.is_empty for host in hosts):
        raise UnreadableFile("samples of cores, disks, interfaces or memory")
    return [host for host in hosts if not host.is_empty]
