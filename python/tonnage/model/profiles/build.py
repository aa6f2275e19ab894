"""From measurements to a profile: what each offer carries, as laws over its nodes and over time.

`offers` says which offer a measurement was taken on, `rates` what it says of its node, `times` how
that becomes a law. Here they are put together: of each offer the manner that carried most is kept,
bursts that will not last are not, and the network of fleets of several sizes becomes its scaling.
What is not used is told, with the reason; nothing is left out silently.

A share is what measured offers reached of their advertised figures. Nodes of an offer vary, and
offers differ: the law is that of nodes with offers for its fleets. The network has one, and a
core's work, whose figure is the number of vCPUs: of volumes it is not known whether the link, the
volumes or what was bought for them was the limit, and of local disks nothing is advertised that
plans use.

Finished runs become calibrations of their offers (`runs`), whether their machines were measured or
not.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from msgspec import structs

from tonnage.base import formatting
from tonnage.base.records import Measurement
from tonnage.base.records.network_rounds import ALL_TO_ALL
from tonnage.base.records.profile import (
    CapacityDistribution,
    NetworkScaling,
    OfferProfile,
    Profile,
    UnusedMeasurements,
)
from tonnage.model.capacity import UNKNOWN_SPREAD
from tonnage.model.profiles.calibration import calibrations
from tonnage.model.profiles.fit import fit_distribution
from tonnage.model.profiles.offer_matching import (
    OfferAssignments,
    OfferError,
    OfferName,
    match_offers,
)
from tonnage.model.profiles.rates import (
    NodeRate,
    best_method,
    median_rate,
    node_medians,
    node_rates,
)
from tonnage.model.profiles.variance import fit_over_times
from tonnage.model.run_phases import Run, name_of, nodes_of

__all__ = [
    "AdvertisedRate",
    "AdvertisedRates",
    "OfferAssignments",
    "OfferError",
    "OfferName",
    "Run",
    "build_profile",
    "name_of",
]

TOGETHER = (
    ("local both", "local read", "local write"),
    ("volume read", "volume write"),
    ("object get",),
    ("object put",),
)
"""Resources that are had in one manner; the first that was measured tells which is best."""
BURST = 1.1
"""What exceeds so many times what is advertised to last is a burst, if one is advertised."""


@dataclass(frozen=True)
class AdvertisedRate:
    """What is advertised of a resource, in bytes a second."""

    baseline: float
    """What a plan counts on: the baseline, or the only figure that there is."""
    peak: float | None = None
    """What it may be for a while."""


AdvertisedRates = Mapping[OfferName, Mapping[str, AdvertisedRate]]
"""Of each offer figures by resource, as far as there are some."""


def build_profile(
    measurements: Sequence[Measurement],
    advertised: AdvertisedRates,
    *,
    name: str,
    made_at: str,
    runs: Sequence[Run] = (),
    assigned: OfferAssignments | None = None,
    volumes: bool = False,
    placement: bool = False,
) -> Profile:
    """What these measurements say of offers.

    Args:
        measurements: Of any kind, each once.
        advertised: What offers are said to carry.
        name: The profile's.
        made_at: Now, ISO 8601.
        runs: Records of finished jobs, each once.
        said: Which offers machines are that do not tell.
        volumes: Whether devices that do not tell what they are, are network-attached volumes.
        placement: Whether nodes were placed close together.

    Raises:
        OfferError: What is said does not fit the measurements.
    """
    assigned = assigned or OfferAssignments()
    ran = {node for each in runs for node in nodes_of(each)}
    known, left = match_offers(measurements, assigned, ran)
    shown, without = calibrations(runs, {each.host: each.offer for each in known}, assigned)
    left += without
    of_offers: dict[OfferName, list[NodeRate]] = {each.offer: [] for each in known}
    of_offers |= {offer: [] for offer in shown if offer not in of_offers}
    for each in known:
        for found in node_rates(each, volumes=volumes):
            if isinstance(found, UnusedMeasurements):
                left.append(found)
            else:
                of_offers[each.offer].append(found)
    offers, reached = [], {}
    cores: dict[str, list[list[float]]] = {}
    for offer, all_rates in sorted(of_offers.items()):
        kept, dropped = _kept(all_rates, advertised.get(offer, {}))
        left += dropped
        networks = kept.pop("network", [])
        baseline = [each for each in networks if each.nodes == _smallest(networks)]
        of_network = {"network": baseline} if baseline else {}
        laws = [_law(resource, found) for resource, found in sorted((kept | of_network).items())]
        if laws or offer in shown:
            offers.append(
                OfferProfile(
                    provider=offer[0],
                    type=offer[1],
                    placement=placement,
                    laws=laws,
                    scaling=_scaling(networks),
                    calibrations=shown.get(offer, []),
                )
            )
        for resource in filter(_of_a_core, kept):
            cores.setdefault(resource, []).append(list(node_medians(kept[resource]).values()))
        if baseline and "network" in advertised.get(offer, {}):
            reached[offer] = baseline
    shares = [_network_share(reached, advertised)] if reached else []
    shares += [_core(resource, rates_of) for resource, rates_of in sorted(cores.items())]
    return Profile(
        name=name,
        made_at=made_at,
        offers=offers,
        shares=shares,
        measurements=[each.id for each in measurements],
        runs=[name_of(each) for each in runs],
        commands={each.id: each.command for each in measurements}
        | {name_of(each): each.command for each in runs},
        left_out=_by_reason(left),
    )


def _kept(
    found: Sequence[NodeRate], figures: Mapping[str, AdvertisedRate]
) -> tuple[dict[str, list[NodeRate]], list[UnusedMeasurements]]:
    """The rates of each resource that an offer is planned with; and the others, with the reason."""
    kept: dict[str, list[NodeRate]] = {}
    left: list[UnusedMeasurements] = []
    networks = [each for each in found if each.resource == "network"]
    manners = sorted({each.method for each in networks})
    # How many connections a pair had is a job's to choose; what links they had is not.
    chosen = all(manner.startswith(ALL_TO_ALL) for manner in manners)
    for resources in (*TOGETHER, ("network",)) if chosen else TOGETHER:
        alike = [each for each in found if each.resource in resources]
        if not alike:
            continue
        manner = best_method(alike, resources)
        for each in alike:
            if each.method == manner:
                kept.setdefault(each.resource, []).append(each)
            else:
                why = f"{each.resource}, {each.method}: {manner} carried more"
                left.append(UnusedMeasurements(measurements=[each.measurement], why=why))
    if len(manners) == 1:
        kept["network"] = networks
    elif not chosen:
        why = f"network: {formatting.listing(manners)} are not alike: give the measurements of one"
        left += [UnusedMeasurements(measurements=[each.measurement], why=why) for each in networks]
    for each in found:
        if _of_a_core(each.resource):
            kept.setdefault(each.resource, []).append(each)
    for resource in list(kept):
        if burst := _burst(resource, kept[resource], figures.get(resource)):
            left += [
                UnusedMeasurements(measurements=[e.measurement], why=burst)
                for e in kept.pop(resource)
            ]
    return kept, left


def _burst(resource: str, found: Sequence[NodeRate], figure: AdvertisedRate | None) -> str | None:
    """Why these rates will not last, if they are more than is advertised to."""
    if figure is None or figure.peak is None or figure.peak <= figure.baseline:
        return None
    seen = median_rate(found)
    if seen <= BURST * figure.baseline:
        return None
    return (
        f"{resource}: {formatting.rate(seen)} is a burst, since {formatting.rate(figure.baseline)} is "
        "advertised to last, and plans count on what lasts"
    )


def _law(resource: str, found: Sequence[NodeRate]) -> CapacityDistribution:
    return fit_over_times(resource, found, source=_source(found))


def _source(found: Sequence[NodeRate]) -> str:
    """How, and in which measurements."""
    manners = dict.fromkeys(each.method for each in found)
    names = dict.fromkeys(each.measurement for each in found)
    return f"{formatting.listing(manners)}: {', '.join(names)}"


def _smallest(networks: Sequence[NodeRate]) -> int:
    return min((each.nodes for each in networks), default=0)


def _scaling(networks: Sequence[NodeRate]) -> NetworkScaling | None:
    """The share of the smallest fleet's bandwidth that nodes of each had; of one size none."""
    sizes = sorted({each.nodes for each in networks})
    if len(sizes) < 2:
        return None
    middles = [median_rate([each for each in networks if each.nodes == size]) for size in sizes]
    return NetworkScaling(
        points=[(size, each / middles[0]) for size, each in zip(sizes, middles, strict=True)],
        source=_source(networks),
    )


