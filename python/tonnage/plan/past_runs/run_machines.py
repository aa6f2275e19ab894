"""What the catalogs know of the machines of runs: cores and their speed, memory, disks, network.

Data of a cluster is on its local disks, if it has any of known size, else on volumes behind the
machine's link, unless the run says which.
Where nobody published a rate, a usual one is assumed; a machine of unknown memory is refused.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
from msgspec import structs

from tonnage.catalog import Catalog, CatalogError, Offer
from tonnage.catalog.published.core_speeds import family_of
from tonnage.model.past_runs.clusters import REFERENCE_SPEED, Clusters

VCPU_LINK, LEAST_LINK = 15.625e6, 50e6
"""Bytes a second that a machine writes to volumes, for each vCPU and at least, where nobody
published its link: what AWS states of the sizes of c3, m3, r3 and i2, and what the smallest of
them write over their network."""
LOCAL_SSD = 400e6
"""Bytes a second of a local disk whose rate nobody published."""
USUAL_NETWORK = 0.125e9
"""Bytes a second of a machine of up to four vCPUs whose network nobody published."""
THREADS_OF_CORE = 2
VOLUMES = "volumes"


@dataclass
class Machines:
    """Machine types of catalogs, each with a number, and their families."""

    catalogs: Sequence[Catalog]
    _types: dict[tuple[str, str], int] = field(default_factory=dict)
    _families: dict[tuple[str, str], int] = field(default_factory=dict)

    @property
    def families(self) -> int:
        """How many have a number of their own."""
        return MOST_FAMILIES

    def offer(self, provider: str, machine_type: str, disks: str = "") -> Offer:
        """The newest catalog's, without local disks if runs had their data on volumes.

        Raises:
            CatalogError: No catalog has it.
        """
        for catalog in reversed(self.catalogs):
            if catalog.provider == provider:
                for offer in catalog.offers:
                    if offer.type == machine_type:
                        if offer.memory_bytes is None:
                            raise CatalogError(
                                f"the memory of {machine_type} of {provider} is unknown; remove "
                                "its runs"
                            )
                        return structs.replace(offer, disks=()) if disks == VOLUMES else offer
        raise CatalogError(
            f"no catalog has {machine_type} of {provider}; tonnage catalog ls lists them; remove "
            "its runs"
        )

    def clusters(self, some: Iterable[tuple[Offer, int]]) -> Clusters:
        """Clusters of these machines and numbers of nodes."""
        offers, nodes = zip(*some, strict=True)
        return Clusters(
            nodes=np.array(nodes, dtype=np.float64),
            vcpus=np.array([_vcpus(each) for each in offers]),
            cores=np.array([_cores(each) for each in offers]),
            memory_bytes=np.array([float(each.memory_bytes or 0) for each in offers]),
            disk_bytes_per_second=np.array([_disk_rate(each) for each in offers]),
            network_bytes_per_second=np.array([_network_rate(each) for each in offers]),
            machine_types=np.array(
                [self._number(self._types, (each.provider, each.type)) for each in offers]
            ),
            families=np.array(
                [
                    self._number(
                        self._families, (each.provider, family_of(each.provider, each.type))
                    )
                    % MOST_FAMILIES
                    for each in offers
                ]
            ),
        )

    @staticmethod
    def _number(known: dict[tuple[str, str], int], name: tuple[str, str]) -> int:
        return known.setdefault(name, len(known))


MOST_FAMILIES = 64
"""Families whose cores' speeds differ; of more, some share theirs."""


def _vcpus(offer: Offer) -> float:
    return offer.vcpus or THREADS_OF_CORE * (offer.cores or 1.0)


def _cores(offer: Offer) -> float:
    """In cores of the reference."""
    if offer.core_speed is None:
        return _vcpus(offer)
    return (offer.cores or _vcpus(offer) / THREADS_OF_CORE) * offer.core_speed / REFERENCE_SPEED


def _disk_rate(offer: Offer) -> float:
    if known := [each for each in offer.disks or () if each.total_bytes]:
        read, write = offer.local_read_bytes_per_second, offer.local_write_bytes_per_second
        if read and write:
            return math.sqrt(read * write)
        if all(each.kind != "hdd" for each in known):
            return LOCAL_SSD * sum(each.count or 1 for each in known)
    link = offer.volume_link
    usual = max(VCPU_LINK * _vcpus(offer), LEAST_LINK)
    return link.baseline_bytes_per_second or link.most_bytes_per_second or usual


def _network_rate(offer: Offer) -> float:
    """Between the baseline and the peak, which is a burst: their geometric mean."""
    network = offer.network
    rates = [
        rate for rate in (network.baseline_bytes_per_second, network.peak_bytes_per_second) if rate
    ]
    if not rates:
        return USUAL_NETWORK * max(_vcpus(offer) / 4, 1)
    return float(np.exp(np.mean(np.log(rates))))
