"""What catalogs advertise of offers' networks and links to volumes, as plans take it."""

from __future__ import annotations

from collections.abc import Sequence

from tonnage.catalog import Catalog, Offer
from tonnage.model.profiles.build import AdvertisedRate, AdvertisedRates
from tonnage.plan.machines import sustained_network


def advertised_figures(catalogs: Sequence[Catalog]) -> AdvertisedRates:
    """The figures of every offer; of several catalogs' the first one's."""
    found: dict[tuple[str, str], dict[str, AdvertisedRate]] = {}
    for catalog in catalogs:
        for offer in catalog.offers:
            found.setdefault((offer.provider, offer.type), _figures(offer))
    return found


def _figures(offer: Offer) -> dict[str, AdvertisedRate]:
    network, link = sustained_network(offer), offer.volume_link
    figures = {}
    if network:
        figures["network"] = AdvertisedRate(network, offer.network.peak_bytes_per_second)
    if link.baseline_bytes_per_second:
        of_link = AdvertisedRate(link.baseline_bytes_per_second, link.most_bytes_per_second)
        figures |= {"volume read": of_link, "volume write": of_link}
    return figures
