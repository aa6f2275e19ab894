"""What the driver of a MapReduce asks of its workers in addition to any two-pass job."""

from tonnage.cluster.protocol import Message
from tonnage.run.two_pass.messages import (
    PassOne,
    PassOneResult,
    PassTwo,
    pass_one_step,
    pass_two_step,
)


class MapReducePassOne(PassOne, frozen=True, kw_only=True):
    partitions: int
    first_rows: str | None
    """The first row of each partition but the first, as an Arrow stream in base64; None: hashed."""
    links: int
    """Connections and devices that hold a block at once."""


class Blocks(Message, frozen=True):
    """Rows in blocks of a partition, their bytes, and the sum of the blocks' CRC-32s."""

    records: int
    bytes: int
    checksum: int


class MapReducePassOneResult(PassOneResult, frozen=True, kw_only=True):
    rows: int
    """Rows that it sent."""
    given: list[Blocks]
    """What it sent, by partition."""
    came: list[Blocks]
    """What it received, by partition."""
    schemas: list[tuple[str, str]]
    """Schemas of the rows that it sent, in base64, and where each was first seen."""


class MapReducePassTwo(PassTwo, frozen=True, kw_only=True):
    schema: str
    """All columns, in base64."""


PASS_ONE = pass_one_step(MapReducePassOne, MapReducePassOneResult)
PASS_TWO = pass_two_step(MapReducePassTwo)
