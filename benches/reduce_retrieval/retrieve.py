"""Retrieve all chunks of a folder without processing them; print the record as a line of JSON.

python retrieve.py URL CHUNK_BYTES RANGES_AT_ONCE|auto MEMORY_BYTES
"""

from __future__ import annotations

import json
import sys
from typing import Any

import tonnage
from tonnage.run.reduce.reduction import Reduction


class Nothing(Reduction[None]):
    """A reduction that drops its chunks."""

    def begin(self, known: Any) -> None:
        """Do nothing."""

    def local(self, rows: Any, into: None) -> None:
        """Do nothing."""

    def merge(self, one: None, other: None) -> None:
        """Do nothing."""


def main() -> None:
    """Run one retrieval."""
    url, chunk_bytes, threads, memory_bytes = sys.argv[1:]
    done = tonnage.reduce(
        Nothing(),
        url,
        dtype="u1",
        workers=1,
        chunk_bytes=None if chunk_bytes == "auto" else int(chunk_bytes),
        threads=None if threads == "auto" else int(threads),
        memory=int(memory_bytes),
    )
    print(json.dumps(done.record.to_json()))


if __name__ == "__main__":
    main()
