"""Build a profile from measurements: each offer's capacities as distributions over nodes and time.

`offer_matching` assigns measurements to offers, `rates` extracts rates of nodes, `variance` fits
distributions to them. This file combines them: for each offer it keeps the fastest method, drops
bursts that do not last, and turns the network of clusters of several sizes into its scaling.
Everything unused is listed with the reason.

A share is the ratio of measured to advertised figures, over all offers: its distribution treats
offers as clusters of nodes. There is one for the network, and one for the work of a core, where the
advertised figure is the number of vCPUs. Volumes have none, since the limit may be the link, the
volumes or what was bought for them. Local disks have none, since plans use no advertised figures
of theirs.

Finished runs become calibrations of their offers (`calibration`), whether or not their machines
were measured, and launches the starts of their providers (`starts`).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from msgspec import structs

from tonnage.base import formatting
from tonnage.base.records import Measurement
from tonnage.base.records.launch import Launch
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
    OfferName,
    match_offers,
    unused,
)
from tonnage.model.profiles.rates import (
    NodeRate,
    best_method,
    median_rate,
    node_medians,
    node_rates,
)
from tonnage.model.profiles.starts import provider_starts
from tonnage.model.profiles.variance import fit_over_times
from tonnage.model.run_phases import Run, name_of, nodes_of

TOGETHER = (
    ("local both", "local read", "local write"),
    ("volume read", "volume write"),
    ("object get",),
    ("object put",),
)
"""Resources that share a method; the first measured one of each group decides which is best."""
BURST = 1.1
"""Rates above this multiple of the advertised baseline are bursts, if a burst is advertised."""


@dataclass(frozen=True)
class AdvertisedRate:
    baseline: float  # Bytes a second; or the only figure
    peak: float | None = None


AdvertisedRates = Mapping[OfferName, Mapping[str, AdvertisedRate]]


def build_profile(
    measurements: Sequence[Measurement],
    advertised: AdvertisedRates,
    *,
    name: str,
    made_at: str,
    runs: Sequence[Run] = (),
    launches: Sequence[Launch] = (),
    assigned: OfferAssignments | None = None,
    volumes: bool = False,
    placement: bool = False,
) -> Profile:
    """Build the profile of all offers among these measurements, runs and launches, each given once.

    ``assigned`` are offers of machines that do not report theirs, and raise `OfferError` if they
    contradict the measurements. With ``volumes``, devices of an unknown model count as
    network-attached; ``placement``: nodes were close together.
    """
    assigned = assigned or OfferAssignments()
    hosts = {node for each in runs for node in nodes_of(each)}
    matched, left_out = match_offers(measurements, assigned, hosts)
    calibrated, unused_runs = calibrations(
        runs, {each.host: each.offer for each in matched}, assigned
    )
    starts, unused_launches = provider_starts(launches)
    left_out += unused_runs + unused_launches
    rates_by_offer: dict[OfferName, list[NodeRate]] = {each.offer: [] for each in matched}
    rates_by_offer |= {offer: [] for offer in calibrated if offer not in rates_by_offer}
    for each in matched:
        for rate in node_rates(each, volumes=volumes):
            if isinstance(rate, UnusedMeasurements):
                left_out.append(rate)
            else:
                rates_by_offer[each.offer].append(rate)
    offers, network_rates = [], {}
    cores: dict[str, list[list[float]]] = {}
    for offer, rates in sorted(rates_by_offer.items()):
        used, dropped = _usable(rates, advertised.get(offer, {}))
        left_out += dropped
        networks = used.pop("network", [])
        smallest = min((each.nodes for each in networks), default=0)
        baseline = [each for each in networks if each.nodes == smallest]
        of_network = {"network": baseline} if baseline else {}
        laws = [
            fit_over_times(resource, several, source=_source(several))
            for resource, several in sorted((used | of_network).items())
        ]
        if laws or offer in calibrated:
            offers.append(
                OfferProfile(
                    provider=offer[0],
                    type=offer[1],
                    placement=placement,
                    laws=laws,
                    scaling=_scaling(networks),
                    calibrations=calibrated.get(offer, []),
                )
            )
        for resource in filter(_is_core, used):
            cores.setdefault(resource, []).append(list(node_medians(used[resource]).values()))
        if baseline and "network" in advertised.get(offer, {}):
            network_rates[offer] = baseline
    shares = [_network_share(network_rates, advertised)] if network_rates else []
    shares += [_core_share(resource, of_offers) for resource, of_offers in sorted(cores.items())]
    return Profile(
        name=name,
        made_at=made_at,
        offers=offers,
        shares=shares,
        starts=starts,
        measurements=[each.id for each in measurements],
        runs=[name_of(each) for each in runs],
        launches=[each.name for each in launches],
        commands={each.id: each.command for each in measurements}
        | {name_of(each): each.command for each in runs},
        left_out=_by_reason(left_out),
    )


def _usable(
    rates: Sequence[NodeRate], figures: Mapping[str, AdvertisedRate]
) -> tuple[dict[str, list[NodeRate]], list[UnusedMeasurements]]:
    used: dict[str, list[NodeRate]] = {}
    dropped: list[UnusedMeasurements] = []
    networks = [each for each in rates if each.resource == "network"]
    methods = sorted({each.method for each in networks})
    # A job can choose the number of connections of a pair, but not its links.
    is_shuffle = all(method.startswith(ALL_TO_ALL) for method in methods)
    for resources in (*TOGETHER, ("network",)) if is_shuffle else TOGETHER:
        alike = [each for each in rates if each.resource in resources]
        if not alike:
            continue
        method = best_method(alike, resources)
        for each in alike:
            if each.method == method:
                used.setdefault(each.resource, []).append(each)
            else:
                why = f"{each.resource}, {each.method}; {method} was faster"
                dropped.append(unused(each.measurement, why))
    if len(methods) == 1:
        used["network"] = networks
    elif not is_shuffle:
        why = f"network: {formatting.listing(methods)} differ; use the measurements of only one"
        dropped += [unused(each.measurement, why) for each in networks]
    for each in rates:
        if _is_core(each.resource):
            used.setdefault(each.resource, []).append(each)
    for resource in list(used):
        if burst := _burst(resource, used[resource], figures.get(resource)):
            dropped += [unused(each.measurement, burst) for each in used.pop(resource)]
    return used, dropped


def _burst(resource: str, rates: Sequence[NodeRate], figure: AdvertisedRate | None) -> str | None:
    """Why these rates will not last, if they exceed the advertised baseline."""
    if figure is None or figure.peak is None or figure.peak <= figure.baseline:
        return None
    measured = median_rate(rates)
    if measured <= BURST * figure.baseline:
        return None
    return (
        f"{resource}: {formatting.rate(measured)} is a burst; the advertised baseline, which plans "
        f"use, is {formatting.rate(figure.baseline)}"
    )


def _source(rates: Sequence[NodeRate]) -> str:
    methods = dict.fromkeys(each.method for each in rates)
    names = dict.fromkeys(each.measurement for each in rates)
    return f"{formatting.listing(methods)}: {', '.join(names)}"


def _scaling(networks: Sequence[NodeRate]) -> NetworkScaling | None:
    """Bandwidth by cluster size, as a share of the smallest cluster's; none for a single size."""
    sizes = sorted({each.nodes for each in networks})
    if len(sizes) < 2:
        return None
    medians = [median_rate([each for each in networks if each.nodes == size]) for size in sizes]
    return NetworkScaling(
        points=[(size, each / medians[0]) for size, each in zip(sizes, medians, strict=True)],
        source=_source(networks),
    )


