"""Which of a machine's devices move bytes themselves, by their names alone.

A partition's bytes are also its disk's, and those of device-mapper, md or loop devices also those
of the disks below; a bridge's, a bond's or a container's are also those of the network card. Of a
machine that is not here, names are all there is. Names: Documentation/admin-guide/devices.txt of
Linux, and systemd.net-naming-scheme(7).
"""

import re
from collections.abc import Iterable

_DISK = re.compile(
    r"(?:sd|hd|vd|xvd|dasd)[a-z]{1,3}|nvme\d+(?:c\d+)?n\d+|mmcblk\d+|nbd\d+|rbd\d+|pmem\d+"
)
_PARTITION = re.compile(r"(.*\d)p\d+|(.*[a-z])\d+")
_STACKED = re.compile(r"(?:dm-|md|loop|ram|zram|sr|fd|bcache|drbd|zd|cdrom).*")
_NUMBERED = re.compile(r"dev(\d+)-\d+")
"""What sar calls a device whose name it does not look up."""
_STACKED_MAJORS = {1, 7, 9, 11}  # ram, loop, md, sr
_FIRST_DYNAMIC_MAJOR, _LAST_DYNAMIC_MAJOR = 234, 254
_CARD = re.compile(r"(?:eth|em|ib|wlan)\d+|(?:en|wl|ib)[opsxP]\w+|p\d+p\d+")
_VIRTUAL = re.compile(
    r"(?:lo|docker|br|virbr|veth|bond|team|tun|tap|cni|flannel|cali|vxlan|ifb|dummy|sit|ip6tnl|kube|"
    r"nodelocaldns|wg|gre|erspan|tunl|vnet|ovs|lxc|cilium|weave|genev)[\w-]*"
)


class UnclearDevices(ValueError):
    """Some devices' names do not tell whether they are disks."""


def whole_disks(names: Iterable[str]) -> set[str]:
    """The disks among these devices: no partitions of them, none that stand on others.

    A device of an unknown name counts if none is known. `UnclearDevices` if sar has only numbers
    and more than one driver's are assigned when it starts: one of them may be device-mapper.
    """
    present = {*names}
    numbered = {name: int(match[1]) for name in present if (match := _NUMBERED.fullmatch(name))}
    if numbered:
        return _numbered_disks(numbered)
    plain = {name for name in present if not _STACKED.fullmatch(name)}
    known = {
        name
        for name in plain
        if _DISK.fullmatch(name) or (_parent(name) and _DISK.fullmatch(_parent(name)))
    }
    candidates = known or plain
    return {name for name in candidates if _parent(name) not in candidates}


def network_cards(names: Iterable[str]) -> set[str]:
    """The interfaces whose bytes reach other machines once: cards, or all but loopback."""
    present = {name for name in names if "." not in name and "@" not in name}
    cards = {name for name in present if _CARD.fullmatch(name)}
    others = {name for name in present if not _VIRTUAL.fullmatch(name)}
    return cards or others or {*names} - {"lo"}


def _parent(name: str) -> str:
    match = _PARTITION.fullmatch(name)
    return (match[1] or match[2]) if match else ""


def _numbered_disks(majors: dict[str, int]) -> set[str]:
    kept = {name: major for name, major in majors.items() if major not in _STACKED_MAJORS}
    dynamic = {
        name: major
        for name, major in kept.items()
        if _FIRST_DYNAMIC_MAJOR <= major <= _LAST_DYNAMIC_MAJOR
    }
    if fixed := kept.keys() - dynamic.keys():
        return {*fixed}
    if len({*dynamic.values()}) > 1:
        raise UnclearDevices(", ".join(sorted(dynamic)))
    return {*dynamic}
