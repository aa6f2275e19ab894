"""Network namespaces for endpoints, joined by a bridge: a network of nodes on one machine.

    tonnage-<pid>-switch    the bridge, see `base.system.netns`
    tonnage-<pid>-<n>       endpoint n

The next command removes namespaces of a killed one: its locked directory (see `core.workspace`)
shows whether a command is still running.
"""

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tonnage.base import core
from tonnage.base.system import netns
from tonnage.measure.net.endpoint import EndpointHost

LOCKS = Path("/run")
LOCK_PREFIX = "tonnage-net-"


def require_namespaces() -> None:
    """Raise `UsageError` if this user may not create namespaces, or a program for it is missing."""
    if os.geteuid():
        raise core.UsageError(
            "creating namespaces requires root; use sudo, or omit this to measure over loopback",
            setting="namespaces",
        )
    for program in ("ip", "tc"):
        if shutil.which(program) is None:
            raise core.UsageError(
                f"program {program} is missing; install iproute2, or omit this to measure over "
                "loopback",
                setting="namespaces",
            )


@contextmanager
def namespaces(count: int, rate_bits_per_second: int | None = None) -> Iterator[list[EndpointHost]]:
    """Create namespaces for endpoints, remove them afterwards; `RunError` if the kernel refuses."""
    with core.workspace("namespaces", LOCKS, LOCK_PREFIX):
        _remove_stale()
        prefix = f"tonnage-{os.getpid()}-"
        try:
            yield _build(prefix, count, rate_bits_per_second)
        finally:
            for path in sorted(netns.NAMESPACES.glob(f"{prefix}*")):
                _call("ip", "netns", "delete", path.name)


def _remove_stale() -> None:
    """Remove the namespaces of commands that have ended: a running one has a lock."""
    for path in sorted(netns.NAMESPACES.glob("tonnage-*-*")):
        owner = path.name.split("-")[1]
        # One with this process id belongs to an earlier process with the same id.
        if owner == str(os.getpid()) or not (LOCKS / f"{LOCK_PREFIX}{owner}").is_dir():
            _call("ip", "netns", "delete", path.name)


def _build(prefix: str, count: int, rate: int | None) -> list[EndpointHost]:
    switch = f"{prefix}switch"
    _call("ip", "netns", "add", switch)
    for command in netns.bridge_commands(switch):
        _call(*command)
    hosts = []
    for number in range(count):
        name, host = f"{prefix}{number}", f"{netns.NETWORK}.0.{number + 1}"
        _call("ip", "netns", "add", name)
        shaping = netns.rate_limit_commands(name, switch, number, rate) if rate else []
        for command in [*netns.link_commands(name, switch, number, host), *shaping]:
            _call(*command)
        hosts.append(EndpointHost(host, ("ip", "netns", "exec", name)))
    return hosts


def _call(*command: str) -> None:
    # In its own session: Ctrl-C is for this process, which then removes the namespaces.
    result = subprocess.run(command, capture_output=True, text=True, start_new_session=True)
    if result.returncode:
        output = " ".join(result.stderr.split())
        raise core.RunError(f"cannot create namespaces: {' '.join(command)}: {output}")