def _network_share(
    reached: Mapping[OfferName, Sequence[NodeRate]], advertised: AdvertisedRates
) -> CapacityDistribution:
    """The share of the network's advertised figure that nodes reached."""
    figures = {offer: advertised[offer]["network"].baseline for offer in reached}
    said = [
        f"{offer[1]}: {formatting.rate(median_rate(found))} of {formatting.rate(figures[offer])} advertised"
        for offer, found in reached.items()
    ]
    shares = [
        [rate / figures[offer] for rate in node_medians(found).values()]
        for offer, found in reached.items()
    ]
    return _over_offers("network", shares, "; ".join(said))


def _core(resource: str, rates_of: Sequence[Sequence[float]]) -> CapacityDistribution:
    """What a core does, taken for any offer's vCPU."""
    source = f"a core of {formatting.several(len(rates_of), 'offer')}, taken for any offer's vCPU"
    return _over_offers(resource, rates_of, source)


def _of_a_core(resource: str) -> bool:
    """Whether it is what a core does of a stage's work in a second."""
    return resource.startswith("cpu ")


def _over_offers(
    resource: str, rates_of: Sequence[Sequence[float]], source: str
) -> CapacityDistribution:
    """The law of offers that nobody measured, from what each measured one's nodes reached."""
    made = fit_distribution(resource, rates_of, evidence="advertised", source=source)
    said = f"nodes of {formatting.several(len(rates_of), 'offer')}"
    if len(rates_of) > 1:
        return structs.replace(made, spread_source=f"{said}, and how offers differ")
    return structs.replace(
        made,
        fleet_spread=UNKNOWN_SPREAD,
        spread_source=f"{said}; what offers differ by is assumed",
    )


def _by_reason(left: Iterable[UnusedMeasurements]) -> list[UnusedMeasurements]:
    """Those that were left out for the same reason, together."""
    found: dict[str, dict[str, None]] = {}
    for each in left:
        found.setdefault(each.why, {}).update(dict.fromkeys(each.measurements))
    return [UnusedMeasurements(measurements=list(names), why=why) for why, names in found.items()]
