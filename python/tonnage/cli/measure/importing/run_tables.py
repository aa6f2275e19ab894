"""Tables of past runs among the files of a command."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tonnage.base import core, formatting

NEEDED = ("job", "machine_type", "nodes", "seconds")
TABLE_SUFFIX = ".csv"
ENOUGH, HEADER_BYTES = 2, 4096
"""So many of its columns tell a table of runs from other files."""


def is_run_table(place: str) -> bool:
    """Whether this is a CSV file that begins as a table of runs does, whatever is wrong with it."""
    path = Path(place)
    if path.suffix.lower() != TABLE_SUFFIX or not path.is_file():
        return False
    with path.open("rb") as file:
        start = file.read(HEADER_BYTES).replace(b"\0", b"").lower()
    header = start.splitlines()[0] if start else b""
    return sum(name.encode() in header for name in NEEDED) >= ENOUGH


@contextmanager
def table_columns_named() -> Iterator[None]:
    """Adds to an error of an unknown CSV file which columns a table of past runs needs."""
    from tonnage.measure.importers.metric import UnknownFormat

    try:
        yield
    except UnknownFormat as why:
        if not why.file.lower().endswith(TABLE_SUFFIX):
            raise
        raise core.UsageError(
            f"{why}; a table of past runs needs columns {formatting.listing(NEEDED)}"
        ) from why
