"""The first rows of a sort on a cluster: which partitions have them, and what these are to hold.

Readers count the rows of each partition, gathered or not. A sample tells which partitions to gather
at first. Once every split was read, the counts tell which have the first rows: a round gathers what
is missing of those, and pass two cuts the last of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import accumulate

from tonnage.run.two_pass.job_spec import Event
from tonnage.run.two_pass.schedule import Total


def partition_rows(events: Sequence[Event]) -> list[Total]:
    """The rows of each partition in the splits that were read so far.

    A round reads either splits that were counted before, or others (`two_pass.schedule`).
    """
    rows: list[Total] = []
    counted: set[int] = set()
    for event in events:
        if event["event"] == "round":
            reads = {split for node in event["outcomes"] for split in event["reads"].get(node, ())}
            if reads and counted.isdisjoint(reads):
                counted |= reads
                rows = sum_by_partition([rows, [Total(*each) for each in event["partition_rows"]]])
    return rows


def sum_by_partition(counts: Iterable[Sequence[Total]]) -> list[Total]:
    """The sums of counts of all partitions; an empty one is of no rows."""
    return [sum(of, Total()) for of in zip(*filter(None, counts), strict=True)]


def first_partitions(rows: Sequence[Total], limit: int) -> int:
    """How many partitions have the first ``limit`` rows."""
    ends = accumulate(each.records for each in rows)
    return next((number for number, end in enumerate(ends, 1) if end >= limit), len(rows))


def last_share(rows: Sequence[Total], limit: int) -> tuple[int, int] | None:
    """The last partition, and how many of its rows are wanted; None if all."""
    last = first_partitions(rows, limit) - 1
    left = limit - sum(each.records for each in rows[:last])
    return (last, left) if rows and left < rows[last].records else None
