"""The manifest of an output: its parts in order, and their totals."""

from typing import Annotated, Literal

from msgspec import Meta

from tonnage.base.records.base import Count, StoredFile

Checksum = Annotated[str, Meta(pattern="^[0-9a-f]+$")]


class Manifest(StoredFile, frozen=True):
    """``_tonnage.json`` of an output."""

    format: Literal["tonnage.output/1"]
    records: Count
    bytes: Count
    parts: list[str]
    checksum: Checksum | None = None
    """Sum of the records' CRC-32s, if they are known."""
