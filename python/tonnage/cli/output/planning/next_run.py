"""Which runs to make next: what they tell, and what they cost."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from tonnage.base import formatting
from tonnage.cli.output.candidates import usd

if TYPE_CHECKING:
    from tonnage.plan.past_runs.next_run import ProposedRun

NOTHING = "No run is expected to make the choice better; plan with what is known."


def next_run_lines(proposed: Sequence[ProposedRun]) -> Iterator[str]:
    if not proposed:
        yield NOTHING
        return
    for number, each in enumerate(proposed, start=1):
        machine = each.cluster.machine.offer.type
        yield (
            f"{number}. {each.cluster.nodes} x {machine}: about "
            f"{formatting.duration(each.seconds)}, {usd(each.usd)}; the cluster chosen afterwards "
            f"is expected to cost {each.gain * 100:.2g} % less than the one chosen now"
        )
    yield (
        "Add the run to the table, import it again, and repeat; three runs are usually enough "
        "(docs/guide/your-own-job.md)."
    )


def next_run_document(proposed: Sequence[ProposedRun]) -> dict[str, Any]:
    return {
        "next": [
            {
                "provider": each.cluster.machine.offer.provider,
                "machine_type": each.cluster.machine.offer.type,
                "nodes": each.cluster.nodes,
                "seconds": each.seconds,
                "usd": each.usd,
                "gain": each.gain,
            }
            for each in proposed
        ]
    }
