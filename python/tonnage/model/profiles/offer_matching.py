"""Which offer a measurement was taken on: the machine tells, or the user says."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from tonnage.base import formatting
from tonnage.base.records import Measurement
from tonnage.base.records.profile import UnusedMeasurements

OfferName = tuple[str, str]
"""Provider and machine type."""
IMPORTED = "imported from another tool, which does not say on which machine it measured"
DEBUG = "made with a debug build, whose speeds say nothing"


class OfferError(ValueError):
    """What was said of machines does not fit what is known of them; says why in one line."""


@dataclass(frozen=True)
class MatchedMeasurement:
    """A measurement, and the offer that it was taken on."""

    measurement: Measurement
    host: str
    offer: OfferName
    said: bool
    """Whether that was said, and not told by the machine."""


@dataclass(frozen=True)
class OfferAssignments:
    """What the user says of machines."""

    default: OfferName | None = None
    by_host: Mapping[str, OfferName] = field(default_factory=dict)


def match_offers(
    measurements: Sequence[Measurement], said: OfferAssignments, ran: Collection[str] = ()
) -> tuple[list[MatchedMeasurement], list[UnusedMeasurements]]:
    """Each measurement with its offer, and those that have none.

    What is said of a host goes before what its machine tells; what is said of all has to agree
    with it.

    Args:
        measurements: Of any kind, each once.
        said: What the user says.
        ran: Hosts that have done a job.

    Raises:
        OfferError: It does not, or neither a measurement nor a run is of a host that something is
            said of.
    """
    hosts = {each.environment.host for each in measurements if each.environment} | {*ran}
    for host in said.by_host:
        if host not in hosts:
            known = formatting.listing(sorted(hosts)) if hosts else "none"
            raise OfferError(f"{host}: no measurement or run is of that host; there are {known}")
    found, left = [], []
    for each in measurements:
        here = each.environment
        if here is None:
            left.append(UnusedMeasurements(measurements=[each.id], why=IMPORTED))
        elif here.debug_build:
            left.append(UnusedMeasurements(measurements=[each.id], why=DEBUG))
        elif here.host in said.by_host:
            found.append(MatchedMeasurement(each, here.host, said.by_host[here.host], said=True))
        elif here.provider and here.machine_type:
            told = (here.provider, here.machine_type)
            if said.default not in (None, told):
                raise OfferError(
                    f"{'/'.join(said.default or ())}: {here.host} says that it is {'/'.join(told)}: "
                    "leave it out, or write HOST=PROVIDER/TYPE for the hosts that do not say"
                )
            found.append(MatchedMeasurement(each, here.host, told, said=False))
        elif said.default:
            found.append(MatchedMeasurement(each, here.host, said.default, said=True))
        else:
            left.append(
                UnusedMeasurements(
                    measurements=[each.id],
                    why=f"which offer {here.host} is, it does not say "
                    f"(tonnage profile ... --offer {here.host}=PROVIDER/TYPE)",
                )
            )
    return found, left
