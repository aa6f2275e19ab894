"""The question: an operation, how many of them a second, how much data, and which clusters."""

import datetime
import math
from dataclasses import dataclass

from tonnage.catalog import OfferKind

FILL = 0.98
"""Data fill at most this share of a disk: a file system keeps 1 to 2 % for itself."""
LARGE_BYTES = 1 << 20
"""Operations of this size and more are limited by bytes a second, smaller ones by their number."""


@dataclass(frozen=True)
class Operation:
    name: str
    writes: bool
    block_bytes: int

    @property
    def is_small(self) -> bool:
        return self.block_bytes < LARGE_BYTES


OPERATIONS = {
    each.name: each
    for each in (
        Operation("read4k", False, 4 << 10),
        Operation("write4k", True, 4 << 10),
        Operation("read4m", False, 4 << 20),
        Operation("write4m", True, 4 << 20),
    )
}
"""At random places, as ``tonnage measure ops`` measures them."""


@dataclass(frozen=True, kw_only=True)
class OperationsQuestion:
    """``rate``: operations a second of all nodes together; ``data_bytes``: what they store."""

    operation: Operation
    rate: float
    data_bytes: int = 0
    min_nodes: int = 1
    max_nodes: int = 1_000
    most_usd_per_month: float = math.inf
    arch: str | None = None
    include: frozenset[OfferKind] = frozenset()
    """Kinds of offers that are otherwise left out."""
    today: datetime.date | None = None
    """From when prices may be too old; ``None``: it does not matter."""
