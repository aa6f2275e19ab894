"""Match measurements with offers: the machine reports its offer, or the user assigns it."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from tonnage.base import formatting
from tonnage.base.records import Measurement
from tonnage.base.records.profile import UnusedMeasurements

OfferName = tuple[str, str]  # Provider and machine type
IMPORTED = "imported from another tool, which does not state the machine"
DEBUG = "made with a debug build, whose speeds are meaningless"


def unused(name: str, why: str) -> UnusedMeasurements:
    return UnusedMeasurements(measurements=[name], why=why)


class OfferError(ValueError):
    """An assignment contradicts what machines report; the message is one line."""


@dataclass(frozen=True)
class MatchedMeasurement:
    measurement: Measurement
    host: str
    offer: OfferName
    assigned: bool  # Whether the user assigned the offer, rather than the machine reporting it


@dataclass(frozen=True)
class OfferAssignments:
    default: OfferName | None = None
    by_host: Mapping[str, OfferName] = field(default_factory=dict)


def match_offers(
    measurements: Sequence[Measurement], assigned: OfferAssignments, ran: Collection[str] = ()
) -> tuple[list[MatchedMeasurement], list[UnusedMeasurements]]:
    """Each measurement with its offer, and those without; ``ran`` are hosts of finished jobs.

    An assignment to a host overrides what its machine reports; the default must agree with it.
    Otherwise, and for a host without a measurement or run, this raises `OfferError`.
    """
    hosts = {each.environment.host for each in measurements if each.environment} | {*ran}
    for host in assigned.by_host:
        if host not in hosts:
            known = formatting.listing(sorted(hosts)) if hosts else "none"
            raise OfferError(
                f"{host}: no measurement or run is from this machine; known machines: {known}"
            )
    found, left = [], []
    for each in measurements:
        here = each.environment
        if here is None:
            left.append(unused(each.id, IMPORTED))
        elif here.debug_build:
            left.append(unused(each.id, DEBUG))
        elif here.host in assigned.by_host:
            found.append(
                MatchedMeasurement(each, here.host, assigned.by_host[here.host], assigned=True)
            )
        elif here.provider and here.machine_type:
            reported = (here.provider, here.machine_type)
            if assigned.default not in (None, reported):
                raise OfferError(
                    f"{'/'.join(assigned.default or ())} conflicts with {here.host}, which "
                    f"reports {'/'.join(reported)}; assign offers only to hosts that report none, "
                    "each as HOST=PROVIDER/TYPE"
                )
            found.append(MatchedMeasurement(each, here.host, reported, assigned=False))
        elif assigned.default:
            found.append(MatchedMeasurement(each, here.host, assigned.default, assigned=True))
        else:
            why = (
                f"{here.host} does not report its offer; assign it one, as in "
                f"{here.host}=PROVIDER/TYPE"
            )
            left.append(unused(each.id, why))
    return found, left
