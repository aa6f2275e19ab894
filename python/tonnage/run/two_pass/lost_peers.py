"""Which peers a node could not exchange data with, from how its step ended.

Peers notice a broken connection long before a cluster manager notices a lost machine.
"""

import re
from collections.abc import Sequence
from typing import Any

from tonnage.cluster.failure_kinds import Failure
from tonnage.cluster.protocol import StepResult
from tonnage.run.two_pass.messages import WorkReport


def unreachable_peers(result: StepResult[Any], nodes: Sequence[str]) -> list[str]:
    """The nodes that one which has ended a step could not exchange data with."""
    if result.failure in (Failure.FAILED, Failure.REFUSED):
        return blamed_peers(result.reason, nodes)
    report = result.value
    links = [*report.sent, *report.received] if isinstance(report, WorkReport) else []
    return [nodes[link.peer] for link in links if link.lost is not None]


def blamed_peers(why: str, nodes: Sequence[str]) -> list[str]:
    """The nodes that an error of the network names; endpoints are in the order of nodes."""
    numbers = {int(number) for number in re.findall(r"\bendpoint (\d+) \(", why)}
    return [nodes[number] for number in sorted(numbers) if number < len(nodes)]
