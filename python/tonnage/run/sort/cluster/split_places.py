"""What the reader of a split has to know of the rest of the input: its file's number, and quotes.

A split of text may begin within quotes, where newlines end no record. Nodes count the quotes of
their splits, and whether a split begins within quotes is the parity of all before it in its file.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Sequence
from itertools import pairwise

from tonnage.run.sort.cluster.table_messages import SplitPlace
from tonnage.run.storage.object_store import is_url
from tonnage.run.storage.sources import containing_input
from tonnage.run.two_pass.output.names import is_part
from tonnage.run.two_pass.schedule import Split


def is_whole(split: Split) -> bool:
    """Whether it is a whole file, and so begins and ends outside quotes."""
    return split.bytes == split.file_bytes


def quoted_splits(splits: Sequence[Split], odd: Collection[int]) -> list[int]:
    """The splits that begin within quotes, if those of the numbers ``odd`` have odd quotes."""
    quoted: list[int] = []
    for number in range(1, len(splits)):
        if _follows(splits, number) and (number - 1 in quoted[-1:]) != (number - 1 in odd):
            quoted.append(number)
    return quoted


def split_places(
    splits: Sequence[Split], quoted: Collection[int], numbers: Sequence[int] | None
) -> list[SplitPlace]:
    """The place of each split, with the ``numbers`` of their files if rows keep their order."""
    return [
        SplitPlace(
            file_number=None if numbers is None else numbers[number],
            begins_quoted=number in quoted,
            ends_quoted=number + 1 in quoted,
        )
        for number in range(len(splits))
    ]


def first_splits(splits: Sequence[Split], numbers: Sequence[int]) -> list[int]:
    """The first split of each file, in the order of the files' ``numbers``."""
    places = sorted(range(len(splits)), key=lambda one: (numbers[one], splits[one].offset))
    return [
        one for at, one in enumerate(places) if not at or numbers[places[at - 1]] != numbers[one]
    ]


def file_numbers(splits: Sequence[Split], roots_of: Callable[[str], Sequence[str]]) -> list[int]:
    """The number of each split's file in the order of the input: as on one machine.

    Inputs come as they were given, files of directories by name; those of one output, which
    was written to several directories, are one sequence. ``roots_of`` gives a node's inputs.
    """
    of_output = all(is_part(split.path) for split in splits)

    def place(split: Split) -> tuple[int, list[str], tuple[str, ...]]:
        if of_output:
            return 0, [os.path.basename(split.path), split.path], split.holders
        parts = [split.path] if is_url(split.path) else split.path.split("/")
        return containing_input(roots_of(split.holders[0]), split.path), parts, split.holders

    places = [place(split) for split in splits]
    order = sorted(range(len(splits)), key=places.__getitem__)
    numbers, number = [0] * len(splits), 0
    for before, this in pairwise(order):
        number += places[before] != places[this]
        numbers[this] = number
    return numbers


def _follows(splits: Sequence[Split], number: int) -> bool:
    """Whether a split continues the file of the one before it."""
    before, split = splits[number - 1], splits[number]
    return split.offset > 0 and (before.path, before.holders) == (split.path, split.holders)
