"""Endpoints in network namespaces of their own, joined by a switch: machines and a network in one.

    tonnage-<pid>-switch    the switch, see `changes.switch`
    tonnage-<pid>-<n>       endpoint n

What a killed command left is removed by the next: its locked directory (see `engine.workspace`)
tells whether a command still lives.
"""

from __future__ import annotations

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
    """Refuses to make namespaces where that is known not to work.

    Raises:
        UsageError: This user may not make them, or a program for it is missing.
    """
    if os.geteuid():
        raise core.UsageError(
            "--namespaces: only root may make them: use sudo, or measure over loopback without"
        )
    for program in ("ip", "tc"):
        if shutil.which(program) is None:
            raise core.UsageError(
                f"--namespaces needs {program}: install iproute2, or measure over loopback without"
            )


@contextmanager
def namespaces(count: int, rate_bits_per_second: int | None = None) -> Iterator[list[EndpointHost]]:
    """Places for ``count`` endpoints, as many as the network has addresses, gone afterwards.

    Args:
        count: How many.
        rate_bits_per_second: Of each link, one way; ``None`` for what the machine can do.

    Raises:
        RunError: The kernel would not make them; `refuse_unable` finds most of what it would not.
    """
    with core.workspace("namespaces", LOCKS, LOCK_PREFIX):
        _remove_left()
        prefix = f"tonnage-{os.getpid()}-"
        try:
            yield _build(prefix, count, rate_bits_per_second)
        finally:
            for path in sorted(netns.NAMESPACES.glob(f"{prefix}*")):
                _call("ip", "netns", "delete", path.name)


def _remove_left() -> None:
    """Removes the namespaces of commands that are gone; of those that live the lock is there."""
    for path in sorted(netns.NAMESPACES.glob("tonnage-*-*")):
        owner = path.name.split("-")[1]
        # One with this process's number is of another that had it before.
        if owner == str(os.getpid()) or not (LOCKS / f"{LOCK_PREFIX}{owner}").is_dir():
            _call("ip", "netns", "delete", path.name)


def _build(prefix: str, count: int, rate: int | None) -> list[EndpointHost]:
    to = f"{prefix}switch"
    _call("ip", "netns", "add", to)
    for command in netns.bridge_commands(to):
        _call(*command)
    places = []
    for number in range(count):
        name, host = f"{prefix}{number}", f"{netns.NETWORK}.0.{number + 1}"
        _call("ip", "netns", "add", name)
        shaping = netns.rate_limit_commands(name, to, number, rate) if rate else []
        for command in [*netns.link_commands(name, to, number, host), *shaping]:
            _call(*command)
        places.append(EndpointHost(host, ("ip", "netns", "exec", name)))
    return places


def _call(*command: str) -> None:
    # In a session of its own: a Ctrl-C is for this process, which then removes what there is.
    done = subprocess.run(command, capture_output=True, text=True, start_new_session=True)
    if done.returncode:
        said = " ".join(done.stderr.split())
        raise core.RunError(f"--namespaces: {' '.join(command)}: {said}")
