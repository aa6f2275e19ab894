"""Emulate a network with namespaces: a bridge in one, with a veth link to each of the others.

    SWITCH      a bridge, with port0, port1, ...
    NODE        eth0, the other end of a port

Every interface belongs to one of these namespaces and is removed with it, so the machine's own
network is left alone. A link may be rate-limited by a token bucket (tbf) at each end: both limit
what they send, so nothing must be held back on arrival. A bucket counts a packet with its Ethernet
header, and one that stands for many segments (GSO) with the headers of all of them.
"""

from pathlib import Path

from tonnage.base.system.undo_journal import Command

NAMESPACES = Path("/run/netns")
NETWORK = "198.18"
"""First half of the addresses reserved for benchmarks (RFC 2544)."""

BURST_SECONDS = 0.005
"""A bucket holds what its link carries in this time: a few ticks of the kernel's timer."""
MIN_BURST_BYTES = 64 << 10
"""The largest packet before segmentation (GSO)."""
QUEUE = "50ms"
"""A packet that is queued longer at a link is dropped, and retransmitted."""

MTU = 1500
HEADERS = {"Ethernet": 14, "IPv4": 20, "TCP with timestamps": 32}
"""Bytes of each packet that are not payload."""


def wire_rate(payload_bytes_per_second: float) -> int:
    """Bits per second on the wire that carry this many bytes per second of TCP payload."""
    packet = MTU + HEADERS["Ethernet"]
    return round(8 * payload_bytes_per_second * packet / (packet - sum(HEADERS.values())))


def bridge_commands(namespace: str) -> list[Command]:
    return [
        ("ip", "-n", namespace, "link", "add", "switch", "type", "bridge"),
        ("ip", "-n", namespace, "link", "set", "switch", "up"),
    ]


def link_commands(namespace: str, switch: str, number: int, address: str) -> list[Command]:
    """Commands that link a node's namespace to a port of the bridge in the namespace ``switch``."""
    port = f"port{number}"
    pair = ("link", "add", port, "type", "veth", "peer", "name", "eth0", "netns", namespace)
    return [
        ("ip", "-n", switch, *pair),
        ("ip", "-n", switch, "link", "set", port, "master", "switch", "up"),
        ("ip", "-n", namespace, "address", "add", f"{address}/24", "dev", "eth0"),
        ("ip", "-n", namespace, "link", "set", "eth0", "up"),
    ]


def forget_neighbours_command(namespace: str) -> Command:
    """The command after which a namespace looks for the hardware addresses of its peers again."""
    return ("ip", "-n", namespace, "neigh", "flush", "dev", "eth0")


def rate_limit_commands(
    namespace: str, switch: str, number: int, bits_per_second: int
) -> list[Command]:
    """Commands that set, or replace, the rate limit of both directions of that link."""
    burst = max(MIN_BURST_BYTES, int(bits_per_second / 8 * BURST_SECONDS))
    rate = ("rate", f"{bits_per_second}bit", "burst", f"{burst}b", "latency", QUEUE)
    return [
        ("tc", "-n", where, "qdisc", "replace", "dev", device, "root", "tbf", *rate)
        for where, device in ((namespace, "eth0"), (switch, f"port{number}"))
    ]