def _network_share(
    network_rates: Mapping[OfferName, Sequence[NodeRate]], advertised: AdvertisedRates
) -> CapacityDistribution:
    figures = {offer: advertised[offer]["network"].baseline for offer in network_rates}
    sources = [
        f"{offer[1]}: {formatting.rate(median_rate(rates))} of "
        f"{formatting.rate(figures[offer])} advertised"
        for offer, rates in network_rates.items()
    ]
    shares = [
        [rate / figures[offer] for rate in node_medians(rates).values()]
        for offer, rates in network_rates.items()
    ]
    return _over_offers("network", shares, "; ".join(sources))


def _core_share(resource: str, of_offers: Sequence[Sequence[float]]) -> CapacityDistribution:
    source = f"a core of {formatting.several(len(of_offers), 'offer')}, used for any offer's vCPU"
    return _over_offers(resource, of_offers, source)


def _is_core(resource: str) -> bool:
    return resource.startswith("cpu ")


def _over_offers(
    resource: str, of_offers: Sequence[Sequence[float]], source: str
) -> CapacityDistribution:
    """The distribution of unmeasured offers, from the nodes of each measured one."""
    fitted = fit_distribution(resource, of_offers, evidence="advertised", source=source)
    source_nodes = f"nodes of {formatting.several(len(of_offers), 'offer')}"
    if len(of_offers) > 1:
        return structs.replace(fitted, spread_source=f"{source_nodes}, and how offers differ")
    return structs.replace(
        fitted,
        fleet_spread=UNKNOWN_SPREAD,
        spread_source=f"{source_nodes}; the difference of offers is assumed",
    )


def _by_reason(left_out: Iterable[UnusedMeasurements]) -> list[UnusedMeasurements]:
    found: dict[str, dict[str, None]] = {}
    for each in left_out:
        found.setdefault(each.why, {}).update(dict.fromkeys(each.measurements))
    return [UnusedMeasurements(measurements=list(names), why=why) for why, names in found.items()]
