"""What the driver of a table sort asks of its workers in addition to any two-pass job."""

from typing import Any

from tonnage.cluster.protocol import Message, Step
from tonnage.run.two_pass.job_dir.schemas import Bound
from tonnage.run.two_pass.messages import (
    PassOne,
    PassOneResult,
    PassTwo,
    Sample,
    SampleResult,
    SplitToRead,
    Sum,
    pass_one_step,
    pass_two_step,
)

FormatConfig = dict[str, Any]
"""The format, and what rows are sorted by, as the core takes it."""


class LookAtFormat(Sample, frozen=True, kw_only=True):
    others: list[SplitToRead]
    """Of the files behind the first that the same nodes have: the first may be empty."""


class LookAtColumns(Sample, frozen=True, kw_only=True):
    format: FormatConfig


class SplitPlace(Message, frozen=True, kw_only=True):
    """What the reader of a split has to know of the rest of the input."""

    file_number: int | None
    """Among all files; none unless rows keep their order."""
    begins_quoted: bool
    ends_quoted: bool


class CountQuotes(Sample, frozen=True, kw_only=True):
    format: FormatConfig
    split_bytes: int
    """Of what is read at once."""
    numbers: list[int]
    """Of the splits."""


class SampleKeys(Sample, frozen=True, kw_only=True):
    format: FormatConfig
    split_bytes: int
    places: list[SplitPlace]


class TablePassOne(PassOne, frozen=True, kw_only=True):
    format: FormatConfig
    split_bytes: int
    block_bytes: int
    row_bytes: int
    """About how many a row has."""
    bounds: list[Bound]
    room_bytes: int
    """About how much comes to the node."""
    places: list[SplitPlace]


class TablePassOneResult(PassOneResult, frozen=True, kw_only=True):
    rows_bytes: int
    """Of the rows that it read."""
    partition_rows: list[Sum]
    """The rows that it read of each partition, if not all are wanted."""


class TablePassTwo(PassTwo, frozen=True, kw_only=True):
    format: FormatConfig
    block_bytes: int
    row_bytes: int
    last_share: tuple[int, int] | None
    """The partition of which only the first rows are wanted, and how many."""


LOOK_AT_FORMAT = Step("look_at_format", LookAtFormat, SampleResult)
LOOK_AT_COLUMNS = Step("look_at_columns", LookAtColumns, SampleResult)
COUNT_QUOTES = Step("count_quotes", CountQuotes, SampleResult)
SAMPLE_KEYS = Step("sample", SampleKeys, SampleResult)
PASS_ONE = pass_one_step(TablePassOne, TablePassOneResult)
PASS_TWO = pass_two_step(TablePassTwo)
