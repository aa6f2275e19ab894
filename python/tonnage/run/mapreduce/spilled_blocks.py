"""What a node received of each partition in a round: a file next to the round's scratch index.

A restarted node reads it, so that pass two can check what it reads back.
"""

from tonnage.base.records.base import Count, StoredFile, Struct


class ReceivedBlocks(Struct, frozen=True):
    records: Count
    bytes: Count
    checksum: Count
    """Sum of the blocks' CRC-32s."""


class SpilledBlocks(StoredFile, frozen=True):
    came: list[ReceivedBlocks]
    """By partition."""
    spans: list[Count]
    """Bytes of memory that each partition takes as a whole."""
