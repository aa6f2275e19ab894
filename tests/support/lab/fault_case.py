"""One case of the fault matrix, drawn from a seed: which fault, on which machine, and when."""

from __future__ import annotations

import random
from dataclasses import dataclass

FAULTS = (
    "kill agent",
    "kill raylet",
    "cut link",
    "disk full",
    "disk error",
    "hang",
    "kill driver",
)
PASSES = (1, 2)
"""Fourteen seeds in a row have all faults in both passes, since 7 and 2 have no common divisor."""
LOSES = {"kill raylet", "cut link", "disk error"}
"""What takes a machine's own input with it."""
ENDS = {"kill agent", "hang"}
"""What ends a machine's agent."""
HEADS_TOO = {"kill agent", "disk full", "hang"}
"""Ray's head, on which the driver is, is spared what would end it."""


@dataclass(frozen=True)
class Case:
    """A case."""

    seed: int
    fault: str
    in_pass: int
    share: float
    """Of the bytes that the pass writes, those that are written when it happens."""
    node: int
    other: int
    """The other end, if only the link between two is cut."""
    is_whole: bool
    """The whole machine is killed, not only Ray's process; its link to all is cut, not to one."""
    durability: str
    has_own_input: bool
    """Each machine reads what it alone has; else all have the same."""
    left: float
    """Of a disk that fails, what still answers: that many of its first blocks."""

    def __str__(self) -> str:
        more = ""
        if self.fault in ("kill raylet", "cut link") and not self.is_whole:
            more = f" to {self.other}" if self.fault == "cut link" else " alone"
        if self.fault == "disk error":
            more = f" from {self.left:.0%} on"
        return (
            f"seed {self.seed}: {self.fault}{more}, node {self.node}, at {self.share:.0%} of pass "
            f"{self.in_pass}, {self.durability}, {'own' if self.has_own_input else 'shared'} input"
        )

    @property
    def may_lose(self) -> bool:
        """Whether it may take with it what nobody else has."""
        return self.has_own_input and self.fault in LOSES

    @property
    def is_felt(self) -> bool:
        """Whether what is done next shows it.

        A disk, or one link, may not be needed any more, and an agent without Ray's process runs for
        a while: it may have ended before.
        """
        return self.fault in ENDS or (self.fault in ("cut link", "kill raylet") and self.is_whole)

    @property
    def threshold(self) -> float:
        """How many times the input machines have written when it happens."""
        if self.in_pass == PASSES[0]:
            return self.share
        return 1 + self.share * (2 if self.durability == "replicated" else 1)


def drawn(seed: int, nodes: int) -> Case:
    """The case of a seed, on so many machines of which the first is Ray's head."""
    draw = random.Random(seed)
    fault = FAULTS[seed % len(FAULTS)]
    node = draw.randrange(0 if fault in HEADS_TOO else 1, nodes)
    return Case(
        seed=seed,
        fault=fault,
        in_pass=PASSES[seed % len(PASSES)],
        share=draw.uniform(0.1, 0.8),
        node=node,
        other=draw.choice([each for each in range(1, nodes) if each != node]),
        is_whole=draw.random() < 0.5,
        durability=draw.choice(["none", "replicated"]),
        has_own_input=draw.random() < 0.4,
        left=draw.uniform(0.05, 0.9),
    )
