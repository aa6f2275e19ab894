"""Endpoints in network namespaces of their own, joined by a bridge: machines and a switch in one.

    tonnage-<pid>-switch    a bridge, with port0, port1, ...
    tonnage-<pid>-<n>       endpoint n: eth0, which is the other end of port<n>

Every interface lies in one of these namespaces and goes with it, so the machine's own network stays
as it was. What a killed command left is removed by the next: its locked directory (see
`engine.workspace`) tells whether a command still lives. Links may have a rate, that of a token
bucket (tbf) at either end, which counts packets with their Ethernet headers.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tonnage import engine
from tonnage.measure.net.endpoint import Place

NAMESPACES = Path("/run/netns")
"""Where ip keeps them."""
LOCKS = Path("/run")
LOCK_PREFIX = "tonnage-net-"
NETWORK = "198.18.0"
"""Of the addresses that are set aside for benchmarks (RFC 2544)."""

BURST_SECONDS = 0.005
"""A bucket holds what its link carries in this time: a few ticks of the kernel's clock."""
LEAST_BURST_BYTES = 64 << 10
"""The largest packet before it is cut for the wire."""
QUEUE = "50ms"
"""What waits longer at a link is dropped, and sent again."""


def refuse_unable() -> None:
    """Refuses to make namespaces where that is known not to work.

    Raises:
        Refused: This user may not make them, or a program for it is missing.
    """
    if os.geteuid():
        raise engine.Refused(
            "--namespaces: only root may make them: use sudo, or measure over loopback without"
        )
    for program in ("ip", "tc"):
        if shutil.which(program) is None:
            raise engine.Refused(
                f"--namespaces needs {program}: install iproute2, or measure over loopback without"
            )


@contextmanager
def namespaces(count: int, rate_bits_per_second: int | None = None) -> Iterator[list[Place]]:
    """Places for ``count`` endpoints, as many as the network has addresses, gone afterwards.

    Args:
        count: How many.
        rate_bits_per_second: Of each link, one way; ``None`` for what the machine can do.

    Raises:
        Failed: The kernel would not make them; `refuse_unable` finds most of what it would not.
    """
    with engine.workspace("--namespaces", LOCKS, LOCK_PREFIX):
        _remove_left()
        prefix = f"tonnage-{os.getpid()}-"
        try:
            yield _build(prefix, count, rate_bits_per_second)
        finally:
            for path in sorted(NAMESPACES.glob(f"{prefix}*")):
                _call("ip", "netns", "delete", path.name)


def _remove_left() -> None:
    """Removes the namespaces of commands that are gone; of those that live the lock is there."""
    for path in sorted(NAMESPACES.glob("tonnage-*-*")):
        owner = path.name.split("-")[1]
        # One with this process's number is of another that had it before.
        if owner == str(os.getpid()) or not (LOCKS / f"{LOCK_PREFIX}{owner}").is_dir():
            _call("ip", "netns", "delete", path.name)


def _build(prefix: str, count: int, rate: int | None) -> list[Place]:
    switch = f"{prefix}switch"
    _call("ip", "netns", "add", switch)
    _call("ip", "-n", switch, "link", "add", "switch", "type", "bridge")
    _call("ip", "-n", switch, "link", "set", "switch", "up")
    places = []
    for number in range(count):
        name, port, host = f"{prefix}{number}", f"port{number}", f"{NETWORK}.{number + 1}"
        _call("ip", "netns", "add", name)
        pair = ("link", "add", port, "type", "veth", "peer", "name", "eth0", "netns", name)
        _call("ip", "-n", switch, *pair)
        _call("ip", "-n", switch, "link", "set", port, "master", "switch", "up")
        _call("ip", "-n", name, "address", "add", f"{host}/24", "dev", "eth0")
        _call("ip", "-n", name, "link", "set", "eth0", "up")
        if rate:
            for namespace, device in ((name, "eth0"), (switch, port)):
                _shape(namespace, device, rate)
        places.append(Place(host, ("ip", "netns", "exec", name)))
    return places


def _shape(namespace: str, device: str, rate: int) -> None:
    burst = max(LEAST_BURST_BYTES, int(rate / 8 * BURST_SECONDS))
    bucket = ("tbf", "rate", f"{rate}bit", "burst", f"{burst}b", "latency", QUEUE)
    _call("tc", "-n", namespace, "qdisc", "add", "dev", device, "root", *bucket)


def _call(*command: str) -> None:
    # In a session of its own: a Ctrl-C is for this process, which then removes what there is.
    done = subprocess.run(command, capture_output=True, text=True, start_new_session=True)
    if done.returncode:
        said = " ".join(done.stderr.split())
        raise engine.Failed(f"--namespaces: {' '.join(command)}: {said}")
