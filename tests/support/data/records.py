"""Records for the tests, and what Python itself makes of them: sorting and sums without Tonnage."""

import random
import zlib
from collections.abc import Sequence
from pathlib import Path

from tonnage.run.sort.local import Layout


def blob(seed: int, length: int, alphabet: int = 256) -> bytes:
    """Random bytes of the first `alphabet` values."""
    table = bytes(value % alphabet for value in range(256))
    return random.Random(seed).randbytes(length).translate(table)


def cut(data: bytes, record_bytes: int) -> list[bytes]:
    """Data as records."""
    return [data[at : at + record_bytes] for at in range(0, len(data), record_bytes)]


def key_of(record: bytes, layout: Layout) -> bytes:
    """The key of a record."""
    return record[layout.key_offset : layout.key_offset + layout.key_bytes]


def checksum(records: Sequence[bytes]) -> str:
    """The sum of the records' CRC-32s as valsort prints it."""
    return f"{sum(map(zlib.crc32, records)):x}"


def parts(*directories: Path) -> list[Path]:
    """The output files of several directories in the order of their names."""
    found = [path for directory in directories for path in directory.glob("part-*")]
    return sorted(found, key=lambda path: path.name)


def content(paths: Sequence[Path]) -> bytes:
    """Files, one after the other."""
    return b"".join(path.read_bytes() for path in paths)
