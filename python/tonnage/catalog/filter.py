"""Filter offers; an unknown figure counts neither as small nor as large."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from operator import attrgetter

from tonnage.catalog.offer import Offer

Test = Callable[[Offer], bool | None]
"""Whether an offer matches; ``None`` where the deciding figure is unknown."""


@dataclass(frozen=True, kw_only=True)
class OfferFilter:
    """What an offer has to match; ``None`` matches all. Bytes, US dollars an hour on demand.

    The network figure is the baseline, since a burst does not last.
    """

    provider: str | None = None
    arch: str | None = None
    least_vcpus: float | None = None
    least_memory_bytes: int | None = None
    least_local_bytes: int | None = None
    least_network_bytes_per_second: float | None = None
    most_usd_per_hour: float | None = None

    def tests(self) -> dict[str, Test]:
        found: dict[str, Test] = {}
        provider, arch = self.provider, self.arch
        if provider is not None:
            found["provider"] = lambda offer: offer.provider == provider
        if arch is not None:
            found["architecture"] = lambda offer: None if offer.arch is None else offer.arch == arch
        for what, least, figure in (
            ("vCPUs", self.least_vcpus, "vcpus"),
            ("memory", self.least_memory_bytes, "memory_bytes"),
            (
                "baseline network bandwidth",
                self.least_network_bytes_per_second,
                "network.baseline_bytes_per_second",
            ),
        ):
            if least is not None:
                found[what] = _at_least(attrgetter(figure), least)
        local, usd = self.least_local_bytes, self.most_usd_per_hour
        if local is not None:
            found["local disks"] = lambda offer: _has_local(offer, local)
        if usd is not None:
            found["on-demand price"] = lambda offer: (
                None if offer.on_demand is None else offer.on_demand.usd_per_hour <= usd
            )
        return found


@dataclass(frozen=True)
class FilterResult:
    """The offers that match, and the number of undecided ones by unknown figure."""

    offers: tuple[Offer, ...]
    undecided: dict[str, int]


def filter_offers(offers: Iterable[Offer], wanted: OfferFilter) -> FilterResult:
    tests = wanted.tests()
    chosen = []
    undecided: dict[str, int] = {}
    for offer in offers:
        answers = {what: test(offer) for what, test in tests.items()}
        if False in answers.values():
            continue
        unknown = [what for what, answer in answers.items() if answer is None]
        if not unknown:
            chosen.append(offer)
        for what in unknown:
            undecided[what] = undecided.get(what, 0) + 1
    return FilterResult(tuple(chosen), undecided)


def _at_least(figure: Callable[[Offer], float | None], least: float) -> Test:
    def test(offer: Offer) -> bool | None:
        found = figure(offer)
        return None if found is None else found >= least

    return test


def _has_local(offer: Offer, least: int) -> bool | None:
    if (offer.local_bytes or 0) >= least:
        return True  # The known disks suffice, whatever the others are.
    return False if offer.all_disks_known else None
