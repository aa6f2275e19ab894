"""Fill in what a catalog leaves unknown of an offer with what others published of its type.

A catalog's own figures win. Rates of networks are not filled in: what a type gets changes over the
years. But a figure that is EFA's is lowered to that of IP.
"""

from msgspec import structs

from tonnage.catalog.offer import Disks, Network, Offer, VolumeLink
from tonnage.catalog.published.burstable_vcpus import baseline_vcpus
from tonnage.catalog.published.core_speeds import core_speed
from tonnage.catalog.published.disk_rates import disk_rates
from tonnage.catalog.published.ip_bandwidths import ip_bandwidth
from tonnage.catalog.published.machine_types import UNKNOWN, MachineType, machine_type
from tonnage.catalog.published.network_bursts import network_burst, possible_burst
from tonnage.catalog.published.volume_links import volume_link


def fill_in(offer: Offer) -> Offer:
    known = machine_type(offer.provider, offer.type) or UNKNOWN
    speed = core_speed(offer.provider, offer.type)
    return structs.replace(
        offer,
        cores=offer.cores or known.cores,
        processor=offer.processor or known.processor,
        accelerators=known.accelerators if offer.accelerators is None else offer.accelerators,
        current=known.current if offer.current is None else offer.current,
        disks=_with_rates(_with_published_disks(offer.disks, known), offer),
        volume_link=_with_published_link(offer),
        network=_with_published_burst(offer, _of_ip(offer)),
        baseline_vcpus=baseline_vcpus(offer.provider, offer.type),
        core_speed=speed.sorting if speed else None,
        core_speed_source=speed.source if speed else None,
    )


def _of_ip(offer: Offer) -> Network:
    network, ip = offer.network, ip_bandwidth(offer.provider, offer.type)
    if ip is None:
        return network
    baseline, peak = (
        None if rate is None else min(rate, ip.bytes_per_second)
        for rate in (network.baseline_bytes_per_second, network.peak_bytes_per_second)
    )
    return structs.replace(
        network,
        baseline_bytes_per_second=baseline,
        peak_bytes_per_second=peak,
        ip_source=ip.source,
    )


def _with_published_burst(offer: Offer, network: Network) -> Network:
    baseline, peak = network.baseline_bytes_per_second, network.peak_bytes_per_second
    if not baseline or not peak or peak <= baseline or network.burst:
        return network
    if measured := network_burst(offer.provider, offer.type):
        return structs.replace(network, burst=measured)
    return structs.replace(network, possible_burst=possible_burst(offer.provider, offer.type, peak))


def _with_published_link(offer: Offer) -> VolumeLink:
    link, published = offer.volume_link, volume_link(offer.provider, offer.type)
    if published is None:
        return link
    rate, iops = link.baseline_bytes_per_second, link.baseline_iops
    return structs.replace(
        link,
        baseline_bytes_per_second=published.bytes_per_second if rate is None else rate,
        baseline_iops=published.iops if iops is None else iops,
        most_volumes=published.most_volumes if link.most_volumes is None else link.most_volumes,
        volume_kinds=published.volume_kinds if link.volume_kinds is None else link.volume_kinds,
        volumes_source=published.source,
    )


def _with_published_disks(
    disks: tuple[Disks, ...] | None, known: MachineType
) -> tuple[Disks, ...] | None:
    """The disks with their sizes and number, as far as a catalog does not know them.

    Where none are published, there are none but those that a catalog states. A catalog that states
    nothing is left so: none are published of g2.2xlarge and cr1.8xlarge, either, which AWS lists
    with some.
    """
    if known.disk_count == 0:
        return disks and tuple(each for each in disks if each.total_bytes is not None)
    published = _published_disks(known)
    if not published:
        return disks
    if disks is None:
        return published
    found: list[Disks] = []
    for each in disks:
        if each.total_bytes is None and each.kind == "nvme":
            found += published if known.disk_kind == "nvme" else ()
        elif (
            each.count is None
            and each.total_bytes
            and known.disk_count
            and (len(disks) == 1 or each.kind == known.disk_kind)
        ):
            one = each.total_bytes // known.disk_count
            found.append(structs.replace(each, count=known.disk_count, bytes_each=one))
        else:
            found.append(each)
    return tuple(found)


def _published_disks(known: MachineType) -> tuple[Disks, ...]:
    if not known.disk_count or not known.disk_bytes:
        return ()
    return (
        Disks(
            kind=known.disk_kind,
            count=known.disk_count,
            bytes_each=known.disk_bytes // known.disk_count,
            total_bytes=known.disk_bytes,
        ),
    )


def _with_rates(disks: tuple[Disks, ...] | None, offer: Offer) -> tuple[Disks, ...] | None:
    """The disks with the rates of their type; those of several kinds are of the NVMe ones."""
    rates = disk_rates(offer.provider, offer.type) if disks else None
    if disks is None or rates is None:
        return disks
    fast = [each for each in disks if each.kind == "nvme"] if len(disks) > 1 else disks
    return tuple(
        structs.replace(
            each,
            read_bytes_per_second=rates.read,
            write_bytes_per_second=rates.write,
            rate_source=rates.source,
            read_iops=rates.read_iops,
            write_iops=rates.write_iops,
            iops_source=rates.iops_source,
            measured=rates.measured,
        )
        if len(fast) == 1 and each is fast[0] and each.read_bytes_per_second is None
        else each
        for each in disks
    )
