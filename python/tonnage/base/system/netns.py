"""Networks of namespaces: a switch in one, and in each of the others a machine's end of a link.

    SWITCH      a bridge, with port0, port1, ...
    MACHINE     eth0, which is the other end of a port

Every interface lies in one of these namespaces and goes with it, so the machine's own network stays
as it was. Links may have a rate, that of a token bucket (tbf) at either end, so that each end holds
back what it sends and nothing has to be held back on arrival. A bucket counts a packet with its
Ethernet header, and one that stands for many segments (GSO) with the headers of all of them.
"""

from __future__ import annotations

from pathlib import Path

from tonnage.base.system.undo_journal import Command

NAMESPACES = Path("/run/netns")
"""Where ip keeps them."""
NETWORK = "198.18"
"""How addresses begin that are set aside for benchmarks (RFC 2544)."""

BURST_SECONDS = 0.005
"""A bucket holds what its link carries in this time: a few ticks of the kernel's clock."""
LEAST_BURST_BYTES = 64 << 10
"""The largest packet before it is cut for the wire."""
QUEUE = "50ms"
"""What waits longer at a link is dropped, and sent again."""

MTU = 1500
HEADERS = {"Ethernet": 14, "IPv4": 20, "TCP with timestamps": 32}
"""Bytes of each packet that are no payload."""


def wire_rate(payload_bytes_per_second: float) -> int:
    """Bits a second on the wire of a link that carries so many bytes of TCP payload."""
    packet = MTU + HEADERS["Ethernet"]
    return round(8 * payload_bytes_per_second * packet / (packet - sum(HEADERS.values())))


def bridge_commands(namespace: str) -> list[Command]:
    """The switch, in a namespace that is there."""
    return [
        ("ip", "-n", namespace, "link", "add", "switch", "type", "bridge"),
        ("ip", "-n", namespace, "link", "set", "switch", "up"),
    ]


def link_commands(namespace: str, to: str, number: int, address: str) -> list[Command]:
    """A link of a machine's namespace to a port of the switch in the namespace ``to``."""
    port = f"port{number}"
    pair = ("link", "add", port, "type", "veth", "peer", "name", "eth0", "netns", namespace)
    return [
        ("ip", "-n", to, *pair),
        ("ip", "-n", to, "link", "set", port, "master", "switch", "up"),
        ("ip", "-n", namespace, "address", "add", f"{address}/24", "dev", "eth0"),
        ("ip", "-n", namespace, "link", "set", "eth0", "up"),
    ]


def rate_limit_commands(namespace: str, to: str, number: int, bits_per_second: int) -> list[Command]:
    """A rate for both ways of that link, in place of the one it has, if any."""
    burst = max(LEAST_BURST_BYTES, int(bits_per_second / 8 * BURST_SECONDS))
    rate = ("rate", f"{bits_per_second}bit", "burst", f"{burst}b", "latency", QUEUE)
    return [
        ("tc", "-n", where, "qdisc", "replace", "dev", device, "root", "tbf", *rate)
        for where, device in ((namespace, "eth0"), (to, f"port{number}"))
    ]
