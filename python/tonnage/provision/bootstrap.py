"""What is done on a node once it can be reached, as commands of a shell; pure functions.

A node gets Tonnage's wheel, installs it with Ray (`plan.handover.install`), and starts Ray, which
lets in who has the launch's token. What runs there finds both by ``~/tonnage/environment``.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path

from tonnage.base.records.environment import MACHINE_TYPE, PROVIDER
from tonnage.provision.export.ray import VERSION
from tonnage.provision.export.rental import WHEELS, Rental

PORT = 6379
"""Of Ray's head."""
HOME = "~/tonnage"
WHEEL_PLACE = next(iter(WHEELS))
MOUNTED = "/run/tonnage-disks"
"""There once all disks of a node are mounted (`plan.handover.mount`)."""
BOOT_SECONDS = 600.0
"""How long a node may take for its disks, which are made anew."""
ALIVE = """
import ray
ray.init(address="auto", logging_level="ERROR", log_to_driver=False)
print(*(node["NodeName"] for node in ray.nodes() if node["Alive"]), sep=" ")
"""
"""Asks the cluster for its nodes."""
ELSEWHERE = "/var/tmp"
"""What is looked at of a node that keeps nothing on disks."""


def ping() -> str:
    """Nothing but an answer."""
    return "true"


def wait_for_disks() -> str:
    """Waits until the disks are mounted, or it is known that they cannot be.

    What says so is cloud-init, where the image has it: it runs what mounts them.
    """
    return (
        "if command -v cloud-init > /dev/null; then cloud-init status --wait > /dev/null || true; "
        f"fi; test -e {MOUNTED} || {{ tail -n 3 /var/log/cloud-init-output.log >&2; exit 1; }}"
    )


def receive_wheel(wheel: Path) -> str:
    """Takes the wheel, which it reads; and has no other."""
    place = f"{WHEEL_PLACE}/{shlex.quote(wheel.name)}"
    return f"mkdir -p {WHEEL_PLACE} && rm -f {WHEEL_PLACE}/*.whl && cat > {place}"


def receive_token() -> str:
    """Takes Ray's token, which it reads."""
    return "umask 077 && mkdir -p ~/.ray && cat > ~/.ray/auth_token"


def install(rental: Rental) -> str:
    """Installs Tonnage, and the Ray that it was tested with."""
    return rental.install(f"ray[default]=={VERSION}")


def environment(head: str) -> str:
    """Tells what runs on the node where Ray is, and has the user's own shells know it too."""
    lines = {
        "PATH": f"{HOME}/bin:$PATH",
        "RAY_ADDRESS": f"{head}:{PORT}",
        "RAY_AUTH_MODE": "token",
        "RAY_USAGE_STATS_ENABLED": "0",
        # What is measured goes first.
        "RAY_worker_niceness": "0",
    }
    text = "".join(f"export {name}={value}\n" for name, value in lines.items())
    own = f". {HOME}/environment"
    return (
        f"cat > {HOME}/environment <<'END'\n{text}END\n"
        f"grep -qxF '{own}' ~/.bashrc 2> /dev/null || echo '{own}' >> ~/.bashrc\n"
    )


def start_ray(address: str, name: str, head: str | None, labels: Mapping[str, str]) -> str:
    """Starts Ray.

    Args:
        address: The node's, among the nodes.
        name: What Ray is to call it.
        head: The head's address; ``None``: it is the head.
        labels: What is to be known of the node.
    """
    told = {
        "address": address,
        "name": name,
        "head": head or "",
        "port": str(PORT),
        "labels": ",".join(f"{key}={value}" for key, value in labels.items()),
    }
    script = (Path(__file__).parent / "start.sh").read_text()
    return "".join(f"{key}={shlex.quote(value)}\n" for key, value in told.items()) + script


def labels(rental: Rental, zone: str | None) -> dict[str, str]:
    """What was rented, as measurements tell it."""
    known = {
        PROVIDER: rental.candidate.provider,
        MACHINE_TYPE: rental.offer.type,
        "region": rental.offer.region,
        "zone": zone,
        "market": "spot" if rental.spot else "on-demand",
    }
    return {name: value for name, value in known.items() if value}


def list_nodes() -> str:
    """Tells the names of all nodes, in the last line."""
    return f". {HOME}/environment && python -c {shlex.quote(ALIVE)}"


def screen(
    rental: Rental, number: int, size_bytes: int, seconds: float, patience_seconds: float
) -> str:
    """Screens all nodes; of the head, whose answer is JSON.

    Args:
        rental: What was rented.
        number: Of this screening.
        size_bytes: What a trial of a disk moves at most.
        seconds: How long it takes at most.
        patience_seconds: For how long who says nothing is waited for.
    """
    told = ["--size", str(size_bytes), "--seconds", f"{seconds:g}", "--cluster", "auto", "--json"]
    told += ["--timeout", f"{patience_seconds:g}s"]
    told += [word for place in disk_directories(rental) for word in ("--dir", place)]
    out = f"{HOME}/screening-{number}"
    return (
        f". {HOME}/environment && rm -rf {out} && "
        f"tonnage measure screen --output {out} {shlex.join(told)}"
    )


def disk_directories(rental: Rental) -> list[str]:
    """Where the disks of a node are mounted; of unknown number only the first is known."""
    own = 1 if rental.local_disks is None else rental.local_disks
    attached = rental.candidate.volumes.count if rental.candidate.volumes else 0
    found = [f"/tonnage/local-{at}" for at in range(own)]
    found += [f"/tonnage/volume-{at}" for at in range(attached)]
    return found or [ELSEWHERE]


def run_command(command: list[str]) -> str:
    """A command of the user's; of the head."""
    return f". {HOME}/environment && exec {shlex.join(command)}"
