"""A launch: the nodes that were rented for a plan, since when, and at what price.

It is written before and after each step, so after a killed launch it says what may exist. What AWS
lists, by the tags of all that is rented, takes precedence.
"""

from typing import ClassVar, Literal

from msgspec import field

from tonnage.base.records.base import Amount, Record, Seconds, Struct
from tonnage.base.records.plan import Candidate

LaunchStep = Literal[
    "asked",
    "preparing",
    "renting",
    "waiting",
    "installing",
    "starting",
    "screening",
    "ready",
    "ending",
    "down",
]
"""The current step; of a killed launch, the last."""


class Tariff(Struct, frozen=True, kw_only=True):
    """US dollars an hour of a node; machine and address by begun units of time, with a minimum.

    The price of spot machines moves: the usual one, and the most that is paid.
    """

    machine_usd_per_hour: Amount
    machine_most_usd_per_hour: Amount
    volumes_usd_per_hour: Amount
    granularity_seconds: Seconds
    least_seconds: Seconds
    address_usd_per_hour: Amount = 0.0


class RentedNode(Struct, frozen=True, kw_only=True):
    instance: str
    began_at: str
    inside: str | None = None  # Address among the nodes
    outside: str | None = None  # Address from elsewhere; ``None``: there is none
    ended_at: str | None = None  # ``None``: it is rented
    why: str | None = None  # Why it was ended before the others

    @property
    def is_rented(self) -> bool:
        return self.ended_at is None


class Launch(Record, frozen=True, kw_only=True):
    SCHEMA: ClassVar[str] = "tonnage.launch/1"

    name: str  # Tag of everything rented
    job: str
    region: str
    subnet: str
    candidate: Candidate
    spot: bool
    tariff: Tariff
    cap_usd: Amount | None
    began_at: str
    ends_at: str  # When everything ends by itself
    step: LaunchStep
    step_at: str
    nodes: list[RentedNode] = field(default_factory=list)
    unheard_since: str | None = None
    """When machines were requested, as long as the answer is unknown."""
    ready_at: str | None = None  # ``None``: it was not ready, or an earlier version recorded it
    address: str | None = None  # Of the Ray cluster; ``None``: there is none yet
    cost_usd: Amount = 0.0  # Until ``step_at``
    command: list[str] = field(default_factory=list)
    why: str | None = None  # Why it was ended, unless by request

    @property
    def rented(self) -> list[RentedNode]:
        """The nodes that are paid for; the first is Ray's head."""
        return [node for node in self.nodes if node.is_rented]
