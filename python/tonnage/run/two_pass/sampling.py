"""What nodes sample of the input before it is divided: each of its share, or of a lost one's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tonnage.run.two_pass.schedule import Split, assign_splits
from tonnage.run.two_pass.splits import split_json

if TYPE_CHECKING:
    from tonnage.run.two_pass.job_state import JobRun


def sample(job: JobRun, splits: Sequence[Split], chunks: int) -> list[Any]:
    """What nodes answer that sample so many chunks together, evenly spread over the input.

    Raises:
        Over: The input was changed.
        Unreadable: A part of it cannot be read any more.
    """
    total = sum(split.bytes for split in splits)
    answers: list[Any] = []
    left = list(range(len(splits)))
    while left:
        readers = set(job.pool.nodes)
        shares = assign_splits(splits, left, readers)
        asked = {
            node: {
                "splits": [split_json(splits[number]) for number in share],
                "chunks": -(-chunks * sum(splits[each].bytes for each in share) // total) or 1,
                "files": job.files(splits, share),
            }
            for node, share in shares.items()
        }
        ended = job.run_step("sample", asked)
        sampled: set[int] = set()
        for node, each in ended.items():
            if each.kind is None:
                answers.append(each.value)
                sampled.update(shares[node])
            else:
                job.refuse_changed(node, each)
                job.lost[node] = each.reason
                job.pool.lose(node, each.reason)
        left = [number for number in left if number not in sampled]
    return answers
